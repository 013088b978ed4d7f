"""Language models: the `Model` port for each vendor's API.

Belongs here: choosing a model by name, thin clients, failures and retries, prices, recordings.
Does not: conversations (`agent`), tool execution (`pipeline`), settings files (`config`).
May import: `shell/sandbox` and the layers below it; httpx2, when used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handaxe.models.factory import open_model

__all__ = ["open_model"]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - every public name has its own type
    if name != "open_model":
        raise AttributeError(f"module 'handaxe.models' has no attribute {name!r}")
    from handaxe.models.factory import open_model

    return open_model
