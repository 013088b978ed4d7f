"""One clean JSON Schema per input or output type.

Written for models to read: field docs as descriptions, values in the order they were declared,
no titles, no references where a definition is used once. The same type gives the same bytes.
Reading an input by such a schema is the business of `coercion`; a provider's dialect of it, of
`dialects`.
"""

import datetime
import enum
import types
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from handaxe.contract.input_shape import InputShape

JsonSchema = dict[str, Any]

_PLAIN: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    frozenset: {"type": "array", "uniqueItems": True},
    dict: {"type": "object"},
}
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_MOMENTS = {datetime.datetime: "date-time", datetime.time: "time"}
"""What msgspec says only of those with a time zone, which a model would better give anyway."""
_ORDER = ("$ref", "type", "description", "enum", "const", "anyOf", "properties", "required")
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


@lru_cache(maxsize=1024)
def input_schema(args_type: Any) -> JsonSchema:  # noqa: ANN401 - struct, pydantic model, shape
    """The schema of a tool's input: an object that takes no unknown field, unless it is a shape.

    The answer is shared between callers; do not change it.
    """
    if isinstance(args_type, InputShape):
        return args_type.schema
    if hasattr(args_type, "model_json_schema"):
        return _tidy(args_type.model_json_schema(), closed=True)
    return _tidy(_Writer(is_input=True).write(args_type), closed=True)


@lru_cache(maxsize=1024)
def output_schema(output_type: Any) -> JsonSchema | None:  # noqa: ANN401 - any type
    """The schema of a tool's data, open to later fields; None where nothing is promised."""
    if output_type is None:
        return None
    if hasattr(output_type, "model_json_schema"):
        return _tidy(output_type.model_json_schema(mode="serialization"), closed=False)
    return _tidy(_Writer(is_input=False).write(output_type), closed=False)


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
    return all(_has_no_open_part(part, seen) for part in get_args(kind))


