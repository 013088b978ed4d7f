"""Read: text windows at their edges, encodings, and what is not a file at all."""

import os
import socket
from pathlib import Path

import pytest

from handaxe import Session


async def test_a_cut_line_says_how_to_go_on_and_the_next_call_does(session, project: Path):
    (project / "long.txt").write_text("ab" * 2500 + "\nshort\n")
    first = await session.call("Read", file_path="long.txt")
    assert "Line 1 is cut: 2,000 of 5,000 characters shown" in first.text
    assert "offset=1, limit=1, column=2001)" in first.text
    rest = await session.call("Read", file_path="long.txt", offset=1, limit=1, column=4001)
    assert rest.data["file"]["content"] == "ab" * 500
    assert "is cut" not in rest.text


async def test_many_cut_lines_do_not_fill_the_page_with_notices(session, project: Path):
    (project / "wide.txt").write_text(("x" * 2001 + "\n") * 150)
    result = await session.call("Read", file_path="wide.txt")
    assert result.text.count(" is cut:") == 5
    assert "145 more lines are cut, the first of them 6." in result.text


async def test_a_single_huge_line_is_readable_to_its_end(session, project: Path):
    (project / "one.js").write_text("x" * 3_000_000 + "END")
    result = await session.call("Read", file_path="one.js")
    assert result.ok
    assert len(result.text) < 5_000
    end = await session.call("Read", file_path="one.js", column=3_000_001)
    assert end.data["file"]["content"] == "END"


async def test_more_text_than_fits_is_cut_at_a_line(session, project: Path):
    (project / "much.txt").write_text(("y" * 1000 + "\n") * 1000)
    result = await session.call("Read", file_path="much.txt")
    assert result.data["file"]["numLines"] == 400
    assert result.data["file"]["truncatedByTokenCap"]
    assert "offset=401)" in result.text


@pytest.mark.parametrize("limit", [0, -1, -(2**63)])
async def test_a_limit_below_one_shows_one_line_and_says_so(session, project: Path, limit: int):
    (project / "a.txt").write_text("1\n2\n3\n")
    result = await session.call("Read", file_path="a.txt", limit=limit)
    assert result.data["file"]["content"] == "1"
    assert f"limit {limit} was raised to 1" in result.text


@pytest.mark.parametrize("lines", [3, 300_000])
@pytest.mark.parametrize("offset", [2**63 - 1, -(2**63)])
async def test_the_farthest_offsets_are_answered(session, project: Path, offset: int, lines: int):
    (project / "a.txt").write_text("word\n" * lines)
    result = await session.call("Read", file_path="a.txt", offset=offset, limit=2**63 - 1)
    assert result.ok
    if offset > 0:
        assert "past its end" in result.text
        assert "offset=-20)" in result.text
    else:
        assert result.data["file"]["startLine"] == 1


@pytest.mark.parametrize("column", [0, -5, 2**63 - 1])
async def test_any_column_is_answered(session, project: Path, column: int):
    (project / "a.txt").write_text("abc\n")
    result = await session.call("Read", file_path="a.txt", column=column)
    assert result.data["file"]["content"] == ("abc" if column < 1 else "")


async def test_pages_of_a_text_file_are_ignored_and_that_is_said(session, project: Path):
    (project / "a.txt").write_text("abc\n")
    result = await session.call("Read", file_path="a.txt", pages="1-3")
    assert result.data["file"]["content"] == "abc"
    assert "`pages` applies only to PDFs" in result.text


ENCODED = {
    "gbk": "这个文件是用简体中文写的，里面有一些注释。\n读取文件的函数在这里。\n",
    "shift_jis": "これは日本語のコメントです。\nファイルを読み込む関数。\n",
    "euc-kr": "이것은 한국어 주석입니다.\n파일을 읽는 함수입니다.\n",
    "big5": "這個檔案是用繁體中文寫的，裡面有一些註解。\n讀取檔案的函式。\n",
    "windows-1252": "“Größe” – naïve café, 5 € pro Stück\n",
    "koi8-r": "Это комментарий на русском языке.\nФункция читает файл.\n",
}


@pytest.mark.parametrize("encoding", ENCODED)
async def test_legacy_encodings_are_read_and_named(session, project: Path, encoding: str):
    (project / "old.txt").write_bytes(ENCODED[encoding].encode(encoding))
    result = await session.call("Read", file_path="old.txt")
    assert result.data["file"]["content"] == ENCODED[encoding].rstrip("\n")
    assert result.data["encoding"] == encoding
    assert f"stored as {encoding}" in result.text


async def test_latin_1_bytes_that_windows_does_not_know_are_read(session, project: Path):
    text = "Die Größe der Fläche ist überall gleich, für jede Höhe.\n\x81\x8d\n"
    (project / "old.txt").write_bytes(text.encode("latin-1"))
    result = await session.call("Read", file_path="old.txt")
    assert result.data["file"]["content"] == text.rstrip("\n")
    assert result.data["encoding"] == "iso-8859-1"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-be"])
