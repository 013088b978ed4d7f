"""The protocol's numbers and names: revisions, error codes, keys of `_meta`."""

from typing import Any, TypeAlias

from handaxe.version import __version__

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that a client opens with `initialize`, oldest first."""
ENVELOPE_REVISIONS = ("2026-07-28",)
"""Revisions without a handshake: every request says in `_meta` which one it speaks."""
BATCH_REVISIONS = frozenset(HANDSHAKE_REVISIONS[:2])
"""Revisions in which several messages may come in one array."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
UNSUPPORTED_REVISION = -32022
TOO_MANY_REQUESTS = -32000

REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
CODE_KEY = "handaxe/code"
"""The key of the stable code of a failed result."""
RESULT_SIZE_KEY = "anthropic/maxResultSizeChars"

LOG_LEVELS = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip

FIRST_LEVEL = "warning"
"""The log level of a client that set none."""
REPORT_LEVEL = "info"
"""The log level of progress for clients without a progress token."""

FETCHING = (
    "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
    "resources/read", "completion/complete",
)  # fmt: skip
"""Methods for prompts and resources."""
FETCHABLE: "dict[str, Params]" = {"prompts": {}, "resources": {}, "completions": {}}
CACHED = frozenset({*FETCHING[:1], *FETCHING[2:5]})
"""Methods whose results have a lifetime."""

SERVER_INFO = {"name": "handaxe", "title": "handaxe", "version": __version__}
INSTRUCTIONS = (
    "Tools for work on one project: find, read, change and run things in it. Relative paths start "
    "at the project's root. Read a file before you change it; Undo puts changes back. A refused "
    "call says which permission rule would allow it."
)

RequestId: TypeAlias = str | int
Params: TypeAlias = dict[str, Any]


class RpcError(Exception):
    """A request that is answered with an error of the protocol, not with a result."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_json(self) -> dict[str, Any]:
        """The error object of the answer."""
        told: dict[str, Any] = {"code": self.code, "message": self.message}
        return told if self.data is None else {**told, "data": self.data}
