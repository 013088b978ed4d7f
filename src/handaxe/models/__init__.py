"""Language models: the `Model` port for each vendor's API.

Belongs here: choosing a model by name, thin clients, failures and retries, prices, recordings.
Does not: conversations (`agent`), tool execution (`pipeline`), settings files (`config`).
May import: `shell/sandbox` and the layers below it; httpx2, when used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handaxe.contract.messages import StopReason, TokenUsage
    from handaxe.contract.ports.model import (
        Failure,
        MessageEnded,
        Model,
        ModelEvent,
        ModelFailed,
        ModelRequest,
        RequestOrigin,
        Retrying,
        TextDelta,
        ThinkingDelta,
        ToolEnded,
        ToolInputDelta,
        ToolSpec,
        ToolStarted,
        VendorBlockEnded,
    )
    from handaxe.models.factory import FallbackModel, open_model
    from handaxe.models.prices import cost_usd
    from handaxe.models.recording import RecordingModel, ReplayModel
    from handaxe.models.scripted import ModelScript, ScriptedModel, load_script, parse_script
    from handaxe.models.sdk_clients import from_client

_HOMES = {
    "Failure": "handaxe.contract.ports.model",
    "FallbackModel": "handaxe.models.factory",
    "MessageEnded": "handaxe.contract.ports.model",
    "Model": "handaxe.contract.ports.model",
    "ModelEvent": "handaxe.contract.ports.model",
    "ModelFailed": "handaxe.contract.ports.model",
    "ModelRequest": "handaxe.contract.ports.model",
    "ModelScript": "handaxe.models.scripted",
    "RecordingModel": "handaxe.models.recording",
    "ReplayModel": "handaxe.models.recording",
    "RequestOrigin": "handaxe.contract.ports.model",
    "Retrying": "handaxe.contract.ports.model",
    "ScriptedModel": "handaxe.models.scripted",
    "StopReason": "handaxe.contract.messages",
    "TextDelta": "handaxe.contract.ports.model",
    "ThinkingDelta": "handaxe.contract.ports.model",
    "TokenUsage": "handaxe.contract.messages",
    "ToolEnded": "handaxe.contract.ports.model",
    "ToolInputDelta": "handaxe.contract.ports.model",
    "ToolSpec": "handaxe.contract.ports.model",
    "ToolStarted": "handaxe.contract.ports.model",
    "VendorBlockEnded": "handaxe.contract.ports.model",
    "cost_usd": "handaxe.models.prices",
    "from_client": "handaxe.models.sdk_clients",
    "load_script": "handaxe.models.scripted",
    "open_model": "handaxe.models.factory",
    "parse_script": "handaxe.models.scripted",
}

__all__ = [
    "Failure",
    "FallbackModel",
    "MessageEnded",
    "Model",
    "ModelEvent",
    "ModelFailed",
    "ModelRequest",
    "ModelScript",
    "RecordingModel",
    "ReplayModel",
    "RequestOrigin",
    "Retrying",
    "ScriptedModel",
    "StopReason",
    "TextDelta",
    "ThinkingDelta",
    "TokenUsage",
    "ToolEnded",
    "ToolInputDelta",
    "ToolSpec",
    "ToolStarted",
    "VendorBlockEnded",
    "cost_usd",
    "from_client",
    "load_script",
    "open_model",
    "parse_script",
]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - every public name has its own type
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'handaxe.models' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
