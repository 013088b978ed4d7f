"""Output written for a terminal, as plain text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.ansi import is_binary, to_plain_text


@pytest.mark.proves("SH-3")
@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"tab\there\n", "tab\there\n"),
        (b"\x1b[31mred\x1b[0m and \x1b[1;38;5;200mpink\x1b[m", "red and pink"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b[2K\x1b[1Gdone\n", "done\n"),
        (b"\x1b(Bx\x1b=y\x1b>", "xy"),
        (b"\x1bP1$r0m\x1b\\after", "after"),
        (b"cut off \x1b[38;5", "cut off "),
        (b"cut off \x1b", "cut off "),
        (b"10%\r50%\r100%\nnext\n", "100%\nnext\n"),
        (b"10%\r100%\r\n", "100%\n"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"waiting\r", "waiting"),
        (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
        (b"bell\x07 null\x00 del\x7f", "bell null del"),
        (b"\xff\xfe bad \xc3\x28", "�� bad �("),
        (b"\xa4 cut at the front", " cut at the front"),
        ("cut at the end ä".encode()[:-1], "cut at the end "),
        ("🪓".encode()[:3], ""),
        ("🪓".encode()[1:], ""),
        ("ünï 🪓\n".encode(), "ünï 🪓\n"),
        (b"", ""),
    ],
)
def test_a_reader_sees_what_was_meant(raw, text):
    assert to_plain_text(raw) == text


def test_an_end_where_nothing_was_cut_is_repaired_instead():
    cut = "ä".encode()
    assert to_plain_text(cut[:1] + b" x", begins_whole=True) == "� x"
    assert to_plain_text(cut[1:] + b" x", begins_whole=True) == "� x"
    assert to_plain_text(b"caf\xe9", ends_whole=True) == "caf�"
    assert to_plain_text("🪓".encode()[:3], ends_whole=True) == "�"


@given(st.binary(max_size=300))
def test_no_control_character_is_left_whatever_comes_in(raw):
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", to_plain_text(raw)) is None


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")))
def test_plain_text_stays_as_it_is(text):
    assert to_plain_text(text.encode()) == text


def test_a_long_line_of_redraws_takes_no_long_time():
    assert to_plain_text(b"x\r" * 200_000 + b"end") == "end"
    assert to_plain_text(b"\x1b]" * 100_000) == ""
    assert to_plain_text(b"\x1b[" * 100_000 + b"m") in {"", "m"}


@pytest.mark.parametrize(
    ("sample", "binary"),
    [
        (b"", False),
        (b"text\n", False),
        (b"\x1b[31mred\x1b[0m", False),
        (b"a\0b", True),
        (bytes(range(1, 9)) * 20, True),
        ("ünï".encode() * 50, False),
        (b"\xff\xfe\xfd" * 50, False),
    ],
)
def test_binary_bytes_are_told_from_text(sample, binary):
    assert is_binary(sample) is binary


GERMAN = "Größe ändern für Straße\nÄpfel, Öl, Übermut\n"
RUSSIAN = "Привет мир, это русский текст\n"
JAPANESE = "これは日本語のテキストです。文字コードの判定\n"
CHINESE = "这是一个中文文本文件,用来测试编码检测功能\n"


@pytest.mark.proves("FT-12", "SH-3")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "latin-1"), (GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r"),
        (RUSSIAN, "cp866"), (RUSSIAN, "iso8859-5"), (JAPANESE, "shift_jis"), (JAPANESE, "euc-jp"),
        (CHINESE, "gbk"), (CHINESE, "big5hkscs"),
    ],
)  # fmt: skip
def test_output_in_a_legacy_encoding_is_read_in_it_beside_lines_of_utf8(text, encoding):
    if encoding == "big5hkscs":
        text = "這是一個繁體中文檔案,用來測試編碼檢測功能\n"
    raw = "ünïcode 中文\n".encode() + text.encode(encoding) + "plain\nкод\n".encode()
    assert to_plain_text(raw, begins_whole=True) == f"ünïcode 中文\n{text}plain\nкод\n"


def test_a_few_broken_bytes_are_broken_and_no_letters():
    raw = "Grüße 中文\n".encode() * 30 + b"cut \xc3 and \xe9 and \xff\n"
    assert to_plain_text(raw, begins_whole=True).endswith("\ncut � and � and �\n")
