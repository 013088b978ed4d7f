"""One clean JSON Schema per input or output type.

Written for models to read: field docs as descriptions, values in the order they were declared,
no titles, no references where a definition is used once. The same type gives the same bytes.
Reading an input by such a schema is the business of `coercion`; a provider's dialect of it, of
`dialects`.
"""

import types
from collections.abc import Collection
from functools import lru_cache
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from handaxe.contract.input_shape import InputShape, OutputShape, is_class_converted

JsonSchema = dict[str, Any]

_ORDER = ("$ref", "type", "description", "enum", "const", "anyOf", "properties", "required")


@lru_cache(maxsize=1024)
def build_input_schema(args_type: Any) -> JsonSchema:  # noqa: ANN401 - struct, pydantic model, shape
    """The schema of a tool's input: an object that takes no unknown field, unless it is a shape.

    The answer is shared between callers; do not change it.
    """
    if isinstance(args_type, InputShape):
        return args_type.schema
    if hasattr(args_type, "model_json_schema"):
        return _normalize_schema(args_type.model_json_schema(), closed=True)
    from handaxe.schema.from_type import build_type_schema

    return _normalize_schema(build_type_schema(args_type, is_input=True), closed=True)


@lru_cache(maxsize=1024)
def build_output_schema(output_type: Any) -> JsonSchema | None:  # noqa: ANN401 - any type
    """The schema of a tool's data, open to later fields; None where nothing is promised.

    The answer is shared between callers; do not change it.
    """
    if output_type is None:
        return None
    if isinstance(output_type, OutputShape):
        return output_type.schema
    return _build_own_output_schema(output_type, closed=False)


@lru_cache(maxsize=256)
def build_closed_output_schema(output_type: Any) -> JsonSchema:  # noqa: ANN401 - any type
    """The same, refusing every field that is not declared."""
    return _build_own_output_schema(output_type, closed=True)


def _build_own_output_schema(output_type: Any, *, closed: bool) -> JsonSchema:  # noqa: ANN401
    from handaxe.schema.from_type import build_type_schema

    schema = _normalize_schema(build_type_schema(output_type, is_input=False), closed=closed)
    given: list[JsonSchema] = schema.get("anyOf", [])
    branches = [
        schema["$defs"][_get_reference_name(branch)] if "$ref" in branch else branch
        for branch in given
    ]
    if branches and all(branch.get("type") == "object" for branch in branches):
        # MCP wants to read at the root that data is an object.
        schema = {"type": "object", **schema}
    return schema


def is_closed(args_type: Any) -> bool:  # noqa: ANN401 - any type
    """Whether msgspec itself refuses unknown fields at every level of this type."""
    return hasattr(args_type, "__struct_config__") and _has_no_open_part(args_type, set())


def _has_no_open_part(kind: Any, seen: set[Any]) -> bool:  # noqa: ANN401 - any type
    struct = get_origin(kind) or kind
    if hasattr(struct, "__struct_config__") and kind not in seen:
        seen.add(kind)
        return struct.__struct_config__.forbid_unknown_fields and all(
            _has_no_open_part(field.type, seen) for field in msgspec.structs.fields(kind)
        )
    if hasattr(struct, "__dataclass_fields__") or hasattr(struct, "__total__"):
        return False
    if is_class_converted(struct):
        return False
    return all(_has_no_open_part(part, seen) for part in get_args(kind))


def _normalize_schema(schema: JsonSchema, *, closed: bool) -> JsonSchema:
    """Root written out, definitions used once put in place, keys in a fixed order."""
    defs: dict[str, JsonSchema] = {
        name: _clean_node(body, closed=closed) for name, body in schema.pop("$defs", {}).items()
    }
    root = _clean_node(schema, closed=closed)
    if "$ref" in root:
        # The tool's prompt describes the whole; a second description would only repeat it.
        root = {
            key: part
            for key, part in defs[_get_reference_name(root)].items()
            if key != "description"
        }
    defs = {name: body for name, body in defs.items() if name in _collect_reachable(root, defs)}
    uses = _collect_references([root, *defs.values()])
    once = {
        name
        for name, body in defs.items()
        if uses.count(name) == 1 and name not in _collect_reachable(body, defs)
    }
    root = _inline_definitions(root, defs, once)
    kept = {
        name: _inline_definitions(body, defs, once)
        for name, body in defs.items()
        if name not in once
    }
    return {**root, "$defs": kept} if kept else root


