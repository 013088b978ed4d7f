"""Names, frames and forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.app.services.mcp import fill_form_defaults
from handaxe.mcp.line_framing import LineFramer, OversizedLine
from handaxe.mcp.remote_tool import ToolNameRegistry, build_tool_name
from handaxe.text.redact import Redactor


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=120)), unique=True, max_size=30))
def test_every_tool_gets_a_clean_name_of_its_own(pairs):
    book = ToolNameRegistry()
    names = [book.names(server, [tool])[tool] for server, tool in pairs]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= 64
        assert name.startswith("mcp__")
        assert name.isascii()
        assert all(c.isalnum() or c in "_-" for c in name)
    assert [book.names(server, [tool])[tool] for server, tool in pairs] == names


def test_names_say_where_a_tool_comes_from():
    assert build_tool_name("my server", "do.it") == "mcp__my_server__do_it"
    book = ToolNameRegistry()
    assert book.names("a", ["b.c", "b_c"]) == {
        "b.c": "mcp__a__b_c",
        "b_c": book.names("a", ["b_c"])["b_c"],
    }
    assert book.names("a", ["b_c"])["b_c"] != "mcp__a__b_c"


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=20),
    st.integers(1, 40),
)
def test_lines_are_the_same_however_they_arrive(lines, size):
    data = b"".join(line + b"\n" for line in lines)
    frames = LineFramer(lambda: "never")
    found = [line for at in range(0, len(data), size) for line in frames.feed(data[at : at + size])]
    assert found == [line for line in lines if line.strip()]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"content":"%s"}}',
        b'{"id": 7, "jsonrpc": "2.0", "result": {"content": "%s"}}',
        b'{"result":{"content":"%s","id":99},"jsonrpc":"2.0","id":7}',
        b'{"result":{"content":"%s"},"id":7,"jsonrpc":"2.0"}',
    ],
)
def test_a_line_that_is_too_long_lies_in_a_file_and_its_request_is_known(tmp_path, line):
    whole = line % (b"x" * 50_000)
    frames = LineFramer(lambda: str(tmp_path / "spilled"), limit_bytes=1000)
    stream = b"small\n" + whole + b"\nafter\n"
    found = [
        part for at in range(0, len(stream), 777) for part in frames.feed(stream[at : at + 777])
    ]
    assert found == [b"small", OversizedLine(7, len(whole), str(tmp_path / "spilled")), b"after"]
    assert (tmp_path / "spilled").read_bytes() == whole


@pytest.mark.proves("S14")
def test_a_line_that_is_too_long_leaves_no_secret_in_its_file(tmp_path):
    secret = b"ghp_Zx81kQpLm2Zx81kQpLm2"
    redactor = Redactor({"GITHUB_TOKEN": secret.decode()})
    frames = LineFramer(lambda: str(tmp_path / "spilled"), redactor, limit_bytes=100)
    stream = b'{"id":7,"result":"' + (b"x" * 90 + secret) * 9 + b'"}\n'
    for at in range(0, len(stream), 7):
        list(frames.feed(stream[at : at + 7]))
    kept = (tmp_path / "spilled").read_bytes()
    assert kept == stream[:-1].replace(secret, b"[redacted: GITHUB_TOKEN]")
    assert (tmp_path / "spilled").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("form", "filled"),
    [
        ({}, {}),
        ({"properties": {"sure": {"type": "boolean"}}}, {"sure": True}),
        ({"properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]}, {"n": 3}),
        ({"properties": {"name": {"type": "string"}}}, {}),
        ({"properties": {"name": {"type": "string"}}, "required": ["name"]}, None),
    ],
)
def test_a_yes_fills_in_a_form_that_wants_no_more(form, filled):
    assert fill_form_defaults(form) == filled