async def test_byte_order_marks_are_understood_and_not_shown(session, project: Path, encoding: str):
    mark = "\ufeff" if encoding.endswith("be") else ""
    (project / "wide.txt").write_bytes((mark + "naïve → 汉字\nzwei\n").encode(encoding))
    result = await session.call("Read", file_path="wide.txt")
    assert result.data["file"]["content"] == "naïve → 汉字\nzwei"
    assert result.data["hasBom"]
    assert ("stored as" in result.text) == (encoding != "utf-8-sig")


@pytest.mark.parametrize("size", [100, 3_000_000])
async def test_binary_content_is_refused_whatever_the_name(session, project: Path, size: int):
    (project / "a.txt").write_bytes(b"text\0" + b"x" * size)
    result = await session.call("Read", file_path="a.txt")
    assert result.code == "file.binary"
    assert f"{size + 5:,} bytes" in result.text


async def test_text_with_a_name_of_binary_files_is_text(session, project: Path):
    (project / "a.dat").write_text("plain\n")
    (project / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>\n")
    (project / "a.png").write_text("not a picture\n")
    for name in ("a.dat", "a.svg", "a.png"):
        result = await session.call("Read", file_path=name)
        assert result.data["type"] == "text"


@pytest.fixture
def special(project: Path):
    """Things in the project that are no files."""
    os.mkfifo(project / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(project / "socket"))
    (project / "zero").symlink_to("/dev/zero")
    (project / "loop").symlink_to("loop")
    (project / "directory").mkdir()
    yield project
    listener.close()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("fifo", "file.not_regular"),
        ("socket", "file.not_regular"),
        ("zero", "file.not_regular"),
        ("directory", "file.is_directory"),
        ("/dev/zero", "file.not_regular"),
        ("/dev/stdin", "file.not_regular"),
        ("/dev/tty", "file.not_regular"),
        ("/proc/self/mem", "file.not_regular"),
        ("/proc/kmsg", "file.not_regular"),
        ("/proc/self/status", "file.not_regular"),
        ("/proc/self/environ", "file.not_regular"),
    ],
)
async def test_what_is_no_file_is_refused_and_never_waited_for(special: Path, name: str, code: str):
    async with Session(special, permission_mode="bypassPermissions") as session:
        result = await session.call("Read", file_path=name)
        assert result.code == code
        assert "Name a regular file" in result.text or "name a file" in result.text


async def test_a_file_of_the_kernels_settings_is_read_as_the_text_it_has(project: Path):
    """Files in /sys claim a whole page and hold a few letters."""
    place = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not place.exists():
        pytest.skip("this kernel has no such file")
    async with Session(project, permission_mode="bypassPermissions") as session:
        result = await session.call("Read", file_path=str(place))
        assert result.data["file"]["content"] == place.read_text().rstrip("\n")


async def test_a_loop_of_links_is_refused(special: Path):
    async with Session(special, permission_mode="bypassPermissions") as session:
        result = await session.call("Read", file_path="loop")
        assert not result.ok
        assert result.code in {"file.bad_path", "file.not_found"}


async def test_what_a_file_is_indented_with_is_known_and_tabs_are_told_once(session, project: Path):
    texts = {
        "tabs": "func f() {\n\tg()\n}\n",
        "spaces": "def f():\n    g()\n",
        "mixed": "a:\n\tb\n    c\n",
        "none": "a\tb\n c\n",
    }
    for name, text in texts.items():
        (project / name).write_text(text)
        first = await session.call("Read", file_path=name)
        again = await session.call("Read", file_path=name, offset=2)
        assert (first.data["indentation"] or "none") == name
        assert "indented" not in first.text
        assert [("tabs" in note) for note in first.notes] == ([True] if "\n\t" in text else [])
        assert again.notes == ()


@pytest.mark.proves("FT-2")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
async def test_the_first_part_of_a_long_file_comes_with_an_outline(session, project, encoding):
    lines = [f"# Part {n} é\n\n" + "text é\n" * 998 for n in range(4)]
    (project / "long.md").write_text("".join(lines), encoding=encoding)
    first = await session.call("Read", file_path="long.md")
    marks = [{"line": 1 + 1_000 * n, "text": f"# Part {n} é"} for n in range(4)]
    assert first.data["outline"] == {"marks": marks, "total": 4}
    assert "To continue: Read(" in first.text
    assert "| 2001 # Part 2 é |" in first.text
    for more in ({"offset": 5}, {"limit": 5}, {"offset": 2001}):
        assert "outline" not in (await session.call("Read", file_path="long.md", **more)).data
    (project / "short.md").write_text("# Part\n")
    assert "outline" not in (await session.call("Read", file_path="short.md")).data


async def test_an_outline_knows_lines_that_end_with_a_return(session, project: Path):
    (project / "old.py").write_bytes(b"x = 1\rdef f():\r" + b"    pass\r" * 3_000)
    first = await session.call("Read", file_path="old.py")
    assert first.data["outline"]["marks"] == [{"line": 2, "text": "def f():"}]


async def test_only_the_beginning_of_a_huge_file_is_outlined(session, project: Path):
    (project / "huge.py").write_text("def f():\n    pass\n" * 200_000)
    first = await session.call("Read", file_path="huge.py")
    assert "Outline of the first 1 MiB (30 of 58,254, by line)" in first.text
