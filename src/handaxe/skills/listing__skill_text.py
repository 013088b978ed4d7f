"""A skill's text with its arguments filled in; commands in it are found here and run elsewhere."""

import re
import shlex
from collections.abc import Mapping, Sequence

_PLACE = re.compile(
    r"\\(?P<escaped>\$(?:ARGUMENTS|\d+|[A-Za-z_]\w*|\{))"
    r"|\$ARGUMENTS\[(?P<index>\d+)\]"
    r"|\$(?P<all>ARGUMENTS)\b"
    r"|\$(?P<number>\d+)"
    r"|\$\{(?P<variable>[A-Z_]+)\}"
    r"|\$(?P<name>[A-Za-z_]\w*)"
)
_INLINE_COMMAND = re.compile(r"(?<![\\`])!`([^`\n]+)`")
_BLOCK_COMMAND = re.compile(r"^```!\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def fill_placeholders(
    body: str, arguments: str, *, names: Sequence[str] = (), variables: Mapping[str, str]
) -> str:
    """The body with `$ARGUMENTS`, `$0`, `$name` and `${VARIABLE}` replaced.

    Arguments that the body does not mention are appended, so that they are never lost.
    """
    values = _split(arguments)
    used = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal used
        if (escaped := match["escaped"]) is not None:
            return escaped
        if match["all"] is not None:
            used = True
            return arguments
        if (digits := match["index"] or match["number"]) is not None:
            used = True
            at = int(digits) if len(digits) < 4 else len(values)
            return values[at] if at < len(values) else match[0]
        if (variable := match["variable"]) is not None:
            return variables.get(variable, match[0])
        name = match["name"]
        if name in names:
            used = True
            at = list(names).index(name)
            return values[at] if at < len(values) else ""
        return match[0]

    filled = _PLACE.sub(value_of, body)
    if arguments and not used:
        filled = f"{filled.rstrip()}\n\nARGUMENTS: {arguments}\n"
    return filled


def find_commands(body: str) -> list[str]:
    """The shell commands whose output stands in the text, in order, each once."""
    found = [(match.start(), match[1].strip()) for match in _INLINE_COMMAND.finditer(body)]
    found += [(match.start(), match[1].strip()) for match in _BLOCK_COMMAND.finditer(body)]
    return list(dict.fromkeys(command for _, command in sorted(found) if command))


def insert_outputs(body: str, outputs: Mapping[str, str]) -> str:
    """The text with every command replaced by what it said."""

    def said(match: re.Match[str]) -> str:
        return outputs.get(match[1].strip(), match[0])

    return _INLINE_COMMAND.sub(said, _BLOCK_COMMAND.sub(said, body))


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
