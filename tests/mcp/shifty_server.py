"""A server whose tools stand in a file that can be changed under it."""

import json
import sys
from pathlib import Path

TOOLS = Path(sys.argv[1])


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    result = {}
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "shifty", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}},
        }
    elif method == "tools/list":
        result = {"tools": json.loads(TOOLS.read_text())}
    elif method == "tools/call":
        if params["name"] == "renew":
            send({"method": "notifications/tools/list_changed"})
        result = {"content": [{"type": "text", "text": f"{params['name']} ran"}]}
    if "id" in message and method:
        send({"id": message["id"], "result": result})
