"""A server that knows just enough of the protocol, starts fast, and misbehaves on demand."""

# ruff: noqa: C901, PLR0911, PLR0912, T201, UP031 - one flat list of misdeeds
import json
import os
import signal
import subprocess
import sys
import time

TROUBLE = sys.argv[1:]
FORGED = os.environ.get("FORGED", "")
"""What it says of itself and of its tools, where somebody has words for it."""


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


OUTPUT = {
    "title": "Kept",
    "type": "object",
    "properties": {"answer": {"type": "integer", "x-own": [1]}},
    "required": ["answer"],
    "$comment": "no key of it is lost",
}


def tool(name, **more):
    return {
        "name": name,
        "description": FORGED or f"Does {name}.",
        "inputSchema": {"type": "object"},
        **more,
    }


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


TOOLS = [
    tool(
        "echo",
        inputSchema={
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["text"],
        },
    ),
    tool("look", annotations={"readOnlyHint": True}),
    tool("add", annotations={"readOnlyHint": False, "destructiveHint": False}),
    tool("ask_me", _meta={"anthropic/requiresUserInteraction": True}),
    tool("crash"),
    tool("sleep"),
    tool("huge"),
    tool("long"),
    tool("fail"),
    tool("env"),
    tool("roots"),
    tool("progress"),
    tool("cancelled"),
    tool("picture"),
    tool("sound"),
    tool("resource"),
    tool("structured", outputSchema=OUTPUT),
    tool("broken"),
    tool("rpc_error"),
    tool("change"),
    tool("flood"),
    tool("shout"),
    tool("asked"),
    tool("big", _meta={"anthropic/maxResultSizeChars": 200_000, "anthropic/alwaysLoad": True}),
    tool(
        "either",
        inputSchema={
            "type": "object",
            "anyOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
            ],
        },
    ),
]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
STATE = {"cancelled": [], "changed": 0, "roots": None, "listed": 0}


def listed():
    if "odd" in TROUBLE:
        return [
            tool("good"),
            tool("no_type", inputSchema={"properties": {"a": {}}}),
            tool("empty", inputSchema={}),
            tool("no_schema", inputSchema=None),
            tool("number", inputSchema=5),
            {"name": "bare"},
            {"description": "no name"},
            tool("", description=None),
            tool("extra", unknown={"x": 1}, annotations={"readOnlyHint": "yes"}, title=7),
            tool("good", description="A second one."),
            tool(
                "endless",
                inputSchema={"type": "object", "properties": {"x": {"description": "y" * 300_000}}},
            ),
            "nonsense",
        ]
    if "permit" in TROUBLE:
        return [*TOOLS, tool("permit")]
    if "many" in TROUBLE:
        return [tool(f"tool_{n:03}") for n in range(300)]
    if STATE["changed"]:
        changed = [
            {**t, "description": "Something else now."} if t["name"] == "echo" else t for t in TOOLS
        ]
        return [*changed, tool("brand_new")]
    return TOOLS


def progress(params, number):
    told = {"progress": number, "total": 3, "message": "working"}
    told["progressToken"] = params["_meta"]["progressToken"]
    send({"method": "notifications/progress", "params": told})


