"""Foreign JSON Schemas with every keyword in the required shape.

Later code walks through a schema and trusts its shape. A keyword with an impossible value is left
out; hidden characters and endless texts do not reach a model.
"""

from typing import Any, cast

from handaxe.text.escape import strip_hidden
from handaxe.text.framing import neutralize
from handaxe.text.sanitize import MAX_DEPTH

Schema = dict[str, Any]

MAX_DOC_CHARS = 2048
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
        "unevaluatedProperties", "unevaluatedItems", "additionalItems",
    }
)  # fmt: skip
_TEXTS = frozenset({"description", "pattern", "format", "contentEncoding", "contentMediaType"})
_NUMBERS = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
        "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
    }
)  # fmt: skip
_VALUES = frozenset({"default", "const", "examples"})
_LEFT_OUT = frozenset({"$schema", "$id", "$anchor", "$comment", "title"})


def repair_schema(schema: Schema) -> Schema:
    """A copy with a safe shape."""
    return cast("Schema", _Repair(schema).schema(schema, MAX_DEPTH))


def resolve_reference(reference: str, root: Schema) -> Schema | None:
    """The part of a schema that a reference within it means."""
    place: Any = root
    for step in reference.split("/")[1:]:
        place = cast("Schema", place).get(step) if isinstance(place, dict) else None
    return cast("Schema", place) if isinstance(place, dict) else None


class _Repair:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def schema(self, given: object, depth: int) -> Schema | bool:
        if isinstance(given, bool):
            return given
        if not isinstance(given, dict) or depth == 0:
            return {}
        whole: Schema = {}
        for key, value in cast("dict[object, object]", given).items():
            if not isinstance(key, str) or key in _LEFT_OUT:
                continue
            kept = self._repair_keyword(key, value, depth - 1)
            if kept is not None:
                whole["prefixItems" if key == "items" and isinstance(kept, list) else key] = kept
        return whole

    def _repair_keyword(self, key: str, value: object, depth: int) -> object:
        """The value in its shape; None to leave the keyword out."""
        if key in _NAMED:
            return self._named(value, depth)
        if key in _LISTED or (key == "items" and type(value) in (list, tuple)):
            return self._listed(value, depth)
        if key in _SINGLE:
            return self.schema(value, depth) if type(value) in (dict, bool) else None
        if key in _TEXTS:
            is_text = isinstance(value, str)
            return neutralize(strip_hidden(value, MAX_DOC_CHARS)) if is_text else None
        if key in _NUMBERS:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else None
        return self._repair_other(key, value)

    def _named(self, value: object, depth: int) -> object:
        if not isinstance(value, dict):
            return None
        pairs = cast("dict[object, object]", value).items()
        # A part that takes everything is an empty schema to whoever wants an object.
        return {str(name): self._part(part, depth) for name, part in pairs}

    def _listed(self, value: object, depth: int) -> object:
        if not isinstance(value, list) or not value:
            return None
        return [self._part(part, depth) for part in cast("list[object]", value)]

    def _part(self, part: object, depth: int) -> Schema:
        inner = self.schema(part, depth)
        if isinstance(inner, bool):
            return {} if inner else {"not": {}}
        return inner

    def _repair_other(self, key: str, value: object) -> object:
        if key == "type":
            return _filter_types(value)
        if key == "required":
            return _filter_texts(value)
        if key == "enum":
            return cast("object", value) if isinstance(value, list) and value else None
        if key == "$ref":
            return value if isinstance(value, str) and self._is_resolvable(value) else None
        if key in _VALUES or isinstance(value, bool | str | int | float):
            return value
        return None

    def _is_resolvable(self, reference: str) -> bool:
        if not reference.startswith("#"):
            return False
        return resolve_reference(reference, self._root) not in (None, self._root)


def _filter_types(value: object) -> object:
    if isinstance(value, str):
        return value if value in _TYPES else None
    known = [kind for kind in _filter_texts(value) or () if kind in _TYPES]
    return list(dict.fromkeys(known)) or None


def _filter_texts(value: object) -> list[str] | None:
    if not isinstance(value, list):
        return None
    return [item for item in cast("list[object]", value) if isinstance(item, str)]
