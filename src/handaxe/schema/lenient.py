"""An input that does not fit as it is: read as meant along its schema, or all that is wrong told.

What fits is never read here: see `coercion`, which also says what counts as meant.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from handaxe.schema.from_type import convert_with_class
from handaxe.schema.tool_schema import build_input_schema
from handaxe.text.escape import format_count
from handaxe.text.sanitize import MAX_DEPTH, TOO_DEEP, find_flaws, scrub, to_safe_text

Args = TypeVar("Args")
Json: TypeAlias = Any
Schema: TypeAlias = dict[str, Any]

_LONGEST_SCALAR = 64
_INTEGER = r"[+-]?[0-9]+(?:\.0+)?"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MSGSPEC_PLACE = r"(?s) - at `(?:key` in `)?\$\.?(.*?)`$"


class UnreadableInput(Exception):
    """The input cannot be read as meant; every problem is one sentence."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__()
        self.problems = problems


def read_leniently(args_type: type[Args], raw: Json, *, most_told: int) -> tuple[Args, list[str]]:
    """The typed input, and a note for everything that was read as meant.

    Raises:
        Unreadable: with all problems; those after `most_told` are only counted.
    """
    schema = build_input_schema(args_type)
    reader = _Reader(schema.get("$defs", {}), _find_renamed_fields(args_type))
    reader.numbered = getattr(args_type, "numbered", ())
    reader.most_told = most_told
    sent: Json = _decode_json(raw) if isinstance(raw, str) else raw
    if get_json_type(sent) != "object":
        wanted = "is expected as `object` with named parameters"
        raise UnreadableInput([f"The input {wanted} but provided as `{get_json_type(raw)}`"])
    if sent is not raw:
        reader.notes.append("input: read a JSON object sent as text")
    fitted = reader.whole(sent, schema)
    if reader.problems:
        # What only the types know, such as dates, is told in the same breath.
        unseen = {name: item for name, item in fitted.items() if name not in reader.wrong_fields}
        raise UnreadableInput([*reader.problems, *_find_type_problems(args_type, unseen)])
    return _build_input(args_type, fitted), reader.notes


def _find_renamed_fields(args_type: Any) -> dict[str, str]:  # noqa: ANN401 - any type
    """Attribute names that differ from the parameter names for models."""
    names = getattr(args_type, "__struct_fields__", ())
    wire = getattr(args_type, "__struct_encode_fields__", ())
    return {name: sent for name, sent in zip(names, wire, strict=True) if name != sent}


def _build_input(args_type: Any, fitted: dict[str, Any]) -> Any:  # noqa: ANN401 - what args_type says
    try:
        if hasattr(args_type, "model_validate"):
            return args_type.model_validate(fitted)
        return msgspec.convert(fitted, args_type, str_keys=True, dec_hook=convert_with_class)
    except msgspec.ValidationError as error:
        raise UnreadableInput(
            _find_type_problems(args_type, fitted) or [_format_type_problem(error, "")]
        ) from None
    except ValueError as error:
        # A pydantic model's error, known by its shape: pydantic is never imported here.
        listed = cast("list[dict[str, Any]]", getattr(error, "errors", list)())
        problems = [_format_invalid(format_path(item["loc"]), item["msg"]) for item in listed]
        raise UnreadableInput(problems or [_format_invalid("", str(error))]) from None


def _find_type_problems(args_type: Any, fitted: dict[str, Any]) -> list[str]:  # noqa: ANN401
    """The type errors of the fields, one problem for each field."""
    if not hasattr(args_type, "__struct_fields__"):
        return []
    problems: list[str] = []
    for field in msgspec.structs.fields(args_type):
        name = field.encode_name
        if name not in fitted:
            continue
        try:
            msgspec.convert(fitted[name], field.type, str_keys=True, dec_hook=convert_with_class)
        except msgspec.ValidationError as error:
            problems.append(_format_type_problem(error, name))
        except UnicodeError:
            # Half a character is a problem that was told before.
            continue
    return problems


def _format_type_problem(error: msgspec.ValidationError, field: str) -> str:
    """The message of msgspec about a value, with its place in the usual form."""
    place = re.search(_MSGSPEC_PLACE, str(error))
    reason = str(error)[: place.start()] if place else str(error)
    return _format_invalid(join_path(field, place[1] if place else ""), reason)


def _format_invalid(place: str, reason: str) -> str:
    return f"The parameter `{place}` is not valid: {reason}" if place else reason


