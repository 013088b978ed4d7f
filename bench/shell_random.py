"""Random commands for the verdict on bash: none may raise; how long the slowest took.

`python bench/shell_random.py [inputs] [seed]`. Ends with exit code 1 if one raised, and prints it.
A quarter each: any characters, heaps of syntax, commands from a grammar, ordinary ones with damage.
"""
# pyright: basic

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests" / "shell"
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
    print(*raised[:20], sep="\n")
    return 1 if raised else 0


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    sys.exit(main(*(numbers + [100_000, 1][len(numbers) :])))