def _clean_node(node: Any, *, closed: bool) -> Any:  # noqa: ANN401 - any part of a schema
    """Without generated titles; every object closed that says nothing else."""
    if isinstance(node, list):
        return [_clean_node(item, closed=closed) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    clean: JsonSchema = {}
    for key, value in cast("JsonSchema", node).items():
        if key in ("properties", "$defs"):
            clean[key] = {name: _clean_node(part, closed=closed) for name, part in value.items()}
        elif key in ("default", "enum", "const", "examples"):
            clean[key] = value
        elif key != "title":
            clean[key] = _clean_node(value, closed=closed)
    if clean.get("default", ...) is None and closed:
        from handaxe.schema.from_type import strip_null

        clean = strip_null(clean)
    if closed and "properties" in clean:
        clean.setdefault("additionalProperties", False)
    return {key: clean[key] for key in sorted(clean, key=_rank)}


def _rank(keyword: str) -> int:
    return _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)


def _get_reference_name(node: JsonSchema) -> str:
    return node["$ref"].rpartition("/")[2]


def _collect_references(node: Any) -> list[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(node, list):
        return [name for item in cast("list[Any]", node) for name in _collect_references(item)]
    if not isinstance(node, dict):
        return []
    schema = cast("JsonSchema", node)
    here = [_get_reference_name(schema)] if isinstance(schema.get("$ref"), str) else []
    return here + [name for item in schema.values() for name in _collect_references(item)]


def _collect_reachable(node: JsonSchema, defs: dict[str, JsonSchema]) -> set[str]:
    seen: set[str] = set()
    waiting = _collect_references(node)
    while waiting:
        name = waiting.pop()
        if name not in seen and name in defs:
            seen.add(name)
            waiting += _collect_references(defs[name])
    return seen


def _inline_definitions(node: Any, defs: dict[str, JsonSchema], once: set[str]) -> Any:  # noqa: ANN401
    if isinstance(node, list):
        return [_inline_definitions(item, defs, once) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("JsonSchema", node)
    if isinstance(schema.get("$ref"), str) and _get_reference_name(schema) in once:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**defs[_get_reference_name(schema)], **beside}
    return {key: _inline_definitions(value, defs, once) for key, value in schema.items()}


_NUMBERS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length")
_DESCRIPTIONS = ("description", "documentation")


def from_annotations(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """The annotation with a `Meta` for each of its limits and descriptions."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, *extras = parts
        metas = [extra for given in extras for extra in _convert_metadata(given)]
        return cast("Any", Annotated)[(from_annotations(inner), *metas)]
    if origin is Union or origin is types.UnionType:
        return cast("Any", Union)[tuple(from_annotations(part) for part in parts)]
    if isinstance(origin, type) and issubclass(origin, Collection) and parts:
        return cast("Any", origin)[tuple(from_annotations(part) for part in parts)]
    return hint


def _convert_metadata(extra: Any) -> list[Any]:  # noqa: ANN401 - whatever stands in an annotation
    if isinstance(extra, str | msgspec.Meta):
        return [extra]
    facts: dict[str, Any] = {}
    # Fields of pydantic hold their limits in a list, each an object of its own.
    for given in (extra, *(getattr(extra, "metadata", None) or ())):
        for name in _NUMBERS:
            value = getattr(given, name, None)
            if isinstance(value, int | float):
                facts[name] = value
        if isinstance(pattern := getattr(given, "pattern", None), str):
            facts["pattern"] = pattern
        for name in _DESCRIPTIONS:
            if isinstance(text := getattr(given, name, None), str):
                facts["description"] = text
    return [msgspec.Meta(**facts)] if facts else [extra]
