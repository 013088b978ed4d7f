"""Input described by a foreign JSON Schema: adapted for models, and read leniently.

The schema is not trusted: it may be broken, endless or full of hidden text. A model gets a
clean object schema; what a model sends is checked against the schema as it came. A schema that
cannot be compiled checks nothing, since the server will.
"""

import re
from functools import cached_property
from typing import Any, cast

import msgspec

from handaxe.contract.input_shape import InputShape
from handaxe.schema.repair import repair_schema, resolve_reference
from handaxe.schema.validate import InputProblems
from handaxe.text.sanitize import find_flaws

Schema = dict[str, Any]

_MAX_PROBLEMS = 50
_JOINED = ("anyOf", "oneOf", "allOf")
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}(?:\.0+)?\s*")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")
_KINDS: dict[type[Any], str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_WORDS = {"true": True, "false": False}


class JsonSchemaInput(InputShape):
    """The input of a tool that lives elsewhere."""

    def __init__(self, schema: Schema) -> None:
        self._given = schema
        self._shown, self.remark = _flatten_alternatives(schema)

    @property
    def schema(self) -> Schema:
        """The schema a model gets: an object, without alternatives at its root."""
        return self._shown

    def read(self, raw: object) -> tuple[dict[str, Any], list[str]]:
        """The input, with texts read as what the schema wants where that leaves no doubt."""
        notes: list[str] = []
        sent = _decode_json(raw) if isinstance(raw, str) else raw
        if not isinstance(sent, dict):
            raise InputProblems(["The input is expected as `object` with named parameters"])
        if sent is not raw:
            notes.append("input: read a JSON object sent as text")
        if flaws := find_flaws(sent):
            raise InputProblems([f"The parameter `{path}` {flaw}" for path, flaw in flaws.items()])
        values = cast("dict[str, Any]", sent)
        errors = self._errors(values)
        if errors:
            # A copy: what the model sent stays in the log as it was.
            values = msgspec.json.decode(msgspec.json.encode(values))
            mended = [
                note for error in errors if (note := _repair_value(values, error)) is not None
            ]
            if mended:
                notes += [note for note in mended if note]
                errors = self._errors(values)
        if errors:
            raise InputProblems([_describe_error(error) for error in errors])
        return values, notes

    def _errors(self, values: dict[str, Any]) -> list[Any]:
        if self._validator is None:
            return []
        found: list[Any] = []
        try:
            for error in self._validator.iter_errors(values):
                found.append(error)
                if len(found) == _MAX_PROBLEMS:
                    break
        except (ValueError, RecursionError):
            return []
        return found

    @cached_property
    def _validator(self) -> Any:  # noqa: ANN401 - None where the schema cannot be used
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self._given, offline=True)
        except Exception:  # noqa: BLE001 - a broken schema of others, in any way it can be broken
            return None


def _decode_json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _repair_value(values: dict[str, Any], error: Any) -> str | None:  # noqa: ANN401 - of jsonschema_rs
    """Convert a text to the type that the schema wants and return the note about it.

    Null where there may be none is left out, without a note: for models that have to name every
    parameter it is the way to say nothing.
    """
    kind = error.kind
    wanted = set(cast("list[str]", getattr(kind, "types", ())))
    path = list(cast("list[str | int]", error.instance_path))
    if not path or not wanted:
        return None
    place: Any = values
    for step in path[:-1]:
        place = place[step]
    if error.instance is None and isinstance(place, dict):
        cast("dict[str, Any]", place).pop(str(path[-1]), None)
        return ""
    meant = _coerce_text(error.instance, wanted) if isinstance(error.instance, str) else None
    if meant is None:
        return None
    place[path[-1]] = meant
    name = next(name for kind, name in _KINDS.items() if isinstance(meant, kind))
    return f"{format_path(path)}: read {name} sent as text"


def _coerce_text(text: str, wanted: set[str]) -> object:
    if "integer" in wanted and _INTEGER.fullmatch(text):
        return int(float(text)) if "." in text else int(text)
    if "number" in wanted and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in wanted and text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    if {"array", "object"} & wanted:
        value = _decode_json(text)
        if (isinstance(value, list) and "array" in wanted) or (
            isinstance(value, dict) and "object" in wanted
        ):
            return cast("object", value)
    return None


def _describe_error(error: Any) -> str:  # noqa: ANN401 - of jsonschema_rs
    path = format_path(list(error.instance_path))
    missing = getattr(error.kind, "property", None)
    if type(error.kind).__name__.endswith("Required") and isinstance(missing, str):
        name = f"{path}.{missing}" if path else missing
        return f"The required parameter `{name}` is missing"
    message = str(error.message)
    if len(message) > 300:
        message = f"{message[:200]} ... {message[-90:]}"
    return f"The parameter `{path}` is not valid: {message}" if path else message


def format_path(path: list[str | int]) -> str:
    """Names and numbers on the way to a value, as `a.b[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _flatten_alternatives(given: Schema) -> tuple[Schema, str]:
    """One object for alternatives at the root, and the sentence that says what was lost."""
    schema = repair_schema(given)
    if "$ref" in schema:
        target = resolve_reference(schema.pop("$ref"), schema) or {}
        schema = {**target, **schema}
    properties, required = _get_properties(schema), _get_required(schema)
    remark = ""
    for word in _JOINED:
        options: object = schema.pop(word, None)
        listed = [
            cast("Schema", option)
            for option in (cast("list[Any]", options) if isinstance(options, list) else ())
            if isinstance(option, dict)
        ]
        for option in listed:
            properties = {**_get_properties(option), **properties}
        wanted = [_get_required(option) for option in listed]
        if word == "allOf":
            required += [name for names in wanted for name in names]
        elif any(wanted):
            choice = "; or ".join(", ".join(f"`{name}`" for name in names) for names in wanted)
            count = "exactly one" if word == "oneOf" else "at least one"
            remark += f" Give {count} of these sets of parameters: {choice}."
    schema |= {"type": "object", "properties": properties}
    schema.pop("required", None)
    if required:
        schema["required"] = list(dict.fromkeys(required))
    return schema, remark.strip()


def _get_properties(schema: Schema) -> Schema:
    found = schema.get("properties")
    return cast("Schema", found) if isinstance(found, dict) else {}


def _get_required(schema: Schema) -> list[str]:
    found = schema.get("required")
    names = cast("list[Any]", found) if isinstance(found, list) else []
    return [name for name in names if isinstance(name, str)]
