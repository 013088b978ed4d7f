"""Writes the generated part of the edit corpus: `python corpus/generate.py`.

Every case is made from a text whose right answer is known before it is distorted: the edit is done
first, on plain text, and only then are file and call written in different styles. No replacement
engine is asked; nothing of handaxe is imported.
"""

import base64
import json
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TAB, TWO, FOUR, EIGHT = "\t", "  ", "    ", "        "
NAMES = {TAB: "tabs", TWO: "2 spaces", FOUR: "4 spaces", EIGHT: "8 spaces"}
Case = dict[str, Any]

LETTERS = {
    "gbk": ("读取配置文件并检查内容", "写入新的配置"),
    "gb18030": ("读取配置文件并检查𠀀内容", "写入新的配置𠀁"),
    "big5": ("讀取設定檔案並檢查內容", "寫入新的設定"),
    "shift_jis": ("設定ファイルを読み込んで確認する", "新しい設定を書き込む"),
    "euc-jp": ("設定ファイルを読み込んで確認する", "新しい設定を書き込む"),
    "euc-kr": ("설정 파일을 읽고 내용을 확인한다", "새 설정을 기록한다"),
    "koi8-r": ("Прочитать файл настроек и проверить его", "Записать новые настройки"),
    "windows-1251": ("Прочитать файл настроек и проверить его", "Записать новые настройки"),
    "windows-1252": ("Größe der Übersicht für später prüfen – „schön“", "Änderung übernehmen"),
    "utf-8-sig": ("Größe prüfen — 设置", "Änderung 写入"),
    "utf-16": ("Größe prüfen — 设置", "Änderung 写入"),
    "utf-32": ("Größe prüfen — 设置", "Änderung 写入"),
}
# In the file, and how a model types it; the word to change, and what it becomes.
PROSE = (
    ("Don’t panic: it’s only a draft.", "Don't panic: it's only a draft.", "draft", "test"),
    ("She said “yes” and left.", 'She said "yes" and left.', "left", "stayed"),
    ("Pages 10–20 cover the basics.", "Pages 10-20 cover the basics.", "basics", "details"),
    ("Wait — there is more to say.", "Wait - there is more to say.", "say", "tell"),
    ("The distance is 42\u00a0km by road.", "The distance is 42 km by road.", "road", "rail"),
    ("A gap of 5\u202f% was measured.", "A gap of 5 % was measured.", "measured", "found"),
    ("Il a dit ‚non‘ hier soir.", "Il a dit 'non' hier soir.", "hier", "lundi"),
    ("Er sagte „nein“ und ging fort.", 'Er sagte "nein" und ging fort.', "ging", "lief"),
    ("The value is −5 degrees today.", "The value is -5 degrees today.", "today", "now"),
    ("A well‐known, long‑term plan.", "A well-known, long-term plan.", "plan", "idea"),
    ("print(“hello world”)", 'print("hello world")', "hello", "goodbye"),
    ("name = ‘value’", "name = 'value'", "value", "other"),
    ("x = 'plain'", "x = ‘plain’", "plain", "simple"),
    ('title = "plain text"', "title = “plain text”", "text", "words"),
    ("range = 10-20", "range = 10–20", "20", "30"),
    ("rock ’n’ roll is “here to stay”", "rock 'n' roll is \"here to stay\"", "stay", "go"),
)