class _Writer:
    """Turns one Python type into a schema, every struct as a definition of its own."""

    def __init__(self, *, is_input: bool) -> None:
        self._is_input = is_input
        self._names: dict[Any, str] = {}
        self._defs: dict[str, JsonSchema] = {}

    def write(self, root: Any) -> JsonSchema:  # noqa: ANN401 - any type
        schema = self._of(root)
        return {**schema, "$defs": self._defs} if self._defs else schema

    def _of(self, kind: Any) -> JsonSchema:  # noqa: ANN401, PLR0911 - one answer per kind of type
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, parts = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(parts[0], parts[1:])
        if origin is Union or origin is types.UnionType:
            return self._union(parts)
        if origin is Literal:
            return _of_values(list(parts))
        if origin in (list, set, frozenset, tuple, dict):
            return self._collection(origin, parts)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _of_values([member.value for member in kind])
        struct = cast("Any", origin or kind)
        is_struct = hasattr(struct, "__struct_config__") and not struct.__struct_config__.array_like
        return self._struct(kind, struct) if is_struct else self._foreign(kind)

    def _annotated(self, kind: Any, extras: tuple[Any, ...]) -> JsonSchema:  # noqa: ANN401
        schema = self._of(kind)
        for extra in extras:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, msgspec.Meta):
                _limit(schema, extra)
        return schema

    def _union(self, parts: tuple[Any, ...]) -> JsonSchema:
        branches: list[JsonSchema] = []
        for part in parts:
            # Two types of Python may be one to JSON.
            if part is not msgspec.UnsetType and (branch := self._of(part)) not in branches:
                branches.append(branch)
        if len(branches) == 1:
            return branches[0]
        if all(branch.keys() == {"type"} for branch in branches):
            return {"type": [branch["type"] for branch in branches]}
        return {"anyOf": branches}

    def _collection(self, origin: Any, parts: tuple[Any, ...]) -> JsonSchema:  # noqa: ANN401
        schema = dict(_PLAIN[origin])
        if origin is dict:
            schema["propertyNames"] = _of_names(self._of(parts[0]))
            schema["additionalProperties"] = self._of(parts[1])
        elif origin is tuple and parts[-1] is not ...:
            schema["prefixItems"] = [self._of(part) for part in parts]
            schema |= {"items": False, "minItems": len(parts), "maxItems": len(parts)}
        else:
            schema["items"] = self._of(parts[0])
        return {key: value for key, value in schema.items() if value != {}}

    def _struct(self, kind: Any, struct: type[msgspec.Struct]) -> JsonSchema:  # noqa: ANN401
        if kind not in self._names:
            name = struct.__name__
            while name in self._defs:
                name += "_"
            self._names[kind] = name
            self._defs[name] = {}
            self._defs[name] = self._object(kind, struct)
        return {"$ref": f"#/$defs/{self._names[kind]}"}

    def _object(self, kind: Any, struct: type[msgspec.Struct]) -> JsonSchema:  # noqa: ANN401
        schema: JsonSchema = {"type": "object"}
        if struct.__doc__ and "__doc__" in struct.__dict__:
            schema["description"] = " ".join(struct.__doc__.split())
        properties: JsonSchema = {}
        required: list[str] = []
        config = struct.__struct_config__
        if config.tag_field is not None:
            properties[config.tag_field] = {"const": config.tag}
            required.append(config.tag_field)
        for field in msgspec.structs.fields(kind):
            properties[field.encode_name] = self._field(field)
            if field.required:
                required.append(field.encode_name)
        schema["properties"] = properties
        if required:
            schema["required"] = required
        return schema

    def _field(self, field: msgspec.structs.FieldInfo) -> JsonSchema:
        schema = self._of(field.type)
        default = _default_of(field)
        if default is None and self._is_input and not field.required:
            # Leaving it out and sending null mean the same, so the model need not know of null.
            return _without_null(schema)
        if default is not None:
            schema["default"] = default
        return schema

    def _foreign(self, kind: Any) -> JsonSchema:  # noqa: ANN401 - any type msgspec knows
        """Dates, UUIDs, data classes, typed dicts: as msgspec describes them."""
        try:
            (schema,), defs = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        except (TypeError, RuntimeError):
            # What msgspec says here is for whoever calls msgspec.
            raise TypeError(f"{kind!r} has no form in JSON") from None
        self._defs.update(defs)
        if kind in _MOMENTS:
            schema.setdefault("format", _MOMENTS[kind])
        return schema


def _of_names(key: JsonSchema) -> JsonSchema:
    """What the names of a dict have to be, which are text whatever they mean."""
    if "enum" in key:
        return {"enum": [value if isinstance(value, str) else str(value) for value in key["enum"]]}
    if key.get("type") == "integer":
        return {"pattern": "^-?[0-9]+$"}
    return {
        name: key[name] for name in ("pattern", "minLength", "maxLength", "format") if name in key
    }