def call(request_id, params):
    name, args = params["name"], params.get("arguments") or {}
    if name == "crash":
        sys.stderr.write("about to fall over\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "sleep":
        progress(params, 0)
        return None
    elif name == "huge":
        sys.stdout.write(
            '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id
        )
        for _ in range(args.get("mb", 100)):
            sys.stdout.write("x" * (1 << 20))
        sys.stdout.write('"}]}}\n')
        sys.stdout.flush()
        return None
    elif name in {"long", "big"}:
        return text("word " * 30_000)
    elif name == "fail":
        return text("it did not work", isError=True)
    elif name == "env":
        return text(json.dumps({"env": dict(os.environ), "cwd": os.getcwd()}))
    elif name == "roots":
        return text(json.dumps(STATE["roots"]))
    elif name == "progress":
        for n in range(3):
            progress(params, n)
            time.sleep(0.15)
        return text("done")
    elif name == "cancelled":
        return text(json.dumps(STATE["cancelled"]))
    elif name == "picture":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    elif name == "sound":
        return {"content": [{"type": "audio", "data": PNG, "mimeType": "audio/wav"}]}
    elif name == "resource":
        return {
            "content": [
                {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
                {
                    "type": "resource",
                    "resource": {"uri": "a://c", "blob": PNG, "mimeType": "application/pdf"},
                },
                {"type": "resource_link", "uri": "a://d", "name": "linked"},
            ]
        }
    elif name == "structured":
        given = params.get("arguments", {}).get("data", {"answer": 42})
        said = [{"type": "text", "text": "said"}] if "data" in params.get("arguments", {}) else []
        return {"content": said} | ({} if given is None else {"structuredContent": given})
    elif name == "broken":
        return {"content": "this is no list"}
    elif name == "rpc_error":
        raise ValueError("not like this")
    elif name == "change":
        STATE["changed"] += 1
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    elif name == "shout":
        for _ in range(500):
            send({"method": "notifications/tools/list_changed"})
        return text("shouted")
    elif name == "permit":
        with open(os.environ["PERMIT_LOG"], "a") as log:
            log.write(json.dumps(args) + "\n")
        return text(os.environ["PERMIT_ANSWER"], isError=os.environ["PERMIT_ANSWER"] == "fail")
    elif name == "asked":
        return text(str(STATE["listed"]))
    elif name == "flood":
        for n in range(20_000):
            sys.stdout.write(f"stray line {n}\n")
        return text("after the flood")
    return text(args.get("text", name) * args.get("times", 1))


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        if "stubborn" in TROUBLE:
            return None
        return {
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "thin", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
            "instructions": FORGED or "Be\u200b nice.\x1b[31m" + "x" * 5000,
        }
    if method == "tools/list":
        STATE["listed"] += 1
        if STATE["changed"] > 1:
            raise ValueError("not now")
        return {"tools": listed()}
    if method == "resources/list":
        if not params.get("cursor"):
            return {
                "resources": [
                    {
                        "uri": "note://one",
                        "name": "one",
                        "mimeType": "text/plain",
                        "description": "first",
                    }
                ],
                "nextCursor": "2",
            }
        return {"resources": [{"uri": "note://two", "name": "two"}]}
    if method == "resources/read":
        if params["uri"] == "note://one":
            return {
                "contents": [
                    {"uri": "note://one", "mimeType": "text/plain", "text": "the first note"}
                ]
            }
        if params["uri"] == "note://two":
            return {"contents": [{"uri": "note://two", "mimeType": "image/png", "blob": PNG}]}
        raise ValueError("no such note")
    if method == "prompts/list":
        return {
            "prompts": [
                {
                    "name": "greet",
                    "description": "Say hello",
                    "arguments": [{"name": "who", "required": True}],
                }
            ]
        }
    if method == "prompts/get":
        return {
            "messages": [
                {
                    "role": "user",
                    "content": {"type": "text", "text": f"Greet {params['arguments']['who']}."},
                }
            ]
        }
    if method == "tools/call":
        return call(message["id"], params)
    if method == "ping":
        return {}
    raise ValueError(f"unknown method {method}")


def main():
    if "stubborn" in TROUBLE or "deaf" in TROUBLE:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "grandchild" in TROUBLE:
        sleeper = (
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        )
        subprocess.Popen(
            [sys.executable, "-c", sleeper], stdout=subprocess.DEVNULL, start_new_session=True
        )
        subprocess.Popen([sys.executable, "-c", sleeper])
    if "chatty" in TROUBLE:
        for n in range(60_000):
            sys.stderr.write(f"noise {n} {'.' * 80}\n")
        print("Welcome to my server!")
        print("{not json")
    for line in sys.stdin:
        message = json.loads(line)
        if "asleep" in TROUBLE and message.get("method") == "tools/list":
            send({"id": message["id"], "result": {"tools": listed()}})
            time.sleep(600)
        if message.get("method") == "notifications/cancelled":
            STATE["cancelled"].append(message["params"]["requestId"])
        elif message.get("method") in {
            "notifications/initialized",
            "notifications/roots/list_changed",
        }:
            send({"id": "roots", "method": "roots/list"})
        elif message.get("id") == "roots":
            STATE["roots"] = [root["uri"] for root in message["result"]["roots"]]
        elif "id" in message and "method" in message:
            try:
                result = answer(message)
            except ValueError as error:
                send({"id": message["id"], "error": {"code": -32602, "message": str(error)}})
            else:
                if result is not None:
                    send({"id": message["id"], "result": result})
    if "deaf" in TROUBLE:
        time.sleep(600)


main()
