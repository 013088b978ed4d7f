"""Tools that give each directory variables of its own: how each is asked, what its answer means.

direnv and mise run what a project's files say, and each keeps a list of the files its user allowed.
That list decides here too: a file that is not on it is not run, and it is never put there by us.
"""

import base64
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote

import msgspec

from handaxe.shell.exec.environment.env_probe import Ask, ProbeResult

Variables = Mapping[str, str | None]
"""What is set, and by None what is taken away."""
Signature = tuple[object, ...]
"""Two that are equal: what a tool answers is the same."""

_DIRENV_FILES = (".envrc", ".env")
_MISE_FILES = (
    "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise/config.toml",
    ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".config/mise/conf.d",
    ".tool-versions", ".env", ".node-version", ".nvmrc", ".python-version", ".ruby-version",
    ".go-version", ".java-version", ".sdkmanrc",
)  # fmt: skip
_MISE_DIFF = "__MISE_DIFF"


class ActivationResult(msgspec.Struct, frozen=True):
    """What holds in a directory."""

    variables: Variables = {}
    watched: tuple[str, ...] = ()
    """More files on which the answer rests."""
    problem: str = ""
    """What the model should know, as a sentence."""


class Activator(ABC):
    """One such tool."""

    @abstractmethod
    def signature(self, directory: str) -> Signature | None:
        """What an answer for a directory rests on; None if there is nothing to ask."""

    @abstractmethod
    async def answer(self, directory: str, env: Mapping[str, str], ask: Ask) -> ActivationResult:
        """What holds in a directory, over `env`."""


class Direnv(Activator):
    """Asked for the difference to the environment it gets, as its hook in a shell does."""

    def __init__(self, program: str, env: Mapping[str, str]) -> None:
        self._command = f"{quote(program)} export json"
        self._was_active = "DIRENV_DIFF" in env
        data = _find_home_directory(env, "XDG_DATA_HOME", ".local/share")
        config = _find_home_directory(env, "XDG_CONFIG_HOME", ".config") + "/direnv"
        # Whoever has neither does not use it, though it may be installed.
        self._signs_of_use = (f"{data}/direnv/allow", env.get("DIRENV_CONFIG") or config)

    def signature(self, directory: str) -> Signature | None:
        """The files above, and what was allowed."""
        found = tuple(_list_signatures(directory, _DIRENV_FILES))
        if not found and not self._was_active:
            return None
        signs = tuple(map(read_file_signature, self._signs_of_use))
        return (*found, *signs) if self._was_active or any(signs) else None

    async def answer(self, directory: str, env: Mapping[str, str], ask: Ask) -> ActivationResult:
        """Ask it; what it takes back of an earlier directory comes with it."""
        said = await ask(self._command, directory, env)
        if said is None:
            return _make_timeout_result("direnv", directory)
        variables = _decode_variables(said.out)
        # Where nothing has changed since the prompt was there, it says nothing.
        watched = _decode_watched_files(
            variables.get("DIRENV_WATCHES") or env.get("DIRENV_WATCHES")
        )
        problem = ""
        if "is blocked" in said.error:
            problem = _format_not_allowed(
                "direnv", variables.get("DIRENV_FILE") or directory, "direnv allow"
            )
        elif said.exit_code:
            problem = _format_failure("direnv", directory, said)
        return ActivationResult(variables, watched, problem)


class Mise(Activator):
    """Asked for the variables of a directory; what it had set elsewhere is in its notes."""

    def __init__(self, program: str, env: Mapping[str, str]) -> None:
        self._program = quote(program)
        self._was_active = _MISE_DIFF in env
        self._diff = _decode_diff(env.get(_MISE_DIFF, ""))
        state = env.get("MISE_STATE_DIR")
        state = state or _find_home_directory(env, "XDG_STATE_HOME", ".local/state") + "/mise"
        config = env.get("MISE_CONFIG_DIR")
        config = config or _find_home_directory(env, "XDG_CONFIG_HOME", ".config") + "/mise"
        self._beside = (f"{state}/trusted-configs", f"{config}/config.toml")
        names = env.get("MISE_ENV", "").split(",")
        self._files = (*_MISE_FILES, *(f"mise.{name}.toml" for name in names if name))

    def signature(self, directory: str) -> Signature | None:
        """The files above, what is trusted, and what holds everywhere."""
        found = tuple(_list_signatures(directory, self._files))
        if not found and not self._was_active:
            return None
        return (*found, *map(read_file_signature, self._beside))

    async def answer(self, directory: str, env: Mapping[str, str], ask: Ask) -> ActivationResult:
        """Ask it, if it does not say first that a file is not trusted."""
        before = self._revert_variables(env)
        said = await ask(self._asking(env), directory, {**env, "MISE_YES": "0"})
        if said is None:
            return msgspec.structs.replace(
                _make_timeout_result("mise", directory), variables=before
            )
        if "not trusted" in said.error:
            told = _format_not_allowed(
                "mise", _find_named_file(said.error) or directory, "mise trust"
            )
            return ActivationResult(before, problem=told)
        if said.exit_code:
            return ActivationResult(before, problem=_format_failure("mise", directory, said))
        return ActivationResult({**before, **_decode_variables(said.out)})

    def _asking(self, env: Mapping[str, str]) -> str:
        """In continuous integration it trusts everything, so it is asked for trust without that."""
        kept = [
            f'{name}="${name}"'
            for name in env
            if name in {"HOME", "PATH"}
            or (name.isidentifier() and name.startswith(("MISE_", "XDG_")) and name != "MISE_YES")
        ]
        trust = f"/usr/bin/env -i MISE_YES=0 {' '.join(kept)} {self._program} config ls"
        return (
            f"refusal=$({trust} 2>&1 >/dev/null)\n"
            'case $refusal in *"not trusted"*) printf %s "$refusal" >&2; exit 1;; esac\n'
            f"MISE_AUTO_INSTALL=0 {self._program} env --json"
        )

    def _revert_variables(self, env: Mapping[str, str]) -> dict[str, str | None]:
        back: dict[str, str | None] = {name: self._diff.old.get(name) for name in self._diff.new}
        if self._diff.path:
            places = env.get("PATH", "").split(os.pathsep)
            kept = [place for place in places if place not in self._diff.path]
            back["PATH"] = os.pathsep.join(kept)
        return back


