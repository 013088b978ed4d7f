"""A Python type as JSON Schema: what kind of value it takes, part by part.

Every record (struct, data class, typed dict) is a definition of its own, so that it can hold
itself; `schema` puts them in place and in order.
"""

import datetime
import enum
import types
from collections import abc
from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from handaxe.contract.input_shape import is_class_converted
from handaxe.contract.json_values import to_json_value

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
"""The formats that msgspec gives only for types with a time zone, which models should use too."""
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_SAME_IN_JSON: dict[Any, Any] = {
    abc.Collection: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}
_SAYS_NOTHING = (Final, Required, NotRequired)
"""The wrappers of a type that do not change its values."""


def build_type_schema(kind: Any, *, is_input: bool) -> JsonSchema:  # noqa: ANN401 - any type
    """The schema with all definitions; `TypeError` for a type whose values JSON cannot hold."""
    return _Writer(is_input=is_input).write(kind)


def convert_with_class(kind: Any, value: Any) -> Any:  # noqa: ANN401 - what the class makes
    """A value that its class makes, where msgspec does not know it; `ValueError` if it refuses."""
    if not hasattr(kind, "model_validate"):
        return kind(value) if is_class_converted(kind) else value
    try:
        return kind.model_validate(value)
    except ValueError as error:
        # A pydantic model's error, known by its shape: pydantic is never imported here.
        listed = cast("list[dict[str, Any]]", getattr(error, "errors", list)())
        places = [".".join(map(str, item["loc"])) for item in listed]
        told = [
            f"{at}: {item['msg']}" if at else item["msg"]
            for at, item in zip(places, listed, strict=True)
        ]
        raise ValueError("; ".join(told) or str(error)) from None


_Field: TypeAlias = msgspec.structs.FieldInfo | msgspec.inspect.Field


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
        kind = _unwrap_type(kind)
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, parts = get_origin(kind), get_args(kind)
        origin = _SAME_IN_JSON.get(origin, origin)
        if origin is Annotated:
            return self._write_annotated(parts[0], parts[1:])
        if origin is Union or origin is types.UnionType:
            return self._write_union(parts)
        if origin is Literal:
            return _build_enum_schema(list(parts))
        if origin in (list, set, frozenset, tuple, dict):
            return (
                self._write_collection(origin, parts)
                if parts or kind == tuple[()]
                else self._of(origin)
            )
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _build_enum_schema([member.value for member in kind])
        struct = cast("Any", origin or kind)
        if hasattr(struct, "__struct_config__") and not struct.__struct_config__.array_like:
            return self._write_definition(kind, struct.__name__, lambda: self._object(kind, struct))
        if _is_record(kind):
            return self._write_definition(kind, kind.__name__, lambda: self._record(kind))
        return self._write_foreign(kind)

    def _write_annotated(self, kind: Any, extras: tuple[Any, ...]) -> JsonSchema:  # noqa: ANN401
        schema = self._of(kind)
        for extra in extras:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, msgspec.Meta):
                _limit(schema, extra)
        return schema

    def _write_union(self, parts: tuple[Any, ...]) -> JsonSchema:
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

    def _write_collection(self, origin: Any, parts: tuple[Any, ...]) -> JsonSchema:  # noqa: ANN401
        schema = dict(_PLAIN[origin])
        if origin is dict:
            schema["propertyNames"] = _build_key_schema(self._of(parts[0]))
            schema["additionalProperties"] = self._of(parts[1])
        elif not parts:
            schema["maxItems"] = 0
        elif origin is tuple and parts[-1] is not ...:
            schema["prefixItems"] = [self._of(part) for part in parts]
            schema |= {"items": False, "minItems": len(parts), "maxItems": len(parts)}
        else:
            schema["items"] = self._of(parts[0])
        return {key: value for key, value in schema.items() if value != {}}

    def _write_definition(self, kind: Any, name: str, body: Callable[[], JsonSchema]) -> JsonSchema:  # noqa: ANN401
        """A reference to the definition of a type, which is written when first asked for."""
        if kind not in self._names:
            self._names[kind] = name = self._find_free_name(name)
            self._defs[name] = {}
            self._defs[name] = body()
        return {"$ref": f"#/$defs/{self._names[kind]}"}

    def _find_free_name(self, name: str) -> str:
        while name in self._defs:
            name += "_"
        return name

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
            properties[field.encode_name] = self._write_field(field, field.type)
            if field.required:
                required.append(field.encode_name)
        schema["properties"] = properties
        return {**schema, "required": required} if required else schema

    def _record(self, kind: Any) -> JsonSchema:  # noqa: ANN401 - a data class or typed dict
        schema: JsonSchema = {"type": "object"}
        doc = kind.__dict__.get("__doc__")
        if doc and not doc.startswith(f"{kind.__name__}("):
            # A data class without words of its own is given its signature.
            schema["description"] = " ".join(doc.split())
        info = cast("msgspec.inspect.DataclassType", msgspec.inspect.type_info(kind))
        fields = {field.name: field for field in info.fields}
        # By the hints, which know the order they were declared in and the words about them.
        hints = get_type_hints(kind, include_extras=True)
        named = {name: fields[name] for name in hints if name in fields}
        schema["properties"] = {
            field.encode_name: self._write_field(field, hints[name])
            for name, field in named.items()
        }
        required = [field.encode_name for field in named.values() if field.required]
        return {**schema, "required": required} if required else schema

    def _write_field(self, field: _Field, kind: Any) -> JsonSchema:  # noqa: ANN401 - any type
        schema = self._of(kind)
        default = _get_default(field)
        if default is None and self._is_input and not field.required:
            # Leaving it out and sending null mean the same, so the model need not know of null.
            return strip_null(schema)
        if default is not None:
            schema["default"] = default
        return schema

    def _write_foreign(self, kind: Any) -> JsonSchema:  # noqa: ANN401 - any other type
        """Dates, UUIDs, tuples with names: as msgspec describes them; models as they do it."""
        if is_class_converted(kind):
            return self._write_with_class(kind)
        try:
            (schema,), defs = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        except (TypeError, RuntimeError):
            # What msgspec says here is for whoever calls msgspec.
            raise TypeError(f"{kind!r} has no form in JSON") from None
        if kind in _MOMENTS:
            schema.setdefault("format", _MOMENTS[kind])
        return self._adopt_schema(schema, defs)

    def _write_with_class(self, kind: Any) -> JsonSchema:  # noqa: ANN401 - a model or path
        if not hasattr(kind, "model_json_schema"):
            return {"type": "string"}

        def body() -> JsonSchema:
            schema = self._read_model_schema(kind)
            defs = schema.pop("$defs", {})
            # A model that holds itself is among its own definitions.
            own = schema.get("$ref", "").rpartition("/")[2]
            return self._adopt_schema(defs.pop(own, schema), defs, {own: self._names[kind]})

        return self._write_definition(kind, kind.__name__, body)

    def _read_model_schema(self, kind: Any) -> JsonSchema:  # noqa: ANN401 - a model
        if self._is_input:
            return kind.model_json_schema(mode="validation")
        # By the names under which the model gives its fields away.
        has_aliases = getattr(kind, "model_config", {}).get("serialize_by_alias") is True
        return kind.model_json_schema(by_alias=has_aliases, mode="serialization")

    def _adopt_schema(
        self, schema: JsonSchema, defs: JsonSchema, given: dict[str, str] | None = None
    ) -> JsonSchema:
        """A foreign schema, with its definitions under free names."""
        names = dict(given or {})
        for name, body in defs.items():
            is_known = self._defs.get(name) == body
            names[name] = name if is_known else self._find_free_name(name)
            self._defs.setdefault(names[name], {})
        for name, body in defs.items():
            self._defs[names[name]] = _rename_references(body, names)
        return _rename_references(schema, names)


