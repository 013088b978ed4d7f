"""Odd names shown as text, and given back."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.paths import quote_path, unquote_path

SIGNS = ["a", "'", "\\", "$", "$'", "n", "x", "0", "\n", "\x7f", "\x85", "é", "\u2028", " "]
names = st.lists(
    st.sampled_from([sign.encode() for sign in SIGNS])
    | st.binary(min_size=1, max_size=3).filter(lambda raw: b"\0" not in raw),
    max_size=12,
).map(lambda parts: os.fsdecode(b"".join(parts)))


def given_back(shown: str) -> str:
    meant = unquote_path(shown)
    return shown if meant is None else meant


@given(names)
def test_what_is_shown_can_be_given_back(path: str):
    shown = quote_path(path)
    assert given_back(shown) == path
    assert not any(ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0 for sign in shown)
    shown.encode()


@given(names, names)
def test_two_names_are_never_shown_alike(one: str, other: str):
    assert (quote_path(one) == quote_path(other)) == (one == other)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("plain name.txt", "plain name.txt"),
        ("back\\slash \\n \\xff 'quoted'", "back\\slash \\n \\xff 'quoted'"),
        ("$'plain'", "$'plain'"),
        ("two\nlines", "$'two\\nlines'"),
        (os.fsdecode(b"caf\xe9's"), "$'caf\\xe9\\'s'"),
        ("$'two\\nlines'", "$'$\\'two\\\\nlines\\''"),
        ("next\x85line\u2028", "$'next\\u0085line\\u2028'"),
    ],
)
def test_only_what_needs_it_is_quoted(path: str, shown: str):
    assert quote_path(path) == shown


@pytest.mark.parametrize(
    "text",
    ["$'.env'", "$'/etc/passwd'", "$'\\x2eenv'", "$'open", "$'a\\qb\\n'", "$'a'\\n'", "$'\\ud800'"],
)
def test_what_needs_no_quotes_has_no_second_spelling(text: str):
    assert unquote_path(text) is None


@pytest.mark.parametrize("text", [r"$'a\x0a'", r"$'a\012'", r"$'a\u000A'", r"$'a\n'", r"$'\x61\n'"])
def test_other_spellings_of_the_same_escape_are_understood(text: str):
    assert unquote_path(text) == "a\n"


@pytest.mark.parametrize("raw", [b"a\nb", b"\xff'\\", b"\x01\x7f\xc2\x85", b"\xe2\x80\xa8x41"])
def test_bash_understands_it_too(raw: bytes):
    command = f"printf %s {quote_path(os.fsdecode(raw))}"
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    said = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env=environment)
    assert said.stdout == raw
