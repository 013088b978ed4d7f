"""Runs the edit corpus in every format an edit can be sent in, and counts what each one costs.

    python corpus/formats.py           # one line for each format
    python corpus/formats.py --json    # the same as JSON, with every failure

The cases are those of `run.py`, which hold an old and a new text. They are put into the other
formats mechanically: a list with one edit; a patch whose hunk holds the whole lines of the old
text, or, where every place is meant, hunks with three lines around them, or as many as make them
clear; and the fewest changes of tagged lines that come to the same. No model is asked, so this
says what a format can express, whether the engine lands it, and how long it is; not how well a
model writes it (`bench/edit_formats.py`). Exit code 1 unless every case that a format can express
ends as it should.
"""

import argparse
import base64
import difflib
import json
import sys
from collections import Counter
from typing import Any

import run

FORMATS = ("replace", "multi", "patch", "lines")
PATH = "src/file.txt"
CONTEXT = 3
Case = dict[str, Any]
Answer = dict[str, Any]


def sent(case: Case, name: str) -> dict[str, Any] | None:
    """The input of the call that asks for a case; None where the format cannot say it."""
    edit = {"old_string": case["old_string"], "new_string": case["new_string"]}
    if case["replace_all"]:
        edit["replace_all"] = True
    if name == "replace":
        return {"file_path": PATH, **edit}
    if name == "multi":
        return {"file_path": PATH, "edits": [edit]}
    if name == "lines":
        changes = changes_of(case)
        return changes and {"file_path": PATH, "changes": changes}
    hunks = hunks_of(case)
    if hunks is None:
        return None
    lines = ["*** Begin Patch", f"*** Update File: {PATH}", *hunks, "*** End Patch"]
    return {"input": "\n".join(lines)}


def hunks_of(case: Case) -> list[str] | None:
    """The hunks that ask for what a case asks for; None where whole lines cannot say it."""
    text = decoded(case["before"])
    if case["replace_all"]:
        right = run.after(case)
        return None if right is None else diff_hunks(lines_of(text), lines_of(decoded(right)))
    old, new = case["old_string"], case["new_string"]
    lands = "code" not in case["expect"]
    count = places(text, old)
    if count == 1:
        old, new = in_whole_lines(text, old, new)
    elif lands and count:
        # Only its line endings tell one place from the other.
        return None
    else:
        old, new = with_first_and_last_line(text, old, new)
    before, after = lines_of(old), lines_of(new)
    cuts_lines = not lands and count and not is_run(before, lines_of(text))
    is_at_end = old.endswith("\n") and text.endswith(old[:-1])
    if cuts_lines or is_at_end or (before == after and old != new):
        return None
    hunk = marked(before, after)
    return ["@@", *hunk] if hunk else None


def changes_of(case: Case) -> list[dict[str, str]] | None:
    """The changes of tagged lines that come to what a case asks for; None where none do.

    Whoever names a line by its number cannot name two, or one that is not there: cases that have
    to be refused for that cannot be said. Lines that differ in their endings alone look alike.
    """
    from handaxe.text.line_tags import make_line_ref

    text = decoded(case["before"])
    old, right = lines_of(text), run.after(case)
    if right is not None:
        new = lines_of(decoded(right))
    elif places(text, case["old_string"]) == 1:
        new = lines_of(text.replace(case["old_string"], case["new_string"]))
    else:
        return None
    if old == new:
        if right is not None:
            return None
        same = text[: text.index(case["old_string"])].count("\n")
        return [{"first": str(make_line_ref(same + 1, old[same])), "text": old[same]}]
    refs = [str(make_line_ref(number, line)) for number, line in enumerate(old, 1)]
    changes: list[dict[str, str]] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        text = "\n".join(new[c:d]) or "\n" * (d > c)
        if tag == "insert":
            changes.append({"after": refs[a - 1] if a else "0", "text": text})
        elif tag != "equal":
            last = {"last": refs[b - 1]} if b - a > 1 else {}
            changes.append({"first": refs[a], **last, "text": text})
    return changes


def places(text: str, part: str) -> int:
    """How often a part is in a text, overlapping ones included."""
    return sum(text.startswith(part, at) for at in range(len(text)))