class _Reader:
    """One lenient reading of one input along its schema."""

    def __init__(self, defs: Schema, renamed: dict[str, str]) -> None:
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.numbered: tuple[str, ...] = ()
        self.most_told = 0
        self._defs = defs
        self._renamed = renamed
        self._depth = 0
        self._has_listed_fields = False
        self.wrong_fields: set[str] = set()
        """Parameters with a problem of their own."""

    def whole(self, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The input with everything read as meant; what could not be is in `problems`."""
        self.problems = self._find_flaws(raw, "")
        if any(TOO_DEEP in problem for problem in self.problems):
            return {}
        return self._object(raw, schema, "")

    def _value(self, value: Json, schema: Schema, path: str) -> Json:
        branches = self._list_branches(schema)
        fitting = [branch for branch in branches if _is_accepted(branch, value)]
        if not fitting:
            return self._read_mismatch(value, schema, branches, path)
        if isinstance(value, dict):
            sent = given = cast("dict[str, Any]", value)
            if len(fitting) > 1 and (tag := _find_tag(fitting)) is not None:
                sent, fitting = self._select_by_tag(sent, fitting, tag, path)
                if not fitting:
                    return given
            branch = min(fitting, key=lambda candidate: _measure_distance(sent, candidate))
            return self._read_nested(self._object, sent, branch, path)
        if len(fitting) > 1:
            # Two kinds of list, or two of text: the type itself will tell them apart.
            return value
        if isinstance(value, list | tuple):
            return self._read_nested(self._array, value, fitting[0], path)
        self._check_limits(value, fitting[0], path)
        return value

    def _select_by_tag(
        self, sent: dict[str, Any], branches: list[Schema], tag: str, path: str
    ) -> tuple[dict[str, Any], list[Schema]]:
        """The object and the alternatives that its tag means; none, and a problem, without one."""
        known = [
            option
            for branch in branches
            for option in _list_allowed_values(branch["properties"][tag])
        ]
        place = join_path(path, tag)
        if tag not in sent:
            if all(tag in branch.get("required", ()) for branch in branches):
                self.problems.append(describe_missing_tag(place, known))
                return sent, []
            return sent, branches
        if sent[tag] not in known:
            read = _read_as(sent[tag], {get_json_type(option) for option in known})
            if read is not None and read in known:
                self.notes.append(f"{place}: {describe_coercion(sent[tag], read)}")
                sent = {**sent, tag: read}
        meant = [
            branch for branch in branches if _is_accepted(branch["properties"][tag], sent[tag])
        ]
        if not meant:
            self.problems.append(describe_disallowed(place, sent[tag], known))
        return sent, meant

    def _list_branches(self, schema: Schema) -> list[Schema]:
        """The alternatives of a schema, each of one JSON type or of any."""
        while "$ref" in schema:
            schema = self._defs[schema["$ref"].rpartition("/")[2]]
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives:
            return [leaf for option in alternatives for leaf in self._list_branches(option)]
        if isinstance(schema.get("type"), list):
            return [{**schema, "type": kind} for kind in schema["type"]]
        return [schema]

    def _read_nested(self, read: Any, value: Json, schema: Schema, path: str) -> Json:  # noqa: ANN401
        # Text inside text inside text could otherwise nest past what was checked before.
        if self._depth > MAX_DEPTH:
            self.problems.append(f"The parameter `{shorten_path(path)}` {TOO_DEEP}")
            return value
        self._depth += 1
        try:
            return read(value, schema, path)
        finally:
            self._depth -= 1

    def _read_mismatch(
        self, value: Json, schema: Schema, branches: list[Schema], path: str
    ) -> Json:
        kinds = {kind for branch in branches for kind in _list_types(branch)}
        read = self._read_name(value, path) if kinds == {"string"} else _read_as(value, kinds)
        if read is not None:
            self.notes.append(f"{path}: {describe_coercion(value, read)}")
            flaws = self._find_flaws(read, path)
            self.problems += flaws
            return value if flaws else self._value(read, schema, path)
        allowed = [option for branch in branches for option in _list_allowed_values(branch)]
        if allowed and get_json_type(value) in kinds:
            self.problems.append(describe_disallowed(path, value, allowed))
        else:
            expected = " or ".join(sort_types(kinds))
            self.problems.append(
                f"The parameter `{shorten_path(path)}` type is expected as `{expected}` "
                f"but provided as `{get_json_type(value)}`"
            )
        return value

    def _read_name(self, value: Json, path: str) -> str | None:
        is_name = type(value) is int and re.split(r"[.\[]", path)[0] in self.numbered
        return str(value) if is_name else None

    def _object(self, value: dict[str, Any], schema: Schema, path: str) -> dict[str, Any]:
        fields: Schema = schema.get("properties", {})
        required = schema.get("required", [])
        rest = schema.get("additionalProperties", True)
        chosen = dict.fromkeys(schema.get("propertyNames", {}).get("enum", ()))
        for name in required:
            if name not in value:
                place = shorten_path(join_path(path, name))
                self.problems.append(f"The required parameter `{place}` is missing")
        read: dict[str, Any] = {}
        for name, item in value.items():
            place = join_path(path, str(name))
            if name in fields:
                # Null for what has a default is how many clients say "not given".
                if item is None and name not in required and not self._is_nullable(fields[name]):
                    continue
                told = len(self.problems)
                read[name] = self._value(item, fields[name], place)
                if not path and len(self.problems) > told:
                    self.wrong_fields.add(name)
            elif rest is False or (chosen and name not in chosen):
                known = chosen or fields
                self.problems.append(self._describe_unexpected(str(name), place, known, value))
            else:
                read[name] = self._value(item, {} if rest is True else rest, place)
        self._check_limits(value, schema, path)
        return read

    def _array(self, value: list[Any], schema: Schema, path: str) -> list[Any]:
        self._check_limits(value, schema, path)
        heads = schema.get("prefixItems", [])
        rest: Schema = schema.get("items") or {}
        return [
            self._value(item, heads[index] if index < len(heads) else rest, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]

    def _find_flaws(self, value: Json, path: str) -> list[str]:
        """Everything in `value` that no log could hold, one sentence each."""
        listed: list[str] = []
        for at, flaw in find_flaws(value).items():
            # Hundreds of steps down help nobody: name the parameter that holds them.
            below = re.split(r"[.\[]", at)[0] if flaw == TOO_DEEP else at
            place = shorten_path(join_path(path, below))
            listed.append(f"The parameter `{place}` {flaw}" if place else f"The input {flaw}")
        return listed

    def _is_nullable(self, schema: Schema) -> bool:
        return any(_is_accepted(branch, None) for branch in self._list_branches(schema))

    def _describe_unexpected(
        self, name: str, place: str, fields: Schema, given: dict[str, Any]
    ) -> str:
        from handaxe.text.escape import find_closest_name

        if len(self.problems) > self.most_told:
            # It will only be counted, and a search for every one of thousands takes long.
            return place
        near = self._renamed.get(name) if place == name else None
        near = near or find_closest_name(name, [field for field in fields if field not in given])
        hint = f"; did you mean `{near}`?" if near else ""
        if not hint and not self._has_listed_fields:
            names = ", ".join(f"`{field}`" for field in fields)
            hint = f"; the parameters are {names}" if names else "; there are no parameters"
            self._has_listed_fields = True
        return f"An unexpected parameter `{shorten_path(place)}` was provided{hint}"

    def _check_limits(self, value: Json, schema: Schema, path: str) -> None:
        for keyword, (is_kept, words) in _LIMITS.items():
            if keyword in schema and not is_kept(value, schema[keyword]):
                limit = schema[keyword]
                self.problems.append(
                    f"The parameter `{shorten_path(path)}` must {words.format(limit)}"
                    f" but was provided as {format_value(value)}"
                )


_Check: TypeAlias = Callable[[Any, Any], object]
_LIMITS: dict[str, tuple[_Check, str]] = {
    "minimum": (lambda value, limit: value >= limit, "be at least {}"),
    "maximum": (lambda value, limit: value <= limit, "be at most {}"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "be greater than {}"),
    "exclusiveMaximum": (lambda value, limit: value < limit, "be less than {}"),
    "multipleOf": (lambda value, limit: not value % limit, "be a multiple of {}"),
    "minLength": (lambda value, limit: len(value) >= limit, "have at least {} characters"),
    "maxLength": (lambda value, limit: len(value) <= limit, "have at most {} characters"),
    "minItems": (lambda value, limit: len(value) >= limit, "have at least {} items"),
    "maxItems": (lambda value, limit: len(value) <= limit, "have at most {} items"),
    "pattern": (lambda value, limit: re.search(str(limit), value), "match the pattern {}"),
}


def _list_types(schema: Schema) -> list[str]:
    if "type" in schema:
        return [schema["type"]]
    return [get_json_type(option) for option in _list_allowed_values(schema)]


def _list_allowed_values(schema: Schema) -> list[Json]:
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _is_accepted(schema: Schema, value: Json) -> bool:
    """Whether a value has the type this branch declares, and is among its values if it has any."""
    kind = schema.get("type")
    name = get_json_type(value)
    if kind is not None and kind != name and not (kind == "number" and name == "integer"):
        return False
    options = _list_allowed_values(schema)
    # True equals 1 in Python, not in JSON.
    return not options or any(
        option == value and isinstance(option, bool) == isinstance(value, bool)
        for option in options
    )


def _find_tag(branches: list[Schema]) -> str | None:
    """The field whose fixed values distinguish these kinds of objects."""
    first, *others = (branch.get("properties", {}) for branch in branches)
    for name, field in first.items():
        if _list_allowed_values(field) and all(
            _list_allowed_values(fields.get(name, {})) for fields in others
        ):
            return name
    return None


def _measure_distance(value: dict[str, Any], schema: Schema) -> tuple[int, int]:
    """How far an object is from one alternative: by its tags first, then by its names."""
    fields: Schema = schema.get("properties", {})
    tags = sum(
        name in value and bool(_list_allowed_values(field)) and not _is_accepted(field, value[name])
        for name, field in fields.items()
    )
    names = sum(name not in fields for name in value)
    return tags, names + sum(name not in value for name in schema.get("required", []))


def _read_as(value: Json, kinds: set[str]) -> Json:
    """The value as one of `kinds`, if it can only mean that; otherwise None."""
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    read = _parse_scalar(value.strip(), kinds) if len(value) <= _LONGEST_SCALAR else None
    if read is None and kinds & {"array", "object"}:
        read = _decode_json(value)
        return read if get_json_type(read) in kinds else None
    return read


def _parse_scalar(word: str, kinds: set[str]) -> Json:
    if "boolean" in kinds and word.lower() in ("true", "false"):
        return word.lower() == "true"
    if "integer" in kinds and re.fullmatch(_INTEGER, word):
        return int(word.partition(".")[0])
    if "number" in kinds and re.fullmatch(_NUMBER, word):
        return float(word)
    return None


def _decode_json(text: str) -> Json:
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


_NAMES: dict[type[Any], str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


def get_json_type(value: Json) -> str:
    """The name of a value's type in JSON."""
    kind = cast("type[Any]", type(value))
    return _NAMES.get(kind) or next(
        (name for known, name in _NAMES.items() if issubclass(kind, known)),
        # A class may be called as a type of JSON is, and is none all the same.
        f"Python {kind.__name__}",
    )


def sort_types(kinds: set[str]) -> list[str]:
    """Names of types, always in the same order; null is said only where it is all there is."""
    return sorted(kinds - {"null"} or kinds, key=list(dict.fromkeys(_NAMES.values())).index)


def join_path(path: str, below: str) -> str:
    """The place of something below a place."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


def format_path(loc: tuple[str | int, ...]) -> str:
    """A place given in steps."""
    path = ""
    for step in loc:
        path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, step)
    return path


def shorten_path(name: str) -> str:
    """A place, cut to a readable length."""
    return name if len(name) <= 100 else f"{name[:60]}...{name[-20:]}"


def format_value(value: Json) -> str:
    """A value as JSON spells it, cut to a readable length."""
    if isinstance(value, str):
        return f'"{value[:60]}..."' if len(value) > 60 else f'"{value}"'
    if get_json_type(value) in ("array", "object"):
        return format_count(len(value), "item")
    return msgspec.json.encode(scrub(value), enc_hook=to_safe_text).decode()


def describe_coercion(value: Json, read: Json) -> str:
    """The result of a lenient reading of a value."""
    name = get_json_type(read)
    if name in ("array", "object"):
        return f"read a JSON {name} sent as text"
    return f"read {format_value(value)} as {format_value(read)}"


def describe_disallowed(path: str, value: Json, allowed: list[Json]) -> str:
    """The problem with a value that is not among those there are."""
    from handaxe.text.escape import find_closest_name

    texts = [option for option in allowed if isinstance(option, str)]
    near = find_closest_name(value, texts) if isinstance(value, str) else None
    hint = f"; did you mean {format_value(near)}?" if near else ""
    listed = "must be one of " + ", ".join(format_value(option) for option in allowed)
    given = f"but was provided as {format_value(value)}{hint}"
    return f"The parameter `{shorten_path(path)}` {listed} {given}"


def describe_missing_tag(path: str, known: list[Json]) -> str:
    """The problem with an object that does not say which of several kinds it is."""
    listed = ", ".join(format_value(option) for option in known)
    return f"The required parameter `{shorten_path(path)}` is missing; it is one of {listed}"
