"""Commands that are one program with its arguments, so that the shell cannot end up elsewhere.

For these bash replaces itself by the program, as it does for anybody, which saves a process each
time. It cannot do so where something is left to be done after the program: saying in which
directory the shell stands. Here that is known beforehand.
"""

import re

_PROGRAM = r"[A-Za-z0-9_./+-]+"
_WORD = r"(?:[A-Za-z0-9_./+@%:,=^~*?-]|'[^'\n]*'|\"[^\"$`\\!\n]*\")+"
_PLAIN = re.compile(rf" *({_PROGRAM})(?: +{_WORD})* *\Z")
# What bash does itself, and the words of its grammar.
_OF_THE_SHELL = frozenset(
    {
        ".", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
        "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown",
        "do", "done", "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit",
        "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash", "help",
        "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd",
        "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "select",
        "set", "shift", "shopt", "source", "suspend", "test", "then", "time", "times",
        "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until",
        "wait", "while",
    }
)  # fmt: skip


def is_plain_program(text: str) -> bool:
    """Whether `text` runs one program and nothing else; False where that is not obvious."""
    found = _PLAIN.match(text)
    return found is not None and found[1] not in _OF_THE_SHELL