class Virtualenv(Activator):
    """A project's own `.venv`, where nothing else is active; there is nobody to ask."""

    _NAMES = (".venv", "venv")

    def __init__(self, env: Mapping[str, str]) -> None:
        self._is_taken = bool(env.keys() & {"VIRTUAL_ENV", "CONDA_PREFIX"})

    def signature(self, directory: str) -> Signature | None:
        """The nearest one, if it is the only one there."""
        place = None if self._is_taken else self._find_only_one(directory)
        return None if place is None else (place,)

    async def answer(self, directory: str, env: Mapping[str, str], ask: Ask) -> ActivationResult:  # noqa: ARG002
        """As its own `activate` does."""
        place = self._find_only_one(directory)
        if place is None or "VIRTUAL_ENV" in env:
            return ActivationResult()
        path = f"{place}/bin{os.pathsep}{env.get('PATH', '')}"
        return ActivationResult({"VIRTUAL_ENV": place, "PATH": path})

    def _find_only_one(self, directory: str) -> str | None:
        for place in _walk_up(directory):
            found = [name for name in self._NAMES if Path(f"{place}/{name}/pyvenv.cfg").is_file()]
            if found:
                return f"{place}/{found[0]}" if len(found) == 1 else None
        return None


def read_file_signature(path: str) -> Signature | None:
    """What changes when a file does; None if it is not there."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return path, info.st_mtime_ns, info.st_size, info.st_ino


def _walk_up(directory: str) -> Iterator[str]:
    while directory not in {"", "/"}:
        yield directory
        directory = directory.rpartition("/")[0]


def _list_signatures(directory: str, names: tuple[str, ...]) -> Iterator[Signature]:
    for place in _walk_up(directory):
        for name in names:
            state = read_file_signature(f"{place}/{name}")
            if state is not None:
                yield state


def _find_home_directory(env: Mapping[str, str], variable: str, usual: str) -> str:
    return env.get(variable) or f"{env.get('HOME', '')}/{usual}"


def _decode_variables(out: bytes) -> dict[str, str | None]:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(out, type=dict[str, str | None])
    return {}


class _Watch(msgspec.Struct, rename="pascal"):
    path: str


def _decode_watched_files(packed: str | None) -> tuple[str, ...]:
    """The files direnv names; how it writes them down is its own business, so nothing is lost."""
    with suppress(ValueError, zlib.error):
        raw = zlib.decompress(base64.urlsafe_b64decode(packed or ""))
        return tuple(watch.path for watch in msgspec.json.decode(raw, type=list[_Watch]))
    return ()


class _Diff(msgspec.Struct):
    old: dict[str, str] = {}
    new: dict[str, str] = {}
    path: list[str] = []


def _decode_diff(packed: str) -> _Diff:
    with suppress(ValueError, zlib.error):
        raw = zlib.decompress(base64.b64decode(packed + "=" * (-len(packed) % 4)))
        return msgspec.msgpack.decode(raw, type=_Diff)
    return _Diff()


def _find_named_file(error: str) -> str | None:
    words = (word.rstrip(".:,") for word in error.split())
    return next((word for word in words if word.startswith("/")), None)


def _format_not_allowed(name: str, path: str, remedy: str) -> str:
    return (
        f"{name} does not run {path}: its user has not allowed it as it is now (`{remedy}`). "
        "Commands there run without its variables."
    )


def _make_timeout_result(name: str, directory: str) -> ActivationResult:
    return ActivationResult(
        problem=f"{name} gave no answer for {directory}; commands run without it."
    )


def _format_failure(name: str, directory: str, said: ProbeResult) -> str:
    lines = said.error.strip().splitlines() or [f"exit code {said.exit_code}"]
    return f"{name} failed in {directory}: {lines[0][:300]}"
