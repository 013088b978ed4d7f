"""Prompts and resources: what clients fetch beside calling tools."""

import base64

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from tests.frontends.mcp_server.raw_client import ENVELOPE
from tests.frontends.mcp_server.test_sdk_clients import client_of, process, served

SKILL = """---
name: review
description: Looks at a change.
argument-hint: the branch
allowed-tools: Bash(git diff:*)
---
Look at $ARGUMENTS with care.
"""
NAMED = """---
description: Compares.
arguments: [left, right]
---
Compare $left to $right.
"""
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89"
    b"\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"
)


@pytest.fixture
def skilled(project):
    """A project with a skill and a command."""
    skill = project / ".claude" / "skills" / "review" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    command = project / ".claude" / "commands" / "compare.md"
    command.parent.mkdir(parents=True)
    command.write_text(NAMED)
    return project


async def fetched(client, method, **params):
    answer = await client.ask(method, **params)
    assert "result" in answer, answer
    return answer["result"]


async def refused(client, method, **params):
    return (await client.ask(method, **params))["error"]


@pytest.mark.proves("AR-2")
async def test_skills_and_commands_are_prompts(connect, skilled):
    client = connect(trusted=True)
    opened = await client.open()
    assert {"prompts", "resources", "completions"} <= opened["capabilities"].keys()
    listed = {one["name"]: one for one in (await fetched(client, "prompts/list"))["prompts"]}
    assert listed["review"]["description"] == "Looks at a change."
    assert [one["name"] for one in listed["review"]["arguments"]] == ["arguments"]
    assert [one["name"] for one in listed["compare"]["arguments"]] == ["left", "right"]
    got = await fetched(client, "prompts/get", name="review", arguments={"arguments": "main"})
    (message,) = got["messages"]
    assert message["role"] == "user"
    assert "Look at main with care." in message["content"]["text"]
    named = {"left": "one side", "right": "two"}
    got = await fetched(client, "prompts/get", name="compare", arguments=named)
    assert "Compare one side to two." in got["messages"][0]["content"]["text"]


async def test_a_prompt_gives_no_permission(connect, skilled):
    client = connect(trusted=True, tools=["Read", "Bash"])
    await client.open()
    await fetched(client, "prompts/get", name="review")
    result = await client.call("Bash", command="git diff --output=x")
    assert result["structuredContent"]["code"].startswith("permission.")


async def test_wrong_requests_for_prompts_are_errors(connect):
    client = connect()
    await client.open()
    for params in ({"name": "nobody"}, {"name": 1}, {}, {"name": "x", "arguments": 3}):
        assert (await refused(client, "prompts/get", **params))["code"] == -32602
    assert (await refused(client, "prompts/list", cursor="x"))["code"] == -32602


@pytest.mark.proves("AR-2")
async def test_files_are_resources_and_those_in_use_are_listed(connect, project):
    (project / "a b.py").write_text("x = 1\n")
    (project / "dot.png").write_bytes(PNG)
    client = connect()
    await client.open()
    assert (await fetched(client, "resources/list"))["resources"] == []
    await client.call("Read", file_path="a b.py")
    ((listed),) = (await fetched(client, "resources/list"))["resources"]
    assert listed["name"] == "a b.py"
    assert listed["uri"] == f"file://{project}/a%20b.py"
    (content,) = (await fetched(client, "resources/read", uri=listed["uri"]))["contents"]
    assert (content["uri"], content["text"]) == (listed["uri"], "x = 1")
    (picture,) = (await fetched(client, "resources/read", uri=f"file://{project}/dot.png"))[
        "contents"
    ]
    assert picture["mimeType"] == "image/png"
    assert base64.b64decode(picture["blob"]) == PNG
    (template,) = (await fetched(client, "resources/templates/list"))["resourceTemplates"]
    assert template["uriTemplate"] == "file://{path}"


