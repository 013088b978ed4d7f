"""The `apiKeyHelper` program, which prints the key of the model server when it is needed."""

import os
import subprocess
from collections.abc import Iterator, Mapping

from handaxe.contract.faults import SetupError

KEY = "ANTHROPIC_API_KEY"
_KEYS = (KEY, "ANTHROPIC_AUTH_TOKEN")
_TIMEOUT_S = 30


class EnvironmentWithKey(Mapping[str, str]):
    """The environment, with the helper's key if it has no key itself.

    Commands and hooks do not get that key.
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
    """The key; standard error of the helper goes to the terminal."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own settings name it; a project may not
            ["/bin/sh", "-c", helper],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(
            f"apiKeyHelper printed no key within {_TIMEOUT_S} seconds. Run it to find out why."
        ) from None
    key = done.stdout.decode(errors="replace").strip()
    if done.returncode or not key:
        raise SetupError(
            f"apiKeyHelper printed no key (exit code {done.returncode}). Run it to find out why."
        )
    return key
