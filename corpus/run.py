"""Runs the edit corpus against handaxe or, through a command, against any other engine.

    python corpus/run.py                 # handaxe, one line for each family
    python corpus/run.py --json          # the same as JSON, with every failure
    python corpus/run.py --command CMD   # another engine: JSON lines in, JSON lines out

The format of cases and of the command is described in docs/guides/edit-corpus.md. Exit code 1
unless every case ends as it should.
"""

import argparse
import base64
import json
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "edit"
COLUMNS = (
    "cases", "landed", "refused", "missed", "wrong_place", "outside_changed", "wrong_text",
    "wrong_code", "wrong_class", "wrong_help",
)  # fmt: skip
GOOD = ("cases", "landed", "refused")
Case = dict[str, Any]
Answer = dict[str, Any]
Engine = Callable[[Case], Answer]


def load(folder: Path = HERE) -> Iterator[Case]:
    """Every case, with `family` from its file and its bytes ready."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".toml":
            cases = tomllib.loads(path.read_text("utf-8"))["case"]
        else:
            cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for case in cases:
            yield {"family": path.stem, "replace_all": False} | case | {"before": before(case)}


def before(case: Case) -> bytes:
    """The file's bytes."""
    return _bytes(case, "content", case.get("encoding", "utf-8"))


def after(case: Case) -> bytes | None:
    """The right bytes after the edit, or None where it has to be refused."""
    if "code" in case["expect"]:
        return None
    return _bytes(case["expect"], "after", case.get("encoding", "utf-8"))


def _bytes(fields: dict[str, Any], key: str, encoding: str) -> bytes:
    if f"{key}_base64" in fields:
        return base64.b64decode(fields[f"{key}_base64"])
    return fields[key].encode(encoding)


def judge(case: Case, answer: Answer) -> str:
    """What became of a case, as the name of a column."""
    right = after(case)
    if "after_base64" not in answer:
        return "missed" if right is not None else _judge_refusal(case, answer)
    got, stored = base64.b64decode(answer["after_base64"]), case["before"]
    if right is None:
        return "wrong_place"
    if got == right:
        same_class = answer.get("matched_with") in (None, case["expect"]["matched_with"])
        return "landed" if same_class else "wrong_class"
    head = _common(stored, right)
    tail = min(_common(stored[::-1], right[::-1]), min(len(stored), len(right)) - head)
    if got[:head] == stored[:head] and got[len(got) - tail :] == stored[len(stored) - tail :]:
        return "wrong_text"
    # Nothing of the right span was touched: the edit went somewhere else.
    touched = _common(stored, got), len(stored) - _common(stored[::-1], got[::-1])
    is_elsewhere = touched[1] <= head or touched[0] >= len(stored) - tail
    return "wrong_place" if is_elsewhere else "outside_changed"


def _judge_refusal(case: Case, answer: Answer) -> str:
    """What became of a case that had to be refused, and was."""
    if answer["code"] != case["expect"]["code"]:
        return "wrong_code"
    return "refused" if "mistakes" not in answer or _is_helped(case, answer) else "wrong_help"


def _is_helped(case: Case, answer: Answer) -> bool:
    """Whether a refusal names the mistake, and the call that it proposes is the one meant."""
    expect = case["expect"]
    if "mistake" not in expect:
        return "corrected_base64" not in answer
    right = _bytes(expect, "corrected", case.get("encoding", "utf-8"))
    corrected = base64.b64decode(answer.get("corrected_base64", ""))
    return answer["mistakes"] == [expect["mistake"]] and corrected == right


def _common(one: bytes, other: bytes) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def refusals() -> dict[type[Exception], str]:
    """What the engine of this repository raises, and the code that each stands for."""
    from handaxe.text import replace

    return {
        replace.SameText: "edit.no_change",
        replace.NoPlace: "edit.no_match",
        replace.AmbiguousMatch: "edit.many_matches",
        replace.UnencodableCharacter: "file.cannot_encode",
        replace.NotText: "file.binary",
    }


def handaxe_engine(case: Case) -> Answer:
    """The engine of this repository."""
    from handaxe.text import replace

    codes = refusals()
    try:
        made = replace.plan_replacement(
            case["before"], case["old_string"], case["new_string"], replace_all=case["replace_all"]
        )
    except tuple(codes) as refusal:
        return {"code": codes[type(refusal)], **_help(case, codes[type(refusal)])}
    data = base64.b64encode(made.apply(case["before"])).decode()
    return {"after_base64": data, "matched_with": made.matched_with}


def _help(case: Case, code: str) -> Answer:
    """What is named as the mistake, and the file after the proposed call."""
    from handaxe.text import replace
    from handaxe.text.encoding import decode
    from handaxe.text.replace.corrections import find_correction

    if code != "edit.no_match":
        return {}
    old, new, content = case["old_string"], case["new_string"], case["before"]
    found = find_correction(content, decode(content).text, old, new)
    if found is None:
        return {"mistakes": []}
    if found.old is None or found.new is None:
        return {"mistakes": list(found.mistakes)}
    corrected = replace.plan_replacement(content, found.old, found.new).apply(content)
    data = base64.b64encode(corrected).decode()
    return {"mistakes": list(found.mistakes), "corrected_base64": data}


class CommandEngine:
    """An engine behind a command that answers every line on its input with one on its output."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, case: Case) -> Answer:
        """The command's answer for one case."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        request = {key: case[key] for key in ("id", "old_string", "new_string", "replace_all")}
        request["content_base64"] = base64.b64encode(case["before"]).decode()
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"{self._command} gave no answer for {case['id']}")
        return json.loads(line)

    def close(self) -> None:
        """Ends the command."""
        self._process.communicate()


def run(engine: Engine, folder: Path = HERE) -> dict[str, Any]:
    """The counts for each family and in all, and the cases that went wrong."""
    counts: dict[str, Counter[str]] = {}
    failures: list[dict[str, str]] = []
    for case in load(folder):
        verdict = judge(case, engine(case))
        counts.setdefault(case["family"], Counter()).update(["cases", verdict])
        if verdict not in GOOD:
            failures.append({"id": case["id"], "verdict": verdict, "summary": case["summary"]})
    total = sum(counts.values(), Counter[str]())
    families = {
        name: {column: count[column] for column in COLUMNS} for name, count in counts.items()
    }
    return {
        "families": families,
        "total": {column: total[column] for column in COLUMNS},
        "failures": failures,
    }


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    rows = [*report["families"].items(), ("total", report["total"])]
    lines = [f"{'':18}" + "".join(f"{column:>16}" for column in COLUMNS)]
    lines += [f"{name:18}" + "".join(f"{row[c]:>16}" for c in COLUMNS) for name, row in rows]
    lines += [f"{f['verdict']:16} {f['id']}" for f in report["failures"]]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the corpus; 1 unless it is perfect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--command", help="an engine: JSON lines in, JSON lines out")
    options = parser.parse_args()
    if options.command:
        engine = CommandEngine(options.command)
        report = run(engine)
        engine.close()
    else:
        report = run(handaxe_engine)
    sys.stdout.write(json.dumps(report, indent=2) + "\n" if options.json else table(report))
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