def _of_values(values: list[Any]) -> JsonSchema:
    kinds = {_KIND_OF_VALUE.get(value.__class__) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


_KIND_OF_VALUE = {str: "string", int: "integer", bool: "boolean", float: "number"}


def _limit(schema: JsonSchema, meta: msgspec.Meta) -> None:
    for name, keyword in _LIMITS.items():
        if (value := getattr(meta, name)) is not None:
            schema[keyword] = value
    noun = _LENGTHS.get(str(schema.get("type")), "Length")
    if meta.min_length is not None:
        schema[f"min{noun}"] = meta.min_length
    if meta.max_length is not None:
        schema[f"max{noun}"] = meta.max_length
    if meta.description is not None:
        schema["description"] = meta.description
    schema.update(meta.extra_json_schema or {})


def _default_of(field: msgspec.structs.FieldInfo) -> Any:  # noqa: ANN401 - any JSON value
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = _made_alike(field.default_factory)
    if default is msgspec.NODEFAULT or default is msgspec.UNSET:
        return None
    return msgspec.json.decode(_encoder.encode(default))


def _made_alike(factory: Any) -> Any:  # noqa: ANN401 - any value
    """What a factory makes, if that can be told: a single value may be another each time.

    A factory for something that can change is there to make it fresh, not to make it different.
    """
    try:
        made, again = factory(), factory()
        is_told = _is_made_of_parts(made) and _encoder.encode(made) == _encoder.encode(again)
    except Exception:  # noqa: BLE001 - anybody's function; it fails where it is used
        return msgspec.UNSET
    return made if is_told else msgspec.UNSET


def _is_made_of_parts(value: object) -> bool:
    has_fields = hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__")
    return has_fields or isinstance(value, list | tuple | set | frozenset | dict)


_encoder = msgspec.json.Encoder(order="deterministic")


def _without_null(schema: JsonSchema) -> JsonSchema:
    """The schema of `T` where the type was `T | None`."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        plain["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "enum" in schema:
        plain |= _of_values([value for value in schema["enum"] if value is not None])
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch != {"type": "null"}]
        # The field's own words go above those of the type.
        return {**branches[0], **plain} if len(branches) == 1 else {**plain, "anyOf": branches}
    return plain


def _tidy(schema: JsonSchema, *, closed: bool) -> JsonSchema:
    """Root written out, definitions used once put in place, keys in a fixed order."""
    defs: dict[str, JsonSchema] = {
        name: _cleaned(body, closed=closed) for name, body in schema.pop("$defs", {}).items()
    }
    root = _cleaned(schema, closed=closed)
    if "$ref" in root:
        # The tool's prompt describes the whole; a second description would only repeat it.
        root = {key: part for key, part in defs[_target(root)].items() if key != "description"}
    defs = {name: body for name, body in defs.items() if name in _reached(root, defs)}
    uses = _refs([root, *defs.values()])
    once = {
        name
        for name, body in defs.items()
        if uses.count(name) == 1 and name not in _reached(body, defs)
    }
    root = _inlined(root, defs, once)
    kept = {name: _inlined(body, defs, once) for name, body in defs.items() if name not in once}
    return {**root, "$defs": kept} if kept else root


def _cleaned(node: Any, *, closed: bool) -> Any:  # noqa: ANN401 - any part of a schema
    """Without generated titles; every object closed that says nothing else."""
    if isinstance(node, list):
        return [_cleaned(item, closed=closed) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    clean: JsonSchema = {}
    for key, value in cast("JsonSchema", node).items():
        if key in ("properties", "$defs"):
            clean[key] = {name: _cleaned(part, closed=closed) for name, part in value.items()}
        elif key in ("default", "enum", "const", "examples"):
            clean[key] = value
        elif key != "title":
            clean[key] = _cleaned(value, closed=closed)
    if clean.get("default", ...) is None and closed:
        clean = _without_null(clean)
    if closed and "properties" in clean:
        clean.setdefault("additionalProperties", False)
    return {key: clean[key] for key in sorted(clean, key=_rank)}


def _rank(keyword: str) -> int:
    return _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)


def _target(node: JsonSchema) -> str:
    return node["$ref"].rpartition("/")[2]


def _refs(node: Any) -> list[str]:  # noqa: ANN401 - any part of a schema
    if isinstance(node, list):
        return [name for item in cast("list[Any]", node) for name in _refs(item)]
    if not isinstance(node, dict):
        return []
    here = [_target(cast("JsonSchema", node))] if isinstance(node.get("$ref"), str) else []  # pyright: ignore[reportUnknownMemberType]
    return here + [name for item in cast("JsonSchema", node).values() for name in _refs(item)]


def _reached(node: JsonSchema, defs: dict[str, JsonSchema]) -> set[str]:
    seen: set[str] = set()
    waiting = _refs(node)
    while waiting:
        name = waiting.pop()
        if name not in seen and name in defs:
            seen.add(name)
            waiting += _refs(defs[name])
    return seen


def _inlined(node: Any, defs: dict[str, JsonSchema], once: set[str]) -> Any:  # noqa: ANN401
    if isinstance(node, list):
        return [_inlined(item, defs, once) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("JsonSchema", node)
    if isinstance(schema.get("$ref"), str) and _target(schema) in once:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**defs[_target(schema)], **beside}
    return {key: _inlined(value, defs, once) for key, value in schema.items()}