def main() -> None:
    """Writes one JSON Lines file for each family."""
    data = tomllib.loads((HERE / "snippets.toml").read_text("utf-8"))
    edits = [(snippet, edit) for snippet in data["snippet"] for edit in snippet["edits"]]
    for family in (
        exact, tab_files, space_files, line_endings, mixed_endings, trailing_blanks, ambiguous,
        everywhere, absent, mistaken, encodings, prose,
    ):  # fmt: skip
        cases = list(family(edits))
        lines = [json.dumps(case, ensure_ascii=True) for case in cases]
        (HERE / "edit" / f"{family.__name__}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        sys.stdout.write(f"{len(cases):4} {family.__name__}\n")


def styled(text: str, unit: str = TAB, ending: str = "\n") -> str:
    """`text`, indented with tabs and broken with LF, in another style."""
    lines = [
        unit * (len(line) - len(line.lstrip("\t"))) + line.lstrip("\t") for line in text.split("\n")
    ]
    return ending.join(lines)


def done(snippet: Case, edit: Case) -> str:
    """The whole file after the edit, still in the plain style."""
    assert snippet["file"].count(edit["old"]) == 1
    return snippet["file"].replace(edit["old"], edit["new"])


def case(family: str, snippet: Case, edit: Case, how: str, **fields: object) -> Case:
    """One case with a name of its own."""
    name = f"{family}/{snippet['id']}/{edit['id']}/{how}".replace(" ", "_")
    return {
        "id": name,
        "summary": f"{snippet['language']}: {how}.",
        "language": snippet["language"],
        **fields,
    }


def call(old: str, new: str, *, replace_all: bool = False) -> Case:
    """What a model sends."""
    return {"old_string": old, "new_string": new, "replace_all": replace_all}


def lands(after: str, matched_with: str) -> Case:
    """The file as it has to be afterwards."""
    return {"expect": {"after": after, "matched_with": matched_with}}


def refused(code: str) -> Case:
    """The refusal that has to come."""
    return {"expect": {"code": code}}


def exact(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """The text as it is in the file, and calls that change nothing."""
    for snippet, edit in edits:
        fields = call(edit["old"], edit["new"]) | lands(done(snippet, edit), "exact")
        yield case("exact", snippet, edit, "the text as it is", content=snippet["file"], **fields)
    for snippet, edit in edits[::4]:
        fields = call(edit["old"], edit["old"]) | refused("edit.no_change")
        yield case("exact", snippet, edit, "nothing to change", content=snippet["file"], **fields)


def tab_files(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Files with tabs, text given with spaces: the most reported failure of all."""
    for snippet, edit in edits:
        after = lands(done(snippet, edit), "indentation")
        for unit in (TWO, FOUR, EIGHT):
            fields = call(styled(edit["old"], unit), styled(edit["new"], unit)) | after
            how = f"tabs in the file, {NAMES[unit]} given"
            yield case("tab_files", snippet, edit, how, content=snippet["file"], **fields)
        old, new = _dedented_together(edit)
        if old != edit["old"]:
            fields = call(styled(old, FOUR), styled(new, FOUR)) | after
            how = "tabs in the file, given without the outer indentation"
            yield case("tab_files", snippet, edit, how, content=snippet["file"], **fields)


def _dedented_together(edit: Case) -> list[str]:
    """Both texts of an edit without the indentation that all their lines have."""
    lines = [line for key in ("old", "new") for line in edit[key].splitlines() if line.strip()]
    depth = min(len(line) - len(line.lstrip("\t")) for line in lines)
    return [
        "".join(f"{line[depth:]}\n" for line in edit[key].splitlines()) for key in ("old", "new")
    ]


def space_files(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Files with spaces, text given with tabs or other steps."""
    styles = cycle([(TWO, FOUR), (FOUR, TWO), (FOUR, TAB), (TWO, TAB), (EIGHT, TAB), (FOUR, EIGHT)])
    for (snippet, edit), (stored, given) in zip(edits, styles, strict=False):
        content, after = styled(snippet["file"], stored), styled(done(snippet, edit), stored)
        fields = call(styled(edit["old"], given), styled(edit["new"], given))
        how = f"{NAMES[stored]} in the file, {NAMES[given]} given"
        # Wider spaces hold narrower ones: where lines begin with them, the text may fit exactly.
        if styled(edit["old"], given) not in content:
            fields |= lands(after, "indentation")
            yield case("space_files", snippet, edit, how, content=content, **fields)


def line_endings(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Files with one kind of ending, text given with another."""
    for snippet, edit in edits:
        for stored, given, name in (
            ("\r\n", "\n", "CRLF in the file, LF given"),
            ("\n", "\r\n", "LF in the file, CRLF given"),
            ("\r", "\n", "CR in the file, LF given"),
        ):
            content = styled(snippet["file"], ending=stored)
            after = styled(done(snippet, edit), ending=stored)
            fields = call(styled(edit["old"], ending=given), styled(edit["new"], ending=given))
            fields |= lands(after, "line_endings")
            yield case("line_endings", snippet, edit, name, content=content, **fields)
    for snippet, edit in edits[::2]:
        content = styled(snippet["file"], ending="\r\n")
        after = styled(done(snippet, edit), ending="\r\n")
        fields = call(styled(edit["old"], FOUR), styled(edit["new"], FOUR))
        fields |= lands(after, "indentation")
        how = "CRLF and tabs in the file, LF and spaces given"
        yield case("line_endings", snippet, edit, how, content=content, **fields)


def mixed_endings(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Files with mixed endings.

    Lines keep their own ending, changed lines that of the line they replace, new ones that of the
    line before them.
    """
    for (snippet, edit), pattern in zip(edits, cycle([3, 2, 5]), strict=False):
        lines = snippet["file"].splitlines()
        ends = ["\r\n" if n % pattern == 0 else "\n" for n in range(len(lines))]
        old, new = edit["old"].splitlines(), edit["new"].splitlines()
        first = next(n for n in range(len(lines)) if lines[n : n + len(old)] == old)
        head = next(
            (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
            min(len(old), len(new)),
        )
        rest = min(len(old), len(new)) - head
        tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
        theirs = ends[first : first + len(old)]
        middle, wanted = theirs[head : len(old) - tail], len(new) - tail - head
        if len(middle) > 1 and wanted > 1:
            continue
        fill = middle[-1] if middle else (ends[first + head - 1] if first + head else ends[0])
        inner = [*middle[:wanted], *[fill] * (wanted - len(middle))]
        after_ends = [
            *ends[:first],
            *theirs[:head],
            *inner,
            *theirs[len(old) - tail :],
            *ends[first + len(old) :],
        ]
        after_lines = [*lines[:first], *new, *lines[first + len(old) :]]
        content = "".join(map("".join, zip(lines, ends, strict=True)))
        after = "".join(map("".join, zip(after_lines, after_ends, strict=True)))
        if edit["old"] not in content:
            fields = call(edit["old"], edit["new"]) | lands(after, "line_endings")
            yield case(
                "mixed_endings",
                snippet,
                edit,
                "mixed endings in the file",
                content=content,
                **fields,
            )


def trailing_blanks(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Blanks at the end of a line, in the file only or in the call only."""
    for snippet, edit in edits:
        old, new = edit["old"].splitlines(), edit["new"].splitlines()
        if old[0] != new[0]:
            continue
        # The first line stays in every one of these edits, so its blanks in the file stay too.
        start = snippet["file"].index(edit["old"])
        at = start + len(old[0])
        content = snippet["file"][:at] + "  " + snippet["file"][at:]
        after = done(snippet, edit)
        after = after[:at] + "  " + after[at:]
        fields = call(edit["old"], edit["new"]) | lands(after, "trailing_blanks")
        yield case(
            "trailing_blanks", snippet, edit, "blanks only in the file", content=content, **fields
        )
        given_old, given_new = (
            f"{lines[0]} \n" + "\n".join(lines[1:]) + "\n" for lines in (old, new)
        )
        fields = call(given_old, given_new) | lands(done(snippet, edit), "trailing_blanks")
        yield case(
            "trailing_blanks",
            snippet,
            edit,
            "blanks only in the call",
            content=snippet["file"],
            **fields,
        )


def ambiguous(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """The same text twice: whatever the class, one place may not be picked."""
    ways = cycle([("exact", TAB, "\n"), ("indentation", FOUR, "\n"), ("line endings", TAB, "\r\n")])
    for (snippet, edit), (name, given, ending) in zip(edits, ways, strict=False):
        content = styled(snippet["file"] + "\n" + snippet["file"], ending=ending)
        fields = call(styled(edit["old"], given), styled(edit["new"], given))
        fields |= refused("edit.many_matches")
        yield case("ambiguous", snippet, edit, f"two places fit, {name}", content=content, **fields)


def everywhere(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """The same text twice, and both asked for."""
    ways = cycle([("exact", TAB, "\n"), ("indentation", FOUR, "\n"), ("line_endings", TAB, "\r\n")])
    for (snippet, edit), (name, given, ending) in zip(edits[::2], ways, strict=False):
        content = styled(snippet["file"] + "\n" + snippet["file"], ending=ending)
        after = styled(done(snippet, edit) + "\n" + done(snippet, edit), ending=ending)
        fields = call(styled(edit["old"], given), styled(edit["new"], given), replace_all=True)
        fields |= lands(after, name)
        yield case("everywhere", snippet, edit, f"replace all, {name}", content=content, **fields)


def absent(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Texts that a model got wrong: refused, however near they are."""
    for number, (snippet, edit) in enumerate(edits):
        lines = edit["old"].splitlines()
        distortions = {
            "a letter is wrong": edit["old"].replace("e", "E", 1),
            "a line is missing": "\n".join([lines[0], *lines[2:], "no such line"]) + "\n",
            "lines are swapped": "\n".join([*lines[1:], lines[0]]) + "\n",
            "spaces inside a line differ": edit["old"].replace(
                lines[-1].strip(), lines[-1].strip() + " ;  x"
            ),
            "the indentation is flattened": "\n".join(line.strip() for line in lines) + "\n",
        }
        how, old = list(distortions.items())[number % len(distortions)]
        depths = {len(line) - len(line.lstrip("\t")) for line in lines if line.strip()}
        if old == edit["old"] or (how == "the indentation is flattened" and len(depths) == 1):
            continue
        fields = call(old, edit["new"]) | refused("edit.no_match")
        yield case("absent", snippet, edit, how, content=snippet["file"], **fields)


def mistaken(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Known mistakes: refused, with the call that was meant."""
    ways = cycle(
        ["line numbers", "escapes", "a blank line too many", "a blank line missing", "composition"]
    )
    for (snippet, edit), way in zip(edits, ways, strict=False):
        old, new = edit["old"].splitlines(), edit["new"].splitlines()
        content, after, first = snippet["file"], done(snippet, edit), f"{old[0]}\n"
        if "blank line" in way and (old[0] != new[0] or len(old) < 2 or content.count(first) > 1):
            continue
        given = [edit["old"], edit["new"]]
        if way == "line numbers":
            begin = content[: content.index(edit["old"])].count("\n") + 1
            given = [_numbered(lines, begin) for lines in (old, new)]
        elif way == "escapes":
            given = [json.dumps(text, ensure_ascii=False)[1:-1] for text in given]
        elif way == "a blank line too many":
            given = [text.replace(first, f"{first}\n", 1) for text in given]
        elif way == "a blank line missing":
            content, after = (text.replace(first, f"{first}\n", 1) for text in (content, after))
        else:
            name = "Ame\u0301lie Lefe\u0300vre\n"
            content, after = name + content, name + after
            given = [unicodedata.normalize("NFC", name) + text for text in given]
            if not content.startswith(name + edit["old"]):
                given = [unicodedata.normalize("NFC", name), "Amélie Lefèvre, 2nd\n"]
                after = f"{name[:-1]}, 2nd\n{snippet['file']}"
        expect = {"code": "edit.no_match", "mistake": _MISTAKES[way], "corrected": after}
        fields = call(*given) | {"expect": expect}
        yield case("mistaken", snippet, edit, f"{way} in the call", content=content, **fields)


_MISTAKES = {
    "line numbers": "line_numbers",
    "escapes": "escaped",
    "a blank line too many": "blank_lines",
    "a blank line missing": "blank_lines",
    "composition": "composition",
}


def _numbered(lines: list[str], first: int) -> str:
    return "".join(f"{number:6d}→{line}\n" for number, line in enumerate(lines, first))


def encodings(edits: list[tuple[Case, Case]]) -> Iterator[Case]:
    """The same edits in other encodings, and letters that an encoding lacks."""
    for (encoding, (words, fresh)), (snippet, edit) in zip(
        LETTERS.items(), cycle(edits), strict=False
    ):
        head = f"{words}\n{words} 1\n"
        stored = _stored(head + snippet["file"], encoding)
        for how, old, new, after, matched_with in (
            (
                "plain text beside other letters",
                edit["old"],
                edit["new"],
                head + done(snippet, edit),
                "exact",
            ),
            (
                "other letters replaced",
                f"{words} 1",
                f"{fresh} 2",
                f"{words}\n{fresh} 2\n" + snippet["file"],
                "exact",
            ),
            (
                "spaces for tabs",
                styled(edit["old"], FOUR),
                styled(edit["new"], FOUR),
                head + done(snippet, edit),
                "indentation",
            ),
        ):
            expect = {"after_base64": _stored(after, encoding), "matched_with": matched_with}
            fields = call(old, new) | {"expect": expect}
            yield case(
                "encodings", snippet, edit, f"{encoding}, {how}", content_base64=stored, **fields
            )
        if not encoding.startswith(("utf", "gb18030")):
            fields = call(f"{words} 1", "\U0001f600") | refused("file.cannot_encode")
            yield case(
                "encodings",
                snippet,
                edit,
                f"{encoding}, a sign it lacks",
                content_base64=stored,
                **fields,
            )
        if not encoding.startswith("utf"):
            crlf = _stored((head + snippet["file"]).replace("\n", "\r\n"), encoding)
            after = _stored((head + done(snippet, edit)).replace("\n", "\r\n"), encoding)
            fields = call(edit["old"], edit["new"])
            fields |= {"expect": {"after_base64": after, "matched_with": "line_endings"}}
            yield case(
                "encodings", snippet, edit, f"{encoding}, CRLF", content_base64=crlf, **fields
            )


def _stored(text: str, encoding: str) -> str:
    return base64.b64encode(text.encode(encoding)).decode()


def prose(_: list[tuple[Case, Case]]) -> Iterator[Case]:
    """Typographic signs in the file or in the call."""
    page = "# Notes\n\nFirst paragraph without any signs.\n{}\nLast paragraph, also plain.\n"
    for number, (stored, given, word, fresh) in enumerate(PROSE):
        snippet, edit = {"id": f"line_{number}", "language": "Markdown"}, {"id": word}
        content, after = page.format(stored), page.format(stored.replace(word, fresh))
        fields = call(given, given.replace(word, fresh))
        yield case(
            "prose",
            snippet,
            edit,
            "other signs than given",
            content=content,
            **fields,
            **lands(after, "quotes"),
        )
        crlf = {"content": content.replace("\n", "\r\n")}
        around = "signs.\n{}\nLast"
        fields = call(around.format(given), around.format(given.replace(word, fresh)))
        fields |= lands(after.replace("\n", "\r\n"), "quotes")
        yield case("prose", snippet, edit, "other signs and endings", **crlf, **fields)
        fields = call(given.replace(word, word + "s"), fresh) | refused("edit.no_match")
        yield case(
            "prose", snippet, edit, "other signs and another word", content=content, **fields
        )
        twice = {"content": content + content}
        fields = call(given, given.replace(word, fresh)) | refused("edit.many_matches")
        yield case("prose", snippet, edit, "other signs in two places", **twice, **fields)


if __name__ == "__main__":
    main()
