"""Find text that bash evaluates again after expansion: a program that is unknown.

`${x@P}`, arithmetic on a value that is not certainly a number, a subscript, the name for `printf
-v`: each runs code in the value. Certain numbers and plain names are harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from handaxe.shell.analysis.parser.expansion import Field, Variables, expand_value
from handaxe.shell.analysis.parser.syntax import Assignment, Param, Simple, Word, WordPiece
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.walker import Part, ShellState

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROMPT = re.compile(r"PS[0-4]|PROMPT_COMMAND")
_TOKEN = re.compile(
    r"""(?xa)\s+
    |0[xX][0-9a-fA-F]+|\d+\#[0-9A-Za-z@_]+|\d+
    |\$[#?$!]|\$\{[#?$!]\}|\$\{\#(?:[A-Za-z_]\w*(?:\[[@*]\])?|[@*])\}
    |[A-Za-z_]\w*\s*=(?!=)|\$?(?P<name>[A-Za-z_]\w*)|\$\{(?P<braced>[A-Za-z_]\w*)\}
    |[-+*/%()<>=!&|^~?:,]"""
)
_OWN_NUMBERS = split_names("RANDOM SRANDOM LINENO PPID UID EUID BASHPID")
"""Variables that bash itself fills with numbers, whatever the environment contains."""
_NUMERIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NAMED_TESTS = frozenset({"-v", "-R"})
_TEST_OPERATORS = split_names("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o ! ( ) ]")
_TEST_UNARY = frozenset("-" + letter for letter in "abcdefghknoprstuwxzGLNOS")
_KEYS = frozenset({"@", "*"})
_VALUED_READ = frozenset("adinNptu")


def find_reevaluation(part: Part, state: ShellState) -> str:
    """The text of `part` that bash would evaluate again, in words; empty if none."""
    variables = state.variables
    for word in _list_words(part):
        for piece in (*word.pieces, *word.nested):
            if doubt := _find_piece_doubt(piece, variables):
                return doubt
    node = part.node
    if isinstance(node, Simple):
        doubts = (_find_assignment_doubt(item, variables) for item in node.assignments)
        return next(filter(None, doubts), "")
    if part.kind in ("arithmetic", "for-arithmetic"):
        return find_arithmetic_doubt(node.words[0].text.replace(";", ","), variables)
    return _find_test_doubt(node.words, variables) if part.kind == "test" else ""


def _find_assignment_doubt(item: Assignment, variables: Variables) -> str:
    if _PROMPT.fullmatch(item.name):
        return f"{item.name} is expanded as a prompt, which runs code"
    if doubt := _find_subscript_doubt(item.subscript, variables):
        return f"the subscript of {item.name}: {doubt}"
    inner = next((word for word in item.array or () if word.text.startswith("[")), None)
    return "" if inner is None else f"the subscript {inner.text} of {item.name} is evaluated"


def _find_subscript_doubt(subscript: str | None, variables: Variables) -> str:
    is_key = subscript is None or subscript in _KEYS
    return "" if is_key else find_arithmetic_doubt(subscript or "", variables)


def _list_words(part: Part) -> Iterator[Word]:
    yield from part.words
    for redirect in part.redirects:
        yield redirect.target
        if redirect.heredoc is not None and redirect.heredoc.body is not None:
            yield redirect.heredoc.body


def _find_piece_doubt(piece: WordPiece, variables: Variables) -> str:
    if piece.kind == "arithmetic":
        return find_arithmetic_doubt(piece.text, variables)
    param = piece.param
    if param is None:
        return ""
    if param.operator == "@P":
        return f"${{{piece.text}}} expands its value as a prompt, which runs code"
    if param.prefix == "!" and not _is_key_listing(param):
        return f"${{{piece.text}}} evaluates what the variable holds"
    doubt = _find_subscript_doubt(param.subscript, variables)
    if not doubt and param.operator == ":":
        bounds = (find_arithmetic_doubt(bound, variables) for bound in param.operand.split(":"))
        doubt = next(filter(None, bounds), "")
    return f"${{{piece.text}}}: {doubt}" if doubt else ""


def _is_key_listing(param: Param) -> bool:
    """Whether `${!x...}` gives the keys of an array."""
    return param.subscript in _KEYS and not param.operator


def find_arithmetic_doubt(text: str, variables: Variables) -> str:
    """Why arithmetic does more than compute with numbers; empty if it does not."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return f"arithmetic evaluates {text.strip()!r}"
        name = found["name"] or found["braced"]
        if name and not _is_number(name, variables):
            return f"arithmetic evaluates what {name} holds"
        at = found.end()
    return ""


def _is_number(name: str, variables: Variables) -> bool:
    if name not in variables and name in _OWN_NUMBERS:
        return True
    value = variables.get(name)
    return value is not None and (value.is_number or (value.known or "").isdigit())


def _find_test_doubt(words: list[Word], variables: Variables) -> str:
    """`[[ ]]`: numeric tests evaluate both sides, `-v` the subscript of a name."""
    for index, word in enumerate(words):
        following = words[index + 1 : index + 2]
        for name in following if word.text in _NAMED_TESTS else ():
            if not _NAME.fullmatch(name.literal or ""):
                return f"[[ {word.text} ]] evaluates {name.text}"
        if word.text not in _NUMERIC_TESTS:
            continue
        for side in (words[index - 1], *words[index + 1 : index + 2]):
            value = expand_value(side, variables)
            known = value.known
            if not value.is_number and (known is None or find_arithmetic_doubt(known, variables)):
                return f"[[ {word.text} ]] evaluates {side.text}"
    return ""


def find_builtin_reevaluation(program: str | None, args: list[Field]) -> str:
    """The argument that a builtin evaluates again, in words; empty if none."""
    check = _BUILTINS.get(program or "")
    field = check(args) if check is not None else None
    return f"{program} evaluates {field.text}" if field is not None else ""


def _is_plain_name(field: Field) -> bool:
    return field.kind == "known" and bool(_NAME.fullmatch(field.value))


def _check_test(args: list[Field]) -> Field | None:
    for index, field in enumerate(args):
        before = args[index - 1].known if index else None
        after = args[index + 1].known if index + 1 < len(args) else None
        if field.known in _NAMED_TESTS and index + 1 < len(args):
            if not _is_plain_name(args[index + 1]) and before not in _TEST_OPERATORS - {"!", "("}:
                return args[index + 1]
        elif field.kind != "known":
            beside = before in _TEST_OPERATORS | _TEST_UNARY or after in _TEST_OPERATORS
            alone = len(args) == 1 or (len(args) == 2 and after == "]")
            if not field.single or not (beside or alone):
                return field
    return None


def _check_printf(args: list[Field]) -> Field | None:
    if not args:
        return None
    first = args[0]
    if first.kind != "known" and first.may_be_option:
        return first
    if first.value == "-v":
        return next((field for field in args[1:2] if not _is_plain_name(field)), None)
    is_attached = first.value.startswith("-v")
    return first if is_attached and not _NAME.fullmatch(first.value[2:]) else None


def _check_names(args: list[Field]) -> Field | None:
    """Every word that is not an option names a variable, and its subscript is evaluated."""
    for field in args:
        if field.kind == "known" and (field.value.startswith("-") or _is_plain_name(field)):
            continue
        name, equals, _ = field.value.partition("=")
        if _PROMPT.fullmatch(name):
            return field
        if equals and _NAME.fullmatch(name.removesuffix("+")):
            continue
        return field
    return None


def _check_declare(args: list[Field]) -> Field | None:
    """`declare -i` makes every value arithmetic, `-n` another name."""
    for field in args:
        if field.value.startswith("-") and set("in") & set(field.value):
            return field
    return _check_names(args)


def _check_read(args: list[Field]) -> Field | None:
    rest = list(args)
    while rest and rest[0].kind == "known" and rest[0].value.startswith("-"):
        bundle = rest.pop(0).value[1:]
        valued = next((at for at, letter in enumerate(bundle) if letter in _VALUED_READ), -1)
        # The value is the next word where nothing is attached.
        if valued >= 0 and valued == len(bundle) - 1 and rest:
            value = rest.pop(0)
            if bundle[valued] == "a" and not _is_plain_name(value):
                return value
    return next((field for field in rest if not _is_plain_name(field)), None)


def _check_let(args: list[Field]) -> Field | None:
    return next((f for f in args if f.known is None or find_arithmetic_doubt(f.known, {})), None)


def _check_text(args: list[Field]) -> Field | None:
    """A text that is run: if it is not literal, it is unknown code."""
    return next((f for f in args if "$" in f.text or "`" in f.text or "<(" in f.text), None)


def _check_trap(args: list[Field]) -> Field | None:
    while args and args[0].known in ("--", "-p", "-l"):
        args = args[1:]
    return _check_text(args[:1])


def _check_source(args: list[Field]) -> Field | None:
    fed = next((f for f in args[:1] if f.value.startswith(("/dev/", "/proc/"))), None)
    return fed or _check_text(args[:1])


def _check_option(letters: str) -> Callable[[list[Field]], Field | None]:
    def check(args: list[Field]) -> Field | None:
        for field in args:
            is_given = field.value.startswith("-") and set(letters) & set(field.value[1:])
            if is_given or (field.kind != "known" and field.may_be_option):
                return field
        return None

    return check


_BUILTINS: dict[str, Callable[[list[Field]], Field | None]] = {
    "test": _check_test,
    "[": _check_test,
    "printf": _check_printf,
    "read": _check_read,
    "let": _check_let,
    "eval": _check_text,
    "trap": _check_trap,
    **dict.fromkeys((".", "source"), _check_source),
    **dict.fromkeys(("declare", "typeset", "local"), _check_declare),
    **dict.fromkeys(("export", "readonly", "unset"), _check_names),
    "getopts": lambda args: _check_names(args[1:2]),
    **dict.fromkeys(("mapfile", "readarray"), _check_option("C")),
    **dict.fromkeys(("compgen", "complete"), _check_option("CFW")),
    "wait": _check_option("p"),
}
"""By builtin, a check for the first argument it would evaluate."""
