"""Whether the data of a call fits the output type that its tool declares."""

from functools import lru_cache
from typing import Any, cast

from handaxe.contract.result import to_json_data
from handaxe.schema.json_schema_input import format_path
from handaxe.schema.tool_schema import build_closed_output_schema, build_output_schema

MAX_PROBLEMS = 5
MAX_MESSAGE_CHARS = 200


def find_output_problems(
    output_type: Any,  # noqa: ANN401 - any type, or an `OutputShape`
    data: object,
    *,
    closed: bool = False,
) -> list[str]:
    """One sentence per field of the data that does not fit; none if all of it does.

    Nothing is as good as an empty object: a result without data has one. A type that has no form
    in JSON promises nothing. `closed` refuses fields that are not declared.
    """
    validator = None if output_type is None else _build_validator(output_type, closed=closed)
    if validator is None or (data is None and validator.is_valid(None)):
        return []
    plain: Any = to_json_data(data)
    if validator.is_valid(plain):
        return []
    if data is None:
        return ["it gave no data"]
    problems: list[str] = []
    for error in validator.iter_errors(plain):
        problems += _describe_error(error)
        if len(problems) >= MAX_PROBLEMS:
            break
    return list(dict.fromkeys(problems))[:MAX_PROBLEMS]


@lru_cache(maxsize=1024)
def _build_validator(output_type: Any, *, closed: bool) -> Any:  # noqa: ANN401 - of jsonschema_rs
    import jsonschema_rs

    build = build_closed_output_schema if closed else build_output_schema
    try:
        schema = cast("dict[str, Any]", build(output_type))
        return jsonschema_rs.validator_for(schema, offline=True)
    except Exception:  # noqa: BLE001 - a type or schema of others, in any way it can be broken
        return None


def _describe_error(error: Any) -> list[str]:  # noqa: ANN401 - of jsonschema_rs
    """The problem, with the names of fields. For alternatives, the problem of the nearest one."""
    kind = error.kind
    name = type(kind).__name__.rpartition("_")[2]
    if name in ("AnyOf", "OneOfNotValid") and kind.context:
        nearest = min(kind.context, key=_rank_alternative)
        return [told for inner in nearest for told in _describe_error(inner)]
    path = list(cast("list[str | int]", error.instance_path))
    if name == "Required":
        return [f"the field `{format_path([*path, kind.property])}` is missing"]
    if name in ("AdditionalProperties", "FalseSchema"):
        names = getattr(kind, "unexpected", ())
        return [f"the field `{format_path([*path, field])}` is not declared" for field in names]
    place = f"the field `{format_path(path)}`" if path else "the data"
    if name == "Type":
        wanted = " or ".join(kind.types)
        return [f"{place} is {_name_kind(error.instance)}, not {wanted}"]
    message = str(error.message)
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"{message[:120]} ... {message[-70:]}"
    return [f"{place} is not valid: {message}"]


def _rank_alternative(errors: list[Any]) -> tuple[bool, int, int]:
    """Choose an alternative by a constant or by its kind, then by the fewest errors."""
    told_apart = [
        error
        for error in errors
        if type(error.kind).__name__.endswith(("Constant", "Enum"))
        or (type(error.kind).__name__.endswith("Type") and not error.instance_path)
    ]
    return bool(told_apart), len(errors), -max((len(e.instance_path) for e in errors), default=0)


_KINDS: dict[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


def _name_kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)
