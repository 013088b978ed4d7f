"""Open the configuration of a project, with everything that its files may request."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handaxe.config.project import Configuration, Given
from handaxe.config.source import SettingsFragment

if TYPE_CHECKING:
    from handaxe.contract.trust_gate import TrustRequest


def open_configuration(
    root: str,
    *,
    home: Path,
    given: Given = None,
    sources: str | Sequence[str] | None = None,
    trusted: bool | None = None,
) -> Configuration:
    """Read the settings of a project; `root` is a real path."""
    return Configuration(
        root,
        home=home,
        given=given,
        sources=sources,
        trusted=trusted,
        find_requests=_find_requests,
    )


def _find_requests(
    root: str, fragments: Iterable[SettingsFragment], *, in_parts: bool = True
) -> "list[TrustRequest[Any]]":
    # Where nobody asks for them, no file of a project needs to be read.
    from handaxe.app.services.trust_requests import find_trust_requests

    return find_trust_requests(root, fragments, in_parts=in_parts)
