"""One tool definition, as each model provider wants it; results are in `result_dialects`.

Only shapes are made here. Nothing is sent, no vendor's library is imported, and what a
dialect cannot say (a limit, a default) is said in the description instead of being lost.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.text.sanitize import escape_surrogates

Schema: TypeAlias = dict[str, Any]

PROVIDERS = ("anthropic", "openai", "gemini", "json-schema")

_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_SIZES = ("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties")
_SAID_IN_WORDS = {
    # What each dialect refuses and a description can carry.
    "anthropic": (*_NUMERIC, "minLength", "maxLength", *_SIZES, "contentEncoding"),
    "openai": (
        "minLength",
        "maxLength",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "contentEncoding",
        "default",
    ),
    "gemini": (
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "uniqueItems",
        "format",
        "contentEncoding",
        "propertyNames",
        "additionalProperties",
    ),
}
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
"""The keywords that strict input of every provider supports."""
_GEMINI_KEEPS = {
    "type", "description", "enum", "default", "properties", "required", "items", "anyOf",
    "nullable", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems",
    "maxItems", "minProperties", "maxProperties",
}  # fmt: skip
_GEMINI_ANY: Schema = {"anyOf": [{"type": kind} for kind in ("STRING", "NUMBER", "BOOLEAN")]}
_GEMINI_NESTING = 3
"""How often a definition that holds itself is written out, since there are no references."""


def build_tool_schema(
    name: str,
    description: str,
    input_schema: Schema,
    provider: str,
    *,
    strict: bool = False,
    examples: Iterable[dict[str, Any]] = (),
) -> Schema:
    """A tool's definition in the dialect of `provider`; the given schema stays as it is.

    `strict` asks for guaranteed input where the provider offers that and the schema allows it.
    """
    dialect = get_provider_entry(provider, _TOOL_SCHEMAS)
    strict = strict and _is_strictable(input_schema)
    schema = _apply_to_schemas(input_schema, dict)
    if provider != "json-schema":
        schema = {"type": "object", **_merge_alternatives(schema, schema)}
    return dialect(_Offer(name, escape_surrogates(description), schema, strict, list(examples)))


def to_wire_name(name: str, provider: str) -> str:
    """A tool's name as `provider` accepts it; Gemini wants a letter or `_` in front."""
    is_refused = provider == "gemini" and not (name[:1].isalpha() or name.startswith("_"))
    return f"_{name}"[:64] if is_refused else name


def get_provider_entry(provider: str, table: dict[str, Any]) -> Any:  # noqa: ANN401 - an entry of the table
    """The entry of a table for one provider."""
    if provider not in table:
        known = ", ".join(PROVIDERS)
        raise SetupError(f"There is no provider {provider!r}. Choose one of: {known}.")
    return table[provider]


class _Offer(NamedTuple):
    name: str
    description: str
    schema: Schema
    strict: bool
    examples: list[Any]


def _build_anthropic_tool(offer: _Offer) -> Schema:
    tool: Schema = {"name": offer.name, "description": offer.description}
    tool["input_schema"] = offer.schema
    # Strict input knows no recursion here, and only recursive or shared parts are references.
    if offer.strict and "$defs" not in offer.schema:
        tool["input_schema"] = _apply_to_schemas(
            offer.schema, lambda part: _move_limits_to_description(part, "anthropic")
        )
        tool["strict"] = True
    if offer.examples:
        tool["input_examples"] = offer.examples
    return tool


def _build_openai_tool(offer: _Offer) -> Schema:
    function = {
        "name": offer.name,
        "description": _append_examples(offer),
        "parameters": _apply_to_schemas(offer.schema, _make_openai_strict)
        if offer.strict
        else offer.schema,
        "strict": offer.strict,
    }
    return {"type": "function", "function": function}


def _build_gemini_tool(offer: _Offer) -> Schema:
    name = to_wire_name(offer.name, "gemini")
    declaration: Schema = {"name": name, "description": _append_examples(offer)}
    # An object without properties is refused, so a tool without input has no parameters at all.
    if offer.schema.get("properties"):
        written_out = _expand_references(offer.schema, offer.schema, ())
        declaration["parameters"] = _apply_to_schemas(written_out, _convert_for_gemini)
    return declaration


def _build_plain_tool(offer: _Offer) -> Schema:
    examples = {"examples": offer.examples} if offer.examples else {}
    schema = {**offer.schema, **examples}
    return {"name": offer.name, "description": offer.description, "inputSchema": schema}