def in_whole_lines(text: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with the rest of the lines that the old one stands in."""
    begin = text.index(old)
    first = text.rfind("\n", 0, begin) + 1
    end = begin + len(old)
    last = end if text[end - 1] == "\n" and new.endswith("\n") else text.find("\n", end)
    last = len(text) if last < 0 else last
    return text[first:last], text[first:begin] + new + text[end:last]


def with_first_and_last_line(text: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with whole lines at their ends, where those of the file are beyond doubt."""
    lines = lines_of(text)
    bare = {line.strip() for line in lines}
    head, _, rest = old.partition("\n")
    ends = [line for line in lines if head and line.rstrip().endswith(head)]
    is_part = head.strip() not in bare or is_run(lines_of(rest), lines)
    if rest and new.startswith(head) and len(ends) == 1 and is_part:
        line = ends[0].rstrip()
        old, new = line + old[len(head) :], line + new[len(head) :]
    before, _, tail = old.rpartition("\n")
    begins = [line for line in lines if tail and line.startswith(tail)]
    if before and new.endswith(tail) and len(begins) == 1 and tail.strip() not in bare:
        return old + begins[0][len(tail) :], new + begins[0][len(tail) :]
    return old, new


def is_run(part: list[str], lines: list[str]) -> bool:
    """Whether some lines stand in a file as whole lines."""
    return any(lines[at : at + len(part)] == part for at in range(len(lines)))


def marked(old: list[str], new: list[str]) -> list[str]:
    """Lines of a hunk."""
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            lines += [f" {line}" for line in old[a:b]]
        else:
            lines += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
    return lines


def diff_hunks(old: list[str], new: list[str]) -> list[str] | None:
    """All changes, with so many lines around them that every hunk fits one place."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for context in range(CONTEXT, len(old) + CONTEXT):
        lines: list[str] = []
        is_clear = True
        for group in matcher.get_grouped_opcodes(context):
            (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
            found = [at for at in range(len(old)) if old[at : at + b - a] == old[a:b]]
            is_clear = is_clear and found == [a]
            lines += ["@@", *marked(old[a:b], new[c:d])]
        if is_clear:
            return lines or None
    return None


def decoded(data: bytes) -> str:
    """A file as a model is shown it, with LF."""
    from handaxe.text.encoding import decode

    text = decode(data).text.replace("\r\n", "\n")
    return text if "\n" in text else text.replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """The lines of a text; a line break at its end begins no other."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def answer(case: Case, call: dict[str, Any], name: str) -> Answer:
    """What handaxe makes of the call."""
    codes = run.refusals()
    try:
        plan = plan_of(case["before"], call, name)
    except tuple(codes) as refusal:
        return {"code": codes[type(refusal)]}
    made = {"after_base64": base64.b64encode(plan.apply(case["before"])).decode()}
    # Whole lines differ in their endings where a part of one does not: classes are not compared.
    return made if name in ("patch", "lines") else {**made, "matched_with": plan.matched_with}


def plan_of(content: bytes, call: dict[str, Any], name: str) -> Any:  # noqa: ANN401
    """The plan of one call, by the engine behind its tool."""
    from handaxe.text import replace
    from handaxe.text.replace.chain import join_plans
    from handaxe.text.replace.line_edits import LineEdits
    from handaxe.text.replace.patch_format import parse_patch

    if name == "lines":
        return tagged_plan(content, call)
    if name == "patch":
        edits = LineEdits(content)
        for hunk in parse_patch(call["input"])[0].hunks:
            edits.add(hunk)
        return edits.plan()
    plans: list[replace.Plan] = []
    now = content
    for edit in call["edits"] if name == "multi" else [call]:
        every = edit.get("replace_all", False)
        plans.append(
            replace.plan_replacement(now, edit["old_string"], edit["new_string"], replace_all=every)
        )
        now = plans[-1].apply(now)
    return join_plans(content, plans)


def tagged_plan(content: bytes, call: dict[str, Any]) -> Any:  # noqa: ANN401
    """The plan of one call of EditLines, which refuses with faults."""
    from handaxe.contract.faults import ToolFault
    from handaxe.session.line_numbering import LineCandidates, LineNumberHistory
    from handaxe.tools.files.edit_lines import EditLinesArgs, OneChange, parse_wanted_changes
    from handaxe.tools.files.tagged_lines import plan_tagged

    def as_shown(number: int) -> LineCandidates:
        return LineNumberHistory().find_candidates(number)

    codes = {code: refusal for refusal, code in run.refusals().items()}
    changes = [OneChange(**change) for change in call["changes"]]
    args = EditLinesArgs(file_path=call["file_path"], changes=changes)
    try:
        return plan_tagged(content, PATH, parse_wanted_changes(args), as_shown).plan
    except ToolFault as fault:
        raise codes[fault.code].__new__(codes[fault.code]) from None


def as_read(case: Case, name: str) -> str:
    """The file as Read shows it to whoever edits in a format."""
    from handaxe.text.line_tags import format_tagged_lines
    from handaxe.text.line_window import number_lines

    lines = lines_of(decoded(case["before"]))
    return format_tagged_lines(lines, 1) if name == "lines" else number_lines(lines, 1)


def measure() -> dict[str, Any]:
    """Counts, tokens and failures for each format; tokens over the cases that all can express."""
    from handaxe.text.tokens import estimate_tokens

    report: dict[str, Any] = {}
    cases = list(run.load())
    calls = {name: [sent(case, name) for case in cases] for name in FORMATS}
    shared = [n for n in range(len(cases)) if all(calls[name][n] for name in FORMATS)]
    for name in FORMATS:
        counts: Counter[str] = Counter()
        failures: list[dict[str, str]] = []
        for case, call in zip(cases, calls[name], strict=True):
            if call is None:
                counts["not_expressible"] += 1
                continue
            verdict = run.judge(case, answer(case, call, name))
            counts.update(["cases", verdict])
            if verdict not in run.GOOD:
                failures.append({"id": case["id"], "verdict": verdict})
        tokens = [estimate_tokens(json.dumps(calls[name][n], ensure_ascii=False)) for n in shared]
        report[name] = {
            **{column: counts[column] for column in (*run.COLUMNS, "not_expressible")},
            "tokens": sum(tokens),
            "tokens_per_call": round(sum(tokens) / len(shared), 1),
            "tokens_per_read": round(
                sum(estimate_tokens(as_read(cases[n], name)) for n in shared) / len(shared), 1
            ),
            "failures": failures,
        }
    return report


def main() -> int:
    """Prints the report; 1 unless it is perfect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    report = measure()
    if parser.parse_args().json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        columns = [key for key in report["replace"] if key != "failures"]
        sys.stdout.write(f"{'':10}" + "".join(f"{column:>16}" for column in columns) + "\n")
        for name, row in report.items():
            sys.stdout.write(f"{name:10}" + "".join(f"{row[key]:>16}" for key in columns) + "\n")
            for failure in row["failures"]:
                sys.stdout.write(f"  {failure['verdict']:16} {failure['id']}\n")
    return 1 if any(row["failures"] for row in report.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
