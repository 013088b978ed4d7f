"""Every program of the machine, piped into: `scripts/check --long proposals [--programs N]`.

For each program and each entry of the tables, the commands that a proposed rule covers get
programs in many languages on their standard input; none may make a file. Everything runs where
only a temporary directory can be written and there is no network.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from stdin_canary import PAYLOADS, TAILS, covered_texts, makes_canary

from handaxe.shell.analysis.program_tables import load_toml, split_names

DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
INSIDE = "HANDAXE_PROPOSALS_INSIDE"
STARTS = ("", "-", "-s", "x", "build", "-c x", "-e x", "x y", "5 make", "-i x", "test x")
NOT_RUN = split_names(
    "halt reboot poweroff shutdown init telinit kexec rtcwake hwclock systemd runlevel "
    "ctrlaltdel sysctl swapoff swapon fsfreeze blkdiscard wipefs"
)
"""These could stop the machine, sandbox or not."""
WORDS = [*(tail for tail in TAILS if tail), "-a", "-v", "--version", "-o out", "-p", "-q", "a=b"]


def main() -> int:
    """Run the check in a sandbox of its own; 0 if no covered command made a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=0, help="how many programs; 0 for all")
    parser.add_argument("--texts", type=int, default=12, help="how many commands of each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if INSIDE not in os.environ:
        return _start_in_sandbox()
    return _check(options)


def _start_in_sandbox() -> int:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, *sys.argv]
        environment = {**os.environ, INSIDE: "1", "TMPDIR": directory}
        if shutil.which("bwrap"):
            inside = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
            inside += ["--bind", directory, directory, "--unshare-all", "--die-with-parent", "--"]
            return subprocess.run([*inside, *command], env=environment, check=False).returncode
        if shutil.which("unshare") is None:
            _say("This check needs bwrap or unshare.")
            return 2
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        inside = ["unshare", *root, "--mount", "--net", "--ipc", "--pid", "--fork", "--mount-proc"]
        script = 'mount --bind "$TMPDIR" "$TMPDIR" && exec "$0" "$@"'
        inside += ["--kill-child", "--", "sh", "-c", script, sys.executable, *sys.argv]
        return subprocess.run(inside, env=environment, check=False).returncode


def _close_mounts() -> list[str]:
    """Make every mounted place read-only but the temporary one; those that could not be."""
    temporary = os.environ["TMPDIR"]
    lines = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    places = {line.split()[1].encode().decode("unicode_escape") for line in lines}
    for place in sorted(places - {temporary}):
        if not place.startswith(("/proc", "/dev")):
            subprocess.run(
                ["mount", "-o", "remount,bind,ro", place], check=False, capture_output=True
            )
    return [
        place
        for place in places - {temporary}
        if not place.startswith(("/proc", "/dev"))
        and os.path.isdir(place)
        and not os.statvfs(place).f_flag & os.ST_RDONLY
    ]


def _programs() -> list[str]:
    found: set[str] = set()
    for directory in map(Path, DIRECTORIES):
        if directory.is_dir():
            found |= {file.name for file in directory.iterdir() if os.access(file, os.X_OK)}
    raw = load_toml("stdin_programs.toml")
    listed = {n for e in (*raw["program"], *raw["prefix"]) for n in e["names"].split()}
    found |= {name for name in listed if shutil.which(name)}
    return sorted(found - NOT_RUN)


def _texts(program: str, chance: random.Random) -> Iterator[str]:
    """Commands of one program that a proposed rule covers."""
    starts = [f"{program} {start}".strip() for start in STARTS]
    for _ in range(6):
        tail = " ".join(chance.sample(WORDS, chance.randint(1, 3)))
        starts.append(f"{program} {tail}")
    mixed = [" ".join(chance.sample(WORDS, 2)) for _ in range(8)]
    yield from covered_texts(*starts, tails=[*TAILS, *mixed])


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _check(options: argparse.Namespace) -> int:
    if not shutil.which("bwrap") and (left := _close_mounts()):
        _say(f"Still writable: {', '.join(left)}")
        return 2
    chance = random.Random(options.seed)
    path = ":".join(dict.fromkeys([*DIRECTORIES, *os.environ["PATH"].split(":")]))
    programs = _programs()
    if options.programs:
        programs = sorted(chance.sample(programs, min(options.programs, len(programs))))
    if not makes_canary("bash", PAYLOADS["shell"], path=path):
        _say("The check itself does not work: bash made no file.")
        return 2
    ran = offered = 0
    wrong: list[str] = []
    for number, program in enumerate(programs, 1):
        if number % 100 == 0:
            _say(f"{number} programs, {ran} commands run")
        texts = list(dict.fromkeys(_texts(program, chance)))
        offered += bool(texts)
        chosen = chance.sample(texts, min(options.texts, len(texts)))
        for text in chosen:
            languages = ["shell", chance.choice(list(PAYLOADS))]
            for language in dict.fromkeys(languages):
                ran += 1
                if makes_canary(text, PAYLOADS[language], path=path, timeout_s=1.0):
                    wrong.append(f"{language}: {text}")
                    _say(f"WRONG {wrong[-1]}")
    _say(f"{len(programs)} programs, {offered} with a rule, {ran} run, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