_TOOL_SCHEMAS = {
    "anthropic": _build_anthropic_tool,
    "openai": _build_openai_tool,
    "gemini": _build_gemini_tool,
    "json-schema": _build_plain_tool,
}


def _append_examples(offer: _Offer) -> str:
    if not offer.examples:
        return offer.description
    lines = [msgspec.json.encode(example).decode() for example in offer.examples]
    return "\n".join([offer.description, "", "Input examples:", *lines])


def _apply_to_schemas(schema: Any, change: Callable[[Schema], Schema]) -> Any:  # noqa: ANN401
    """A copy of `schema` with `change` applied to every schema in it, inner ones first."""
    if not isinstance(schema, dict):
        return schema
    copy: Schema = {}
    for key, part in cast("Schema", schema).items():
        if key in ("properties", "$defs"):
            copy[key] = {name: _apply_to_schemas(inner, change) for name, inner in part.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            copy[key] = [_apply_to_schemas(inner, change) for inner in part]
        elif key in ("items", "additionalProperties"):
            copy[key] = _apply_to_schemas(part, change)
        else:
            copy[key] = list(cast("list[Any]", part)) if isinstance(part, list) else part
    return change(copy)


def _move_limits_to_description(schema: Schema, dialect: str) -> Schema:
    """Limits that the dialect refuses, moved into the description."""
    refused = {key: schema.pop(key) for key in _SAID_IN_WORDS[dialect] if key in schema}
    if schema.get("format", "date") not in _FORMATS:
        refused["format"] = schema.pop("format")
    if isinstance(refused.get("additionalProperties"), bool):
        # Whether there may be more is for the reader of the input; of what kind is worth a word.
        del refused["additionalProperties"]
    words = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in refused.items()]
    if words:
        said = f"({', '.join(words)})"
        schema["description"] = f"{schema.get('description', '')} {said}".strip()
    return schema


def _is_strictable(schema: Any) -> bool:  # noqa: ANN401 - any part of a schema
    """Whether every value is of a declared type and no object takes names of its own choice."""
    if isinstance(schema, list):
        return all(_is_strictable(part) for part in cast("list[Any]", schema))
    if not isinstance(schema, dict):
        return True
    node = cast("Schema", schema)
    inner = [*node.get("properties", {}).values(), *node.get("$defs", {}).values()]
    inner += node.get("anyOf", []) + node.get("oneOf", [])
    if "items" in node:
        inner.append(node["items"])
    says_what = node.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}
    is_open = node.get("type") == "object" and node.get("additionalProperties") is not False
    is_loose = node.get("type") == "array" and not node.get("items")
    return bool(says_what) and not is_open and not is_loose and _is_strictable(inner)


def _make_openai_strict(schema: Schema) -> Schema:
    """Every property required; what was optional may be null instead."""
    if "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
    schema.pop("discriminator", None)
    if "properties" in schema:
        required = schema.get("required", [])
        for name, part in schema["properties"].items():
            if name not in required:
                schema["properties"][name] = _make_nullable(part)
        schema["required"] = list(schema["properties"])
        schema["additionalProperties"] = False
    return _move_limits_to_description(schema, "openai")


def _make_nullable(schema: Schema) -> Schema:
    kinds = schema.get("type")
    if "anyOf" in schema:
        has_null = {"type": "null"} in schema["anyOf"]
        return schema if has_null else {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if kinds is None or "const" in schema:
        beside = {"description": schema.pop("description")} if "description" in schema else {}
        return {**beside, "anyOf": [schema, {"type": "null"}]}
    listed: list[str] = cast("list[str]", kinds) if isinstance(kinds, list) else [kinds]
    if "null" in listed:
        return schema
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*listed, "null"], **values}


def _merge_alternatives(schema: Schema, root: Schema) -> Schema:
    """One object in place of the alternatives no provider takes at the root.

    Only other people's tools need it; their servers still check the input.
    """
    parts = [_resolve_reference(part, root) for part in schema.get("allOf", [])]
    options = [
        _resolve_reference(part, root) for part in schema.get("anyOf", []) + schema.get("oneOf", [])
    ]
    whole = {key: part for key, part in schema.items() if key not in ("allOf", "anyOf", "oneOf")}
    for part in (*parts, *options):
        whole["properties"] = {**whole.get("properties", {}), **part.get("properties", {})}
    required = [name for part in (schema, *parts) for name in part.get("required", [])]
    return {**whole, "required": list(dict.fromkeys(required))} if required else whole


