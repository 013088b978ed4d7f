"""Which file names usually stand for secrets: `.env` and its kind, but no examples of it.

This is the only place that decides it: for Read, for searches and for commands.
"""

from fnmatch import fnmatchcase

_SAMPLES = (".env", ".env.local", ".env.production", ".env.development", ".env.test", ".env.q7x")
_EXAMPLES = (".example", ".sample", ".template")


def is_env_file(name: str) -> bool:
    """Whether a file of this name usually holds secrets: `.env` and `.env.*`, not examples."""
    if not name.startswith(".") and name.isascii():
        return False
    folded = fold_name(name)
    return folded == ".env" or (folded.startswith(".env.") and not folded.endswith(_EXAMPLES))


def can_name_env_file(paths: str | bytes) -> bool:
    """Whether one of many joined paths may name such a file; faster than to look at each."""
    if not paths.isascii():
        return True
    return ".env" in paths.lower() if isinstance(paths, str) else b".env" in paths.lower()


def fold_name(name: str) -> str:
    """A name as the most forgiving file systems compare it."""
    if name.isascii():
        return name.lower()
    # Some file systems drop invisible characters and fold compatibility forms.
    import unicodedata

    plain = unicodedata.normalize("NFKC", name.casefold())
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").casefold()


def sample_env_files(pattern: str) -> list[str]:
    """Names of such files, as samples, that a glob fits; case is not looked at."""
    return [name for name in _SAMPLES if fnmatchcase(name, pattern.lower())]
