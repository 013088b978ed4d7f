"""A program of the user's that prints the key of a model's server, run when the key is needed."""

import os
import subprocess
from collections.abc import Iterator, Mapping

from handaxe.contract.faults import SetupError

KEY = "ANTHROPIC_API_KEY"
_KEYS = (KEY, "ANTHROPIC_AUTH_TOKEN")
_TIMEOUT_S = 30


class EnvironmentWithKey(Mapping[str, str]):
    """The environment, and the helper's key where it has none of its own.

    Nothing else of the process sees that key: commands and hooks get the environment as it is.
    """

    def __init__(self, helper: str, environment: Mapping[str, str] = os.environ) -> None:
        self._helper = helper
        self._environment = environment
        self._key: str | None = None

    def __getitem__(self, name: str) -> str:
        if name == KEY and not any(self._environment.get(key) for key in _KEYS):
            if self._key is None:
                self._key = _run_helper(self._helper)
            return self._key
        return self._environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


def _run_helper(helper: str) -> str:
    """The key; what the helper says on standard error reaches the person as it is."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own settings name it; a project may not
            ["/bin/sh", "-c", helper],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"apiKeyHelper gave no key in {_TIMEOUT_S} seconds.") from None
    key = done.stdout.decode(errors="replace").strip()
    if done.returncode or not key:
        raise SetupError(f"apiKeyHelper gave no key (exit code {done.returncode}).")
    return key
