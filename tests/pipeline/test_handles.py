"""`{"$file": PATH}`: what is too long for a model goes from tool to tool without it."""

import json

import pytest

from handaxe import Allow, Effects, Session, ToolCall, tool

DOCUMENT = json.dumps({"items": [{"id": n, "name": f"name {n}"} for n in range(12_000)]})


@tool(effects=Effects.none())
async def fetch() -> str:
    """Gives a long document."""
    return DOCUMENT


@tool(effects=Effects.none())
async def send(doc: str, more: tuple[str, ...] = ()) -> str:
    """Takes a document."""
    return f"{len(doc)} {len(more)} {doc[-20:]}"


@tool(effects=Effects.none())
async def count(items: dict[str, list[object]]) -> str:
    """Counts what is in a document."""
    return str({name: len(some) for name, some in items.items()})


@pytest.fixture
async def session(project):
    async with Session(
        project, tools=[fetch, send, count], permission_mode="acceptEdits"
    ) as opened:
        yield opened


def handle_in(text: str) -> dict[str, str]:
    """The handle that a result names, as a model would copy it."""
    return json.loads(text[text.index('{"$file"') :].partition("}")[0] + "}")


@pytest.mark.proves("TC-7")
async def test_a_document_is_fetched_changed_and_sent_back_for_few_tokens(session, project):
    assert len(DOCUMENT) > 300_000
    fetched = await session.call("fetch")
    kept = await session.call("Write", file_path="d.json", content=handle_in(fetched.text))
    assert (project / "d.json").read_text() == DOCUMENT
    changed = await session.call(
        "Edit", file_path="d.json", old_string='"name 11999"', new_string='"last"'
    )
    sent = await session.call("send", doc={"$file": "d.json"})
    assert sent.text == f"{len(DOCUMENT) - 6} 0 {DOCUMENT.replace('name 11999', 'last')[-20:]}"
    assert [result.ok for result in (fetched, kept, changed, sent)] == [True] * 4
    assert fetched.tokens + kept.tokens + changed.tokens + sent.tokens < 2_000
    assert sent.notes == (f"doc: the whole of d.json ({len(DOCUMENT) - 6:,} characters)",)


async def test_a_handle_may_stand_anywhere_and_is_read_as_what_the_place_takes(session, project):
    (project / "a.json").write_text('{"x": [1, 2]}')
    handle = {"$file": str(project / "a.json")}
    assert (await session.call("send", doc="d", more=["m", handle])).text == "1 2 d"
    assert (await session.call("count", items=handle)).text == "{'x': 2}"


async def test_only_an_object_of_this_very_shape_is_a_handle(session, project):
    (project / "a.txt").write_text("a")
    for given in ({"$file": "a.txt", "x": 1}, {"$file": 1}, {"file": "a.txt"}):
        assert (await session.call("send", doc=given)).code == "call.bad_input"
    assert (await session.call("send", doc='{"$file": "a.txt"}')).text == '18 0 {"$file": "a.txt"}'


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("secret.key", "reading it needs approval"),
        ("link", "reading it needs approval"),
        (".env", "reading it needs approval"),
        ("/etc/hostname", "reading it needs approval"),
        ("/etc/no-such-file", "reading it needs approval"),
        ("missing", "No such file or directory"),
        ("binary", "'binary': it is not UTF-8 text"),
        ("latin", "'latin': it is not UTF-8 text"),
        ("dir", "not a regular file but a directory"),
        ("", "The path is empty"),
    ],
)
async def test_what_could_not_be_read_without_a_question_is_not_passed_on(project, name, why):
    (project / "secret.key").write_text("secret")
    (project / ".env").write_text("secret")
    (project / "link").symlink_to("secret.key")
    (project / "binary").write_bytes(b"\xff\xfe\xff")
    (project / "latin").write_bytes("Gr\xfc\xdfe\n".encode("latin-1"))
    (project / "dir").mkdir()

    async def yes(_request):
        return Allow()

    async with Session(project, tools=[send], deny=["Read(*.key)"], on_ask=yes) as session:
        result = await session.call("send", doc={"$file": name})
    assert result.code == "call.bad_input"
    assert why in result.text
    assert "secret" not in result.text.replace("secret.key", "")


async def test_a_file_that_an_earlier_call_of_the_message_changes_is_passed_on_changed(
    session, project
):
    (project / "a.txt").write_text("old")
    await session.call("Read", file_path="a.txt")
    batch = [
        ("Edit", {"file_path": "a.txt", "old_string": "old", "new_string": "newer"}),
        ("send", {"doc": {"$file": "a.txt"}}),
    ]
    edited, sent = await session.call_many(batch)
    assert (edited.ok, sent.text) == (True, "5 0 newer")


async def test_whoever_is_asked_sees_what_is_passed_on(project):
    (project / "a.txt").write_text("the text")
    asked = []

    async def on_ask(request):
        asked.append(request.input)
        return Allow()

    async with Session(project, on_ask=on_ask) as session:
        await session.call("Write", file_path="b.txt", content={"$file": "a.txt"})
    assert asked == [{"file_path": str(project / "b.txt"), "content": "the text"}]
    assert (project / "b.txt").read_text() == "the text"


async def test_the_same_id_with_the_same_handle_is_the_same_call(session, project):
    (project / "a.txt").write_text("one")
    call = ToolCall("c1", "send", {"doc": {"$file": "a.txt"}})
    first = await session.run(call)
    (project / "a.txt").write_text("another")
    again = await session.run(call)
    assert (first.text, again.text) == ("3 0 one", "3 0 one")