def _resolve_reference(schema: Schema, root: Schema) -> Schema:
    """The schema a reference points to, with the keywords beside the reference added."""
    if not isinstance(schema.get("$ref"), str):
        return schema
    target: Any = root
    for step in schema["$ref"].split("/")[1:]:
        target = cast("Schema", target).get(step, {}) if isinstance(target, dict) else {}
    return {**target, **{key: part for key, part in schema.items() if key != "$ref"}}


def _expand_references(node: Any, root: Schema, above: tuple[str, ...]) -> Any:  # noqa: ANN401
    """The schema without references; one that holds itself ends after a few rounds."""
    if isinstance(node, list):
        return [_expand_references(part, root, above) for part in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("Schema", node)
    if isinstance(schema.get("$ref"), str):
        if above.count(schema["$ref"]) >= _GEMINI_NESTING:
            return {"type": "object", "description": "Nested further in the same way."}
        above = (*above, schema["$ref"])
        schema = _resolve_reference(schema, root)
    if "allOf" in schema:
        schema = _merge_alternatives(schema, root)
    whole = {
        key: _expand_references(part, root, above) for key, part in schema.items() if key != "$defs"
    }
    if "properties" in schema:
        named: Schema = schema["properties"]
        whole["properties"] = {key: _expand_references(named[key], root, above) for key in named}
    return whole


def _convert_for_gemini(schema: Schema) -> Schema:
    """One schema in the OpenAPI subset: upper-case types, `nullable`, enums of text."""
    schema = _move_limits_to_description(_split_type_union(schema), "gemini")
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "enum" in schema:
        _name_values(schema)
    if schema.get("type") in ("array", "ARRAY"):
        _give_items(schema)
    if "properties" in schema and schema.get("type") in (None, "object"):
        names = [name for name in schema.get("required", []) if name in schema["properties"]]
        schema |= {"type": "object", "required": names}
    if "type" in schema:
        schema["type"] = schema["type"].upper()
    kept = {key: part for key, part in schema.items() if key in _GEMINI_KEEPS and part != []}
    if "anyOf" in kept:
        return _isolate_union(kept)
    return kept if "type" in kept else _isolate_union({**kept, **_GEMINI_ANY})


def _split_type_union(schema: Schema) -> Schema:
    """Unions as `anyOf` without null, null as `nullable`."""
    branches: list[Schema] = schema.pop("anyOf", []) + schema.pop("oneOf", [])
    if isinstance(schema.get("type"), list):
        held = {key: schema[key] for key in ("items", "properties", "required") if key in schema}
        branches = [_convert_for_gemini({"type": kind, **held}) for kind in schema.pop("type")]
    others = [branch for branch in branches if branch.get("type") != "NULL"]
    if len(others) < len(branches):
        schema["nullable"] = True
    if len(others) == 1:
        return {**others[0], **schema}
    return {**schema, "anyOf": others} if others else schema


def _name_values(schema: Schema) -> None:
    """Only text can be enumerated; other values are named in the description."""
    values = [value for value in schema["enum"] if value is not None]
    if len(values) < len(schema["enum"]):
        schema["nullable"] = True
    if all(isinstance(value, str) for value in values):
        schema |= {"type": "string", "enum": values}
        return
    del schema["enum"]
    said = "One of: " + ", ".join(msgspec.json.encode(value).decode() for value in values)
    schema["description"] = f"{schema.get('description', '')} {said}.".strip()


def _give_items(schema: Schema) -> None:
    """A list has to say what it holds; a tuple becomes a list of any of its parts."""
    heads: list[Schema] = schema.get("prefixItems", [])
    kinds = [head for index, head in enumerate(heads) if head not in heads[:index]]
    if kinds:
        schema["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    schema.setdefault("items", dict(_GEMINI_ANY))


def _isolate_union(schema: Schema) -> Schema:
    """`anyOf` allows no other keywords beside it, so its description goes into the first branch."""
    branches: list[Schema] = [dict(branch) for branch in schema["anyOf"]]
    if "description" in schema:
        own = branches[0].get("description", "")
        branches[0]["description"] = f"{schema['description']} {own}".strip()
    if schema.get("nullable"):
        branches[0]["nullable"] = True
    return {"anyOf": branches}
