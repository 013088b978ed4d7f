"""The environment of programs that handaxe starts on somebody's behalf.

A list of what goes in, not of what stays out: a secret whose name nobody thought of is not
handed on either.
"""

from collections.abc import Iterable, Mapping

from handaxe.text.secrets import has_matching_pattern

PASSED_ON = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR",
        "TZ", "USER",
    }
)  # fmt: skip


def clean_environment(
    inherited: Mapping[str, str], more: Mapping[str, str], named: Iterable[str] = ()
) -> dict[str, str]:
    """The harmless part of `inherited`, and on top what was named on purpose.

    `named` are names or patterns of what else of `inherited` goes in.
    """
    named = tuple(named)
    kept = {
        name: value
        for name, value in inherited.items()
        if name in PASSED_ON or name.startswith("LC_") or has_matching_pattern(name, named)
    }
    return {**kept, **more}
