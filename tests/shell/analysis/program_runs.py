"""Runs what the program tables allow, in throw-away trees, and reports what more than looks.

Every listed option becomes commands; those that the analysis allows are run with each installed
variant of the program. All of it: `scripts/check --long programs`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from program_recorder import Recorder, read_trace
from program_values import FORMS, OPERANDS, values_of
from reference import decision

from handaxe.shell.analysis.program_tables import (
    ProgramTable,
    load_git_forms,
    load_read_only_programs,
    load_version_calls,
    split_names,
)
from handaxe.shell.analysis.programs.read_only_forms import (
    PRIMARIES,
    VALUED_PRIMARIES,
)

PACKAGES = sorted(
    split_names(
        "strace busybox toybox rust-coreutils gawk mawk original-awk bsdextrautils util-linux xxd "
        "binutils llvm jq tree ripgrep fd-find git file procps psmisc iproute2 net-tools lsof ncal acl "
        "attr e2fsprogs zstd lz4 bzip2 xz-utils zip unzip libarchive-tools bc lsb-release bat exa cloc "
        "perl less man-db"
    )
)
BUILTINS = sorted(
    split_names(
        "type hash help times jobs umask ulimit wait exit return break continue shift cd set read : "
        "command echo printf test [ true false pwd"
    )
)
RENAMED = {"fd": ["fdfind"], "fdfind": ["fd"], "nawk": ["original-awk"], "bat": ["batcat"]}
AWKS = ("gawk", "mawk", "original-awk")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TIME_LIMIT = 5.0


@dataclass
class Run:
    """One command to run: what it proves (an option, or an operand form) and its words."""

    program: str
    proves: str
    words: list[str]
    texts: list[str] = field(default_factory=list)
    """Words that the table takes for text, so that nothing may open them."""


@dataclass
class Report:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    accepted: set[tuple[str, str]] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    @property
    def never_accepted(self) -> list[tuple[str, str]]:
        """Options that no installed variant took."""
        return sorted(self.seen - self.accepted)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def dashed(option: str) -> str:
    return f"-{option}" if len(option) == 1 else f"--{option}"


def option_runs(program: str, table: ProgramTable, chosen: random.Random) -> Iterator[Run]:
    """Each option alone, each value form, some pairs, and the operands without options."""
    head = program.split()
    name = head[-1]
    needed = [dashed(item) for item in sorted(table.requires)[:1]]
    needed = [
        *needed,
        *(
            values_of(program, item)[0]
            for item in sorted(table.requires)[:1]
            if item in table.valued
        ),
    ]
    for operands in OPERANDS.get(program, OPERANDS.get(name, [[]])):
        yield Run(program, "", [*head, *needed, *operands])
    operands = OPERANDS.get(program, OPERANDS.get(name, [[]]))[0]
    for option in sorted(table.flags):
        # An option behind the operands for some of them: all go the same way through the reader.
        late = table.subcommands or (operands and not table.posix and chosen.random() < 0.2)
        words = [*operands, dashed(option)] if late else [dashed(option), *operands]
        yield Run(program, option, [*head, *needed, *words])
    for option in sorted(table.valued):
        is_text = table.valued[option] == "text"
        for number, value in enumerate(values_of(program, option)[:3]):
            texts = [value] if is_text and value != "a.txt" else []
            given = [f"{dashed(option)}={value}" if len(option) > 1 else f"-{option}{value}"]
            if option in table.optional and number:
                given = [dashed(option)]
            elif option not in table.optional and number != 1:
                given = [dashed(option), value]
            words = [*operands, *given] if table.subcommands else [*given, *operands]
            yield Run(program, option, [*head, *needed, *words], texts)
    yield from pair_runs(program, table, needed + operands, chosen)


def pair_runs(
    program: str, table: ProgramTable, rest: list[str], chosen: random.Random, most: int = 6
) -> Iterator[Run]:
    """Some pairs of options, apart and behind one dash."""
    head = program.split()
    pairs = list(itertools.combinations(sorted(table.flags), 2))
    for first, second in chosen.sample(pairs, min(most, len(pairs))):
        yield Run(program, "", [*head, dashed(first), dashed(second), *rest])
    letters = sorted(name for name in table.flags if len(name) == 1)
    valued = sorted(name for name in table.valued if len(name) == 1)
    bundles = list(itertools.combinations(letters, 2))
    for first, second in chosen.sample(bundles, min(most, len(bundles))):
        yield Run(program, "", [*head, f"-{first}{second}", *rest])
    for letter in chosen.sample(valued, min(3, len(valued))):
        value = values_of(program, letter)[0]
        for flag in letters[:1]:
            yield Run(program, "", [*head, f"-{flag}{letter}", value, *rest])


def all_runs(seed: int) -> list[Run]:
    """Every command that the tables can make."""
    chosen = random.Random(seed)
    runs: list[Run] = []
    for program, table in sorted(load_read_only_programs().items()):
        for words in FORMS.get(program, []):
            runs.append(Run(program, "", [program, *words]))
        if table.check in ("", "jq"):
            runs.extend(option_runs(program, table, chosen))
    for form, table in sorted(load_git_forms().items()):
        made = list(option_runs(f"git {form}", table, chosen))
        # The forms that show history share one table: its rows are run with log, some with each.
        shared = len(made) > 200 and form not in ("log", "diff", "rev-list")
        runs.extend(chosen.sample(made, 60) if shared else made)
    for word in sorted(PRIMARIES - {"(", ")", "!", ",", "-not", "-a", "-o", "-and", "-or"}):
        runs.append(Run("find", word, ["find", ".", word]))
    for word in sorted(VALUED_PRIMARIES):
        runs.extend(
            Run("find", word, ["find", "d1", word, value]) for value in values_of("find", word)
        )
    for program, calls in sorted(load_version_calls().items()):
        runs.extend(Run(program, f"{word} alone", [program, word]) for word in sorted(calls))
    return runs


def find_variants(root: Path, extra: str = "") -> dict[str, dict[str, str]]:
    """Where each variant keeps its programs: names to paths. `extra` are more directories."""
    wanted = {*load_read_only_programs(), *load_version_calls(), "git"}
    variants: dict[str, dict[str, str]] = {"system": {}}
    for name in wanted:
        for candidate in (name, *RENAMED.get(name, [])):
            found = shutil.which(candidate, path=f"{SYSTEM_PATH}:{extra}")
            if found:
                variants["system"][name] = _link(root, "system", name, found)
                break
    for name in ("busybox", "toybox"):
        box = shutil.which(name)
        if box:
            listing = ["--list"] if name == "busybox" else []
            ran = subprocess.run([box, *listing], capture_output=True, text=True, check=False)
            applets = wanted & set(ran.stdout.split())
            variants[name] = {applet: _link(root, name, applet, box) for applet in applets}
    rust = Path("/usr/lib/cargo/bin/coreutils")
    if rust.is_dir():
        variants["uutils"] = {n.name: str(n) for n in rust.iterdir() if n.name in wanted}
    llvm = {
        name: shutil.which(f"llvm-{name}")
        for name in ("strings", "nm", "size", "readelf", "objdump")
    }
    variants["llvm"] = {name: _link(root, "llvm", name, at) for name, at in llvm.items() if at}
    for awk in AWKS:
        found = shutil.which(awk)
        if found:
            variants[awk] = {"awk": _link(root, awk, "awk", found)}
    bsdtar = shutil.which("bsdtar")
    if bsdtar:
        variants["bsdtar"] = {"tar": _link(root, "bsdtar", "tar", bsdtar)}
    return variants


def _link(root: Path, variant: str, name: str, target: str) -> str:
    place = root / "variants" / variant / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return str(place)


def run_all(
    root: Path,
    runs: list[Run],
    *,
    use_strace: bool,
    chosen: random.Random | None = None,
    limit: float = TIME_LIMIT,
    extra: str = "",
    verbose: bool = False,
) -> Report:
    """Run every command that is allowed, with every variant; with one that `chosen` draws."""
    report = Report()
    recorder = Recorder(root)
    variants = find_variants(root, extra)
    done: dict[tuple[str, ...], bool] = {}
    for number, run in enumerate(runs):
        if run.proves:
            report.seen.add((run.program, run.proves))
        command = shlex.join(run.words)
        if tuple(run.words) in done:
            report.accepted |= {(run.program, run.proves)} if done[tuple(run.words)] else set()
            continue
        accepted = report.counts["accepted"]
        report.counts["made"] += 1
        found = decision(command, dirs=(str(recorder.work),), cwd=str(recorder.work))
        if found.verdict != "allow":
            report.counts["not allowed"] += 1
            done[tuple(run.words)] = False
            continue
        name = run.words[0]
        places = [(kind, where[name]) for kind, where in variants.items() if name in where]
        if name in BUILTINS:
            places.append(("bash", ""))
        if not places:
            report.missing.add(name)
        for kind, place in chosen.sample(places, min(1, len(places))) if chosen else places:
            before = len(report.wrong)
            _run_one(run, kind, place, recorder, report, use_strace=use_strace, limit=limit)
            for line in report.wrong[before:] if verbose else []:
                say(f"WRONG {line}")
        done[tuple(run.words)] = report.counts["accepted"] > accepted
        if verbose and number % 500 == 499:
            say(f"{number + 1} of {len(runs)} {dict(report.counts)}")
    return report


def _run_one(
    run: Run,
    kind: str,
    place: str,
    recorder: Recorder,
    report: Report,
    *,
    use_strace: bool,
    limit: float,
) -> None:
    argv = (
        [place, *run.words[1:]] if place else ["/bin/bash", "--norc", "-c", shlex.join(run.words)]
    )
    trace = recorder.root / "trace"
    if use_strace:
        argv = [*recorder.strace(trace), *argv]
    code, errors, size = execute(argv, recorder, limit)
    report.counts["run"] += 1
    report.counts[f"run as {kind}"] += 1
    label = f"{kind}: {shlex.join(run.words)}"
    if code is None:
        report.counts["ended by the time limit"] += 1
    elif not _is_rejected(code, errors):
        report.accepted |= {(run.program, option) for option in _find_options(run)}
        report.counts["accepted"] += 1
    if size > 20_000_000:
        report.wrong.append(f"{label}: endless output")
    changes = recorder.find_changes()
    if changes:
        report.wrong.append(f"{label}: changed {changes}")
    if use_strace:
        program = Path(place).name if place else "bash"
        report.wrong.extend(f"{label}: {event}" for event in read_trace(trace, program, run.texts))


def _find_options(run: Run) -> set[str]:
    """The options among the words of a command that was accepted."""
    found = {run.proves}
    for word in run.words[1:]:
        name = word.partition("=")[0]
        if name.startswith("--"):
            found.add(name[2:])
        elif name.startswith("-"):
            found.update(name[1:])
    return found


def execute(
    argv: list[str], recorder: Recorder, limit: float = TIME_LIMIT
) -> tuple[int | None, str, int]:
    """The exit code (None: ended by the limit), what it said, and how much it printed."""
    out, err = recorder.root / "out", recorder.root / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            argv,
            cwd=recorder.work,
            env=recorder.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, err.read_text("utf-8", "replace")[:2000], out.stat().st_size


_REJECTIONS = (
    "unrecognized option", "unrecognized argument", "invalid argument", "invalid option", "unknown option", "unrecognised", "illegal option",
    "unexpected argument", "unknown argument", "not recognized", "bad option", "usage:",
    "wasn't expected", "which wasn", "unknown subcommand", "applet not found", "unsupported option",
    "doesn't allow an argument", "requires an argument", "extra operand", "not found\n",
)  # fmt: skip


def _is_rejected(code: int, errors: str) -> bool:
    return code != 0 and any(text in errors.lower() for text in _REJECTIONS)