async def test_a_long_file_is_a_whole_resource(connect, project):
    text = "\n".join(f"line {number}" for number in range(5_000))
    (project / "long.txt").write_text(text)
    client = connect()
    await client.open()
    uri = f"file://{project}/long.txt"
    (content,) = (await fetched(client, "resources/read", uri=uri))["contents"]
    assert content["text"] == text


async def test_a_resource_that_may_not_be_read_is_not_given(connect, project, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (project / "denied.txt").write_text("secret")
    client = connect(deny=["Read(denied.txt)"])
    await client.open()
    for uri in (
        f"file://{tmp_path}/secret.txt",
        f"file://{project}/denied.txt",
        f"file://{project}/missing.txt",
        "https://example.com/a",
        "nonsense",
    ):
        error = await refused(client, "resources/read", uri=uri)
        assert error["code"] == -32002
        assert error["data"]["uri"] == uri
        assert "secret" not in error["message"].replace("secret.txt", "")
    assert (await refused(client, "resources/read"))["code"] == -32602


async def test_paths_are_completed(connect, project):
    for name in ("apple.py", "apricot.py", "banana.py"):
        (project / name).write_text("")
    client = connect()
    await client.open()
    ref = {"type": "ref/resource", "uri": "file://{path}"}
    for begun in ("ap", f"{project}/ap"):
        argument = {"name": "path", "value": begun}
        found = (await fetched(client, "completion/complete", ref=ref, argument=argument))[
            "completion"
        ]
        assert sorted(found["values"]) == [f"{project}/apple.py", f"{project}/apricot.py"]
        assert (found["total"], found["hasMore"]) == (2, False)
    other = {"type": "ref/prompt", "name": "nobody"}
    got = await fetched(client, "completion/complete", ref=other, argument=argument)
    assert got["completion"]["values"] == []
    assert (await refused(client, "completion/complete", ref=ref))["code"] == -32602


async def test_a_client_without_handshake_fetches_too(connect, skilled):
    client = connect(trusted=True)
    found = await fetched(client, "server/discover", _meta=ENVELOPE)
    assert "prompts" in found["capabilities"]
    listed = await fetched(client, "prompts/list", _meta=ENVELOPE)
    assert listed["resultType"] == "complete"
    assert listed["ttlMs"] == 0
    got = await fetched(client, "prompts/get", name="review", _meta=ENVELOPE)
    assert "ttlMs" not in got
    assert got["messages"]


async def test_what_a_call_reports_is_logged_for_clients_that_read_the_log(connect):
    client = connect()
    await client.open()
    await client.call("count_up", to=2)
    assert not [one for one in client.told if one["method"] == "notifications/message"]
    await fetched(client, "logging/setLevel", level="info")
    await client.call("count_up", to=2)
    logged = [one["params"] for one in client.told if one["method"] == "notifications/message"]
    assert [(one["level"], one["logger"], one["data"]) for one in logged] == [
        ("info", "count_up", "1 of 2"),
        ("info", "count_up", "2 of 2"),
    ]


@pytest.mark.proves("AR-2")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_sdk_fetches_prompts_and_resources(skilled, mode, transport):
    (skilled / "a.py").write_text("x = 1\n")

    async def check(client):
        names = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert {"review", "compare"} <= names
        got = await client.get_prompt("compare", {"left": "a", "right": "b"})
        assert "Compare a to b." in got.messages[0].content.text
        read = await client.read_resource(f"file://{skilled}/a.py")
        assert read.contents[0].text == "x = 1"
        (listed,) = (await client.list_resources()).resources
        assert listed.name == "a.py"
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.name == "file"
        with pytest.raises(MCPError):
            await client.read_resource(f"file://{skilled}/missing.py")
        assert not client.server_capabilities.prompts.list_changed
        assert not client.server_capabilities.resources.subscribe

    if transport == "stdio":
        async with Client(process(skilled), mode=mode) as client:
            await check(client)
    else:
        async with served(skilled) as address, client_of(address, mode=mode) as client:
            await check(client)
