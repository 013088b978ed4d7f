"""Starting the program that listens to a web socket."""

import json
import os

from handaxe.contract.ports.shell import Socket
from handaxe.process.child_environment__own_program import build_child_argv

OPEN_S = 15.0
"""A server that has not agreed to be listened to by then is given up."""
PING_S = 30.0
SILENT_S = 60.0
"""A server that answers no ping for so long is gone."""
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Whom the user trusts beside the system; nothing else of the environment has a say."""


def build_listener(socket: Socket) -> tuple[list[str], dict[str, str]]:
    """The program for this socket, and all that it finds in its environment."""
    request = {
        "url": socket.url,
        "host": socket.host.strip("[]"),
        "port": socket.port,
        "protocols": socket.protocols,
        "open_s": OPEN_S,
        "ping_s": PING_S,
        "silent_s": SILENT_S,
    }
    program = build_child_argv("handaxe.shell.exec.socket_child", ("msgspec", "websockets"))
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return [*program, json.dumps(request)], environment
