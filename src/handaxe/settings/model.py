"""Every option of handaxe, with its meaning and its default."""

from typing import Annotated, Any, Literal

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.text.coercion import InputProblems, read_input


class _Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ReadOptions(_Options, frozen=True, kw_only=True):
    """How Read shows a file."""

    line_format: Annotated[
        Literal["arrow", "tab"], "`arrow` shows `     1→text`, `tab` shows `1<TAB>text`."
    ] = "arrow"


class EditOptions(_Options, frozen=True, kw_only=True):
    """How Edit finds its place."""

    tolerance: Annotated[
        Literal["exact", "visible"],
        "`exact` wants the very text; `visible` also accepts differences a reader cannot see, "
        "where only one place fits, and says so.",
    ] = "visible"


class UndoOptions(_Options, frozen=True, kw_only=True):
    """How long changes can be undone."""

    max_bytes: Annotated[
        int, msgspec.Meta(ge=0), "How much old content is kept, over all sessions; oldest go first."
    ] = 1 << 30
    retention_days: Annotated[
        int, msgspec.Meta(ge=1), "How long a session's changes can be undone after its last one."
    ] = 30


class PermissionOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """What may run without a question."""

    allow: Annotated[tuple[str, ...], "Rules for calls that run at once."] = ()
    ask: Annotated[tuple[str, ...], "Rules for calls that always ask."] = ()
    deny: Annotated[tuple[str, ...], "Rules for calls that never run."] = ()
    default_mode: Annotated[str | None, "The permission mode a session starts in."] = None
    additional_directories: Annotated[
        tuple[str, ...], "More directories the session may work in."
    ] = ()


class Settings(_Options, frozen=True, kw_only=True):
    """The whole configuration of a session."""

    read: ReadOptions = ReadOptions()
    edit: EditOptions = EditOptions()
    permissions: PermissionOptions = PermissionOptions()
    undo: UndoOptions = UndoOptions()
    max_parallel_calls: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "How many calls run at once."
    ] = 10
    retention_days: Annotated[
        int, msgspec.Meta(ge=1), "How long stored results are kept after their session."
    ] = 30


def read_settings(raw: Settings | dict[str, Any] | None, *, source: str) -> Settings:
    """Settings from plain data; dotted keys (`"read.line_format"`) may stand for nested ones."""
    if raw is None:
        return Settings()
    if isinstance(raw, Settings):
        return raw
    try:
        return read_input(Settings, _nested(raw))[0]
    except InputProblems as problems:
        listed = "\n".join(f"  {problem}" for problem in problems.problems)
        raise SetupError(f"The settings from {source} are wrong:\n{listed}") from None


def _nested(raw: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in raw.items():
        group, dot, name = str(key).partition(".")
        if dot and isinstance(nested.setdefault(group, {}), dict):
            nested[group] = {**nested[group], name: value}
        elif isinstance(value, dict) and isinstance(nested.get(key), dict):
            nested[key] = {**value, **nested[key]}
        else:
            nested[key] = value
    return nested
