"""The form that a type or a JSON Schema stands for, as MCP clients show it, and its answers."""

from typing import Any, cast

from handaxe.schema.from_type import strip_null
from handaxe.schema.tool_schema import JsonSchema, build_input_schema
from handaxe.schema.validate import InputProblems, read_input

_SIMPLE = ("string", "integer", "number", "boolean")
_KEPT = (
    "type", "title", "description", "enum", "enumNames", "default", "format", "minLength",
    "maxLength", "minimum", "maximum",
)  # fmt: skip
"""The keywords of a property that the protocol allows. The rest is checked on the answer."""


def build_form_schema(form: Any) -> JsonSchema:  # noqa: ANN401 - a type or a schema
    """The schema of a form: an object whose properties are texts, numbers, switches, choices.

    Raises:
        TypeError: a field is something else.
    """
    schema = cast("JsonSchema", form) if isinstance(form, dict) else _build_type_schema(form)
    properties: object = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        raise TypeError("A form is an object with `properties`: give a class with simple fields.")
    fields = cast("dict[str, Any]", properties)
    required = [name for name in schema.get("required", ()) if not _is_nullable(fields.get(name))]
    return {
        "type": "object",
        "properties": {name: _build_field(name, field) for name, field in fields.items()},
        "required": required,
    }


def read_form(form: Any, filled: object) -> Any:  # noqa: ANN401 - what the form says
    """The entered values as the form's own type, or as a dict for a schema.

    Raises:
        InputProblems: it does not fit.
    """
    schema = build_form_schema(form)
    if not isinstance(filled, dict):
        raise InputProblems([f"The answer is not an object of named values: {filled!r:.100}"])
    given: dict[str, Any] = {
        name: value
        for name, value in cast("dict[str, Any]", filled).items()
        if name in schema["properties"]
    }
    if isinstance(form, dict):
        from handaxe.schema.json_schema_input import JsonSchemaInput

        return read_input(cast("Any", JsonSchemaInput(cast("JsonSchema", form))), given)[0]
    # What may be empty and was left out is empty.
    given.update({name: None for name in _find_nullable(form) if name not in given})
    return read_input(form, given)[0]


def _build_type_schema(form: Any) -> JsonSchema:  # noqa: ANN401 - any type
    try:
        return build_input_schema(form)
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise TypeError(f"{form!r:.100} cannot be shown as a form: {error}") from None


def _find_nullable(form: Any) -> list[str]:  # noqa: ANN401 - any type
    schema = _build_type_schema(form)
    fields: JsonSchema = schema["properties"]
    return [name for name in schema.get("required", ()) if _is_nullable(fields[name])]


def _is_nullable(field: object) -> bool:
    schema = cast("JsonSchema", field) if isinstance(field, dict) else {}
    return _strip_null(schema) != schema


def _strip_null(schema: JsonSchema) -> JsonSchema:
    default = {"default": schema["default"]} if "default" in schema else {}
    return {**strip_null(schema), **default}


def _build_field(name: str, field: object) -> JsonSchema:
    schema = _strip_null(cast("JsonSchema", field)) if isinstance(field, dict) else {}
    choices: list[object] | None = schema.get("enum")
    if choices is not None and all(isinstance(choice, str) for choice in choices):
        schema = {"type": "string", **schema}
    elif schema.get("type") not in _SIMPLE or choices is not None:
        raise TypeError(
            f"The field {name!r} is not possible in a form: use a text, a number, a switch "
            "(bool), or a choice of texts (Literal, Enum)."
        )
    return {key: schema[key] for key in _KEPT if schema.get(key) is not None}