def _rename_references(node: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(node, list):
        return [_rename_references(part, names) for part in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = {
        key: _rename_references(part, names) for key, part in cast("JsonSchema", node).items()
    }
    if isinstance(schema.get("$ref"), str):
        name = schema["$ref"].rpartition("/")[2]
        schema["$ref"] = f"#/$defs/{names.get(name, name)}"
    return schema


def _unwrap_type(kind: Any) -> Any:  # noqa: ANN401 - any type
    """The type without what only names or marks it."""
    while True:
        if get_origin(kind) in _SAYS_NOTHING:
            kind = get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        else:
            return kind


def _is_record(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Whether it is a data class or typed dict; one with parameters is left to msgspec."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or (hasattr(kind, "__total__") and issubclass(kind, dict))
    )


def _build_key_schema(key: JsonSchema) -> JsonSchema:
    """The pattern for the names of a dict. JSON names are always text."""
    if "enum" in key:
        return {"enum": [value if isinstance(value, str) else str(value) for value in key["enum"]]}
    if key.get("type") == "integer":
        return {"pattern": "^-?[0-9]+$"}
    return {
        name: key[name] for name in ("pattern", "minLength", "maxLength", "format") if name in key
    }


def _build_enum_schema(values: list[Any]) -> JsonSchema:
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


def _get_default(field: _Field) -> Any:  # noqa: ANN401 - any JSON value
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = _call_stable_factory(field.default_factory)
    if default is msgspec.NODEFAULT or default is msgspec.UNSET:
        return None
    return msgspec.json.decode(_encoder.encode(default))


def _call_stable_factory(factory: Any) -> Any:  # noqa: ANN401 - any value
    """The default that a factory makes, if it is the same each time.

    A factory of a mutable value makes equal values; a factory of another value may not.
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


_encoder = msgspec.json.Encoder(order="deterministic", enc_hook=to_json_value)


def strip_null(schema: JsonSchema) -> JsonSchema:
    """The schema of `T` where the type was `T | None`."""
    plain = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        plain["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "enum" in schema:
        plain |= _build_enum_schema([value for value in schema["enum"] if value is not None])
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if branch != {"type": "null"}]
        # The field's own words go above those of the type.
        return {**branches[0], **plain} if len(branches) == 1 else {**plain, "anyOf": branches}
    return plain
