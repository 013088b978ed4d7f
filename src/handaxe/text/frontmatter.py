"""Markdown files that begin with a block of YAML between `---` lines."""

import re
from collections.abc import Mapping
from typing import Any, cast

_FENCE = re.compile(r"-{3,}[ \t]*")
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


class BadFrontmatter(ValueError):
    """The block is not a YAML mapping; the line counts from the file's first."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem = problem
        self.line = line


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """The mapping at the head of a text, and the text below it; without a block an empty one.

    Raises:
        BadFrontmatter: there is a block that cannot be used.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        raise BadFrontmatter("the block that begins here has no closing `---`", 1)
    return _parse_mapping("\n".join(lines[1:end])), "\n".join(lines[end + 1 :]).lstrip("\n")


def parse_word_list(value: object) -> tuple[str, ...]:
    """A list that people write as YAML list, or as text with commas or blanks outside brackets."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(str(item).strip() for item in cast("list[object]", value) if item is not None)
    return tuple(found.group().strip() for found in re.finditer(_WORD, str(value)))


_WORD = re.compile(r"(?:[^\s,()]+(?:\([^()]*\))?)")


def parse_bool(value: object, *, default: bool) -> bool:
    """A boolean in any of its spellings."""
    if isinstance(value, bool):
        return value
    spelled = str(value).strip().casefold()
    return spelled in _TRUE or (default and spelled not in _FALSE)


def get_text(fields: Mapping[str, Any], name: str) -> str:
    """A field as one line of text; empty if it is missing."""
    value = fields.get(name)
    return "" if value is None else " ".join(str(value).split())


def _parse_mapping(block: str) -> dict[str, Any]:
    import yaml

    try:
        loaded: object = yaml.safe_load(block)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1
        problem = getattr(error, "problem", None) or "not YAML"
        raise BadFrontmatter(str(problem), line) from None
    except (ValueError, RecursionError) as error:
        raise BadFrontmatter(str(error) or "not YAML", 1) from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BadFrontmatter("the block is not a list of `name: value`", 2)
    pairs = cast("dict[object, Any]", loaded).items()
    return {str(name): value for name, value in pairs}
