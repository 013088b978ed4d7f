"""Random commands for the verdict on bash: none may raise; how long the slowest took.

`python bench/shell_random.py [inputs] [seed]`. Ends with exit code 1 if one raised, and prints it.
A quarter each: any characters, heaps of syntax, commands from a grammar, ordinary ones with damage.
What took longer than 20 ms is asked again, three times, alone and without the garbage collector: the
least of these is what the command itself costs.
"""
# pyright: basic

from __future__ import annotations

import gc
import random
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests" / "shell" / "analysis"
sys.path.insert(0, str(TESTS))

from grammar import Maker  # noqa: E402
from reference import decision  # noqa: E402

RULES = {
    "allow": ["Bash(npm test:*)", "Bash(ls:*)"],
    "deny": ["Bash(rm:*)", "Bash(git push *)"],
    "ask": ["Bash(curl *)"],
}
WORDS = r"""
$( ${ ` ' " << <<- <<< (( )) [[ ]] [ ] { } ( ) ; ;; & && | || |& > >> 2>&1 <( >( \\ # ! * ? ~
if then else fi for in do done while case esac function select time coproc eval exec source
a -rf rm ls git $IFS $'\x72m' =x x=1 {a,b} {1..9}
"""
SYNTAX = [*WORDS.split(), "\n", "\t", " ", "\0", "\r", "é", "\u202e", "\udc80"]
ORDINARY = [line for line in (TESTS / "ordinary.txt").read_text("utf-8").splitlines() if line]


def any_text(dice: random.Random) -> str:
    tops = (0x7F, 0xFF, 0xFFFF, 0x10FFFF)
    return "".join(chr(dice.randint(0, dice.choice(tops))) for _ in range(dice.randint(0, 120)))


def heap(dice: random.Random) -> str:
    return dice.choice(("", " ")).join(dice.choices(SYNTAX, k=dice.randint(0, 60)))


def grammatical(dice: random.Random) -> str:
    return Maker(dice.getrandbits(32)).command()


def damaged(dice: random.Random) -> str:
    text = dice.choice(ORDINARY)
    for _ in range(dice.randint(1, 6)):
        at = dice.randint(0, len(text))
        text = text[:at] + dice.choice((*SYNTAX, "")) + text[at + dice.randint(0, 2) :]
    return text


KINDS = (any_text, heap, grammatical, damaged)


SLOW_S = 0.02


def main(inputs: int, seed: int) -> int:
    decision("ls", **RULES)
    took: list[tuple[float, str]] = []
    raised: list[str] = []
    for number in range(inputs):
        command = KINDS[number % len(KINDS)](random.Random(f"{seed}.{number}"))
        start = time.process_time()
        try:
            verdict = decision(command, **RULES).verdict
        except Exception as error:  # noqa: BLE001 - finding these is the purpose
            raised.append(f"input {number} {command!r}: {type(error).__name__}: {error}")
            continue
        took.append((time.process_time() - start, command))
        if verdict not in {"allow", "ask", "deny"}:
            raised.append(f"input {number} {command!r}: {verdict!r} is no verdict")
    took.sort(key=lambda one: one[0])
    print(f"{inputs:,} inputs, seed {seed}: {len(raised)} raised")
    for title, at in (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("worst", 1.0)):
        seconds, command = took[min(int(len(took) * at), len(took) - 1)]
        print(f"{title:7} {seconds * 1e3:9.3f} ms  {command[:70]!r}")
    look_again([one for one in took if one[0] > SLOW_S])
    print(*raised[:20], sep="\n")
    return 1 if raised else 0


def look_again(slow: list[tuple[float, str]]) -> None:
    """Tell what is slow by itself from what something else held up."""
    gc.collect()
    gc.disable()
    alone = sorted(((alone_s(command), once, command) for once, command in slow), reverse=True)
    gc.enable()
    still = [one for one in alone if one[0] > SLOW_S]
    limit = f"{SLOW_S * 1e3:.0f} ms"
    print(f"{len(slow)} took more than {limit} once, {len(still)} of them alone too")
    for seconds, once, command in alone[:10]:
        print(f"alone   {seconds * 1e3:9.3f} ms  (once {once * 1e3:.3f})  {command[:70]!r}")


def alone_s(command: str) -> float:
    kept = [
        found
        for name, module in list(sys.modules.items())
        if name.startswith("handaxe.")
        for found in vars(module).values()
        if hasattr(found, "cache_clear") and found.cache_parameters()["maxsize"]
    ]

    def once() -> float:
        # Else the second time would be an answer that was remembered.
        for found in kept:
            found.cache_clear()
        start = time.process_time()
        decision(command, **RULES)
        return time.process_time() - start

    return min(once() for _ in range(3))


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    sys.exit(main(*(numbers + [100_000, 1][len(numbers) :])))
