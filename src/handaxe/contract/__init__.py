"""Types that every package shares.

Belongs here: what a tool, a call, a result, an effect, a decision, an event and a message is.
Does not: anything that reads a file, starts a process, or knows a front end.
May import: nothing else of handaxe; msgspec.
"""

from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Ask, Decision, Defer, Deny, PermissionRequest
from handaxe.contract.effects import Effects
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.permission_subjects import PathSubject, Subject, TextSubject
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import State, Tool, ToolArgs

__all__ = [
    "Allow",
    "Ask",
    "Decision",
    "Defer",
    "Deny",
    "Effects",
    "PathSubject",
    "PermissionRequest",
    "SetupError",
    "State",
    "Subject",
    "TextSubject",
    "Tool",
    "ToolArgs",
    "ToolCall",
    "ToolContext",
    "ToolFault",
    "ToolResult",
]
