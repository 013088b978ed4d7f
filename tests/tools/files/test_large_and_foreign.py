"""Files of any size and any encoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe import Session
from handaxe.disk import line_windows as line_scan
from handaxe.disk import local_files as host_files
from handaxe.disk.local_files import LocalFiles
from handaxe.text.line_window import split_lines

TEXTS = st.lists(
    st.sampled_from(["a", "bb", "\n", "\r\n", "\r", "é", "\f", "x" * 50]), max_size=60
).map("".join)


@pytest.mark.proves("FT-4")
@given(text=TEXTS, offset=st.integers(-70, 70).filter(bool), limit=st.integers(1, 70))
def test_a_window_of_a_large_file_is_the_window_of_its_lines(tmp_path_factory, text, offset, limit):
    """The streaming reader agrees with splitting the whole text, with every chunk size."""
    import asyncio

    path = tmp_path_factory.mktemp("w") / "f.txt"
    path.write_bytes(text.encode())
    lines = split_lines(text)
    first = max(1, len(lines) + offset + 1) if offset < 0 else offset
    before = host_files.SMALL_BYTES, line_scan.CHUNK_BYTES
    host_files.SMALL_BYTES, line_scan.CHUNK_BYTES = -1, 7
    try:
        window = asyncio.run(LocalFiles().read_window(str(path), offset, limit))
    finally:
        host_files.SMALL_BYTES, line_scan.CHUNK_BYTES = before
    assert window.total_lines == len(lines)
    assert list(window.lines) == lines[first - 1 : first - 1 + limit]


@pytest.mark.proves("FT-4")
async def test_a_deep_window_of_a_big_file(session, project):
    with open(project / "big.txt", "w", encoding="utf-8") as file:
        file.writelines(f"line {i}\n" for i in range(1, 1_000_001))
    result = await session.call("Read", file_path="big.txt", offset=999_999, limit=5)
    assert result.text.startswith("999999→line 999999\n1000000→line 1000000")
    tail = await session.call("Read", file_path="big.txt", offset=-2)
    assert "1000000→line 1000000" in tail.text
    edit = await session.call(
        "Edit", file_path="big.txt", old_string="line 500000\n", new_string="half\n"
    )
    assert edit.ok, edit.text


async def test_one_line_of_many_megabytes_is_shown_in_part(session, project):
    (project / "one.txt").write_text("x" * 30_000_000)
    result = await session.call("Read", file_path="one.txt")
    assert result.ok
    assert len(result.text) < 10_000
    assert "cut" in result.text


async def test_a_big_file_that_ends_inside_a_character_is_read_to_its_end(session, project):
    (project / "torn.txt").write_bytes(b"plain text\n" * 100_000 + "caf\u00e9".encode()[:-1])
    result = await session.call("Read", file_path="torn.txt", offset=-2)
    assert result.ok, result.text
    shown = result.data["file"]["content"]
    assert shown.startswith("plain text\ncaf")
    edit = await session.call(
        "Edit", file_path="torn.txt", old_string=shown.split("\n")[1], new_string="tea"
    )
    assert edit.ok, edit.text
    assert (project / "torn.txt").read_bytes().endswith(b"plain text\ntea")


@pytest.mark.proves("FT-12")
async def test_every_window_of_a_big_file_is_read_in_the_encoding_that_edit_takes(session, project):
    line = "これはエンコーディングを調べるための日本語の文章です。" * 5
    text = "plain text\n" * 100_000 + f"{line}\n" * 2_000 + "ｱ\n"
    (project / "late.txt").write_bytes(text.encode("shift_jis"))
    for window in ({}, {"offset": 100_001}, {"offset": 101_999}, {"offset": -1}):
        result = await session.call("Read", file_path="late.txt", **window)
        assert result.data["encoding"] == "shift_jis"
    assert result.data["file"]["content"] == "ｱ"
    edit = await session.call("Edit", file_path="late.txt", old_string="ｱ", new_string="ア")
    assert edit.ok, edit.text


@pytest.mark.proves("FT-14")
async def test_a_file_over_one_gibibyte_is_refused_before_any_work(session, project):
    with open(project / "huge.txt", "wb") as file:
        file.truncate((1 << 30) + 1)
    result = await session.call("Edit", file_path="huge.txt", old_string="a", new_string="b")
    assert result.code == "file.too_large"


ENCODINGS = {
    "utf-8-sig": "naïve café ☃\n",
    "utf-16": "naïve café ☃\r\n",
    "utf-32": "naïve café ☃\n",
    "gbk": "这是一个用来测试编码的中文文件，里面有足够多的汉字可以识别。\n" * 3,
    "shift_jis": "これはエンコーディングを調べるための日本語の文章です。\n" * 3,
    "euc_kr": "이것은 인코딩을 시험하기 위한 한국어 문장입니다.\n" * 3,
    "big5": "這是一個用來測試編碼的中文檔案，裡面有足夠多的漢字。\n" * 3,
    "cp1252": "Der Müller führt “große” Bücher – für 5 €.\n" * 3,
    "koi8-r": "Это русский текст для проверки кодировки файла.\n" * 3,
}


@pytest.mark.proves("FT-12")
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_an_edit_keeps_the_encoding_of_the_file(session, project, encoding):
    text = "# start\n" + ENCODINGS[encoding] + "value = 1\n"
    (project / "a.txt").write_bytes(text.encode(encoding))
    read = await session.call("Read", file_path="a.txt")
    assert ENCODINGS[encoding].splitlines()[0] in read.text
    result = await session.call(
        "Edit", file_path="a.txt", old_string="value = 1", new_string="value = 2"
    )
    assert result.ok, result.text
    assert (project / "a.txt").read_bytes() == text.replace("value = 1", "value = 2").encode(
        encoding
    )


@pytest.mark.proves("FT-12")
async def test_text_the_encoding_cannot_hold_is_refused_and_nothing_is_written(session, project):
    content = ("# start\n" + ENCODINGS["koi8-r"] + "value = 1\n").encode("koi8-r")
    (project / "a.txt").write_bytes(content)
    await session.call("Read", file_path="a.txt")
    edit = await session.call("Edit", file_path="a.txt", old_string="value = 1", new_string="漢字")
    write = await session.call("Write", file_path="a.txt", content="漢字\n")
    assert edit.code == write.code == "file.cannot_encode"
    assert (project / "a.txt").read_bytes() == content


@pytest.mark.proves("PM-1")
@pytest.mark.parametrize(
    ("mode", "write", "read_outside"),
    [
        ("default", "permission.asked", "permission.asked"),
        ("manual", "permission.asked", "permission.asked"),
        ("acceptEdits", None, "permission.asked"),
        ("plan", "permission.asked", "permission.asked"),
        ("dontAsk", "permission.denied", "permission.denied"),
        ("auto", "permission.asked", "permission.asked"),
        ("bypassPermissions", None, None),
    ],
)
async def test_modes_decide_where_no_rule_speaks(project, mode, write, read_outside):
    async with Session(project, permission_mode=mode) as session:
        assert (await session.call("Write", file_path="a.txt", content="")).code == write
        assert (await session.call("Read", file_path="/etc/hostname")).code == read_outside


@pytest.mark.proves("PM-1")
async def test_leaving_plan_mode_returns_to_the_mode_before(project):
    async with Session(project, permission_mode="acceptEdits") as session:
        session.set_mode("plan")
        assert (
            await session.call("Write", file_path="a.txt", content="")
        ).code == "permission.asked"
        assert session.permissions.leave_plan() == "acceptEdits"
        assert (await session.call("Write", file_path="a.txt", content="")).ok


CONTROLS = "\x01\x02\x03\x04 text\n"


@pytest.mark.parametrize("lines", [1, 200_000])
@pytest.mark.parametrize(("start", "code"), [("", None), ("\x80\x81", "file.binary")])
async def test_control_characters_are_text_in_utf8_of_any_size(
    session, project, lines, start, code
):
    (project / "a.txt").write_bytes(start.encode("latin-1") + CONTROLS.encode() * lines)
    read = await session.call("Read", file_path="a.txt", limit=5)
    assert read.code == code
    edit = {"old_string": "\x04 text\n", "new_string": "\x04 word\n", "replace_all": True}
    result = await session.call("Edit", edit, file_path="a.txt")
    assert result.code == ("file.not_read" if code else None), result.text
    (project / "b.txt").write_bytes(b"a\0b\n" + CONTROLS.encode() * lines)
    assert (await session.call("Read", file_path="b.txt", limit=5)).code == "file.binary"
