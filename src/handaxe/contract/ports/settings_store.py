"""Read and change settings, one at a time."""

from abc import ABC, abstractmethod
from typing import Any, Literal

import msgspec

Scope = Literal["user", "project", "local"]


class SettingOrigin(msgspec.Struct, frozen=True):
    """Where a value comes from; no file for what the session was opened with."""

    source: str
    file: str | None = None
    line: int | None = None


class SettingValue(msgspec.Struct, frozen=True, rename="camel"):
    """One setting as it is in force."""

    key: str
    value: Any
    origins: tuple[SettingOrigin, ...] = ()
    """One for a single value, one for each item of a list; none for a default."""
    meaning: str = ""
    is_used: bool = True
    """Whether handaxe acts on it; keys of other programs are only kept."""


class SettingsStore(ABC):
    """The settings of this session and their files."""

    @abstractmethod
    def listed(self) -> list[SettingValue]:
        """Every setting that is set, by key."""

    @abstractmethod
    def find(self, key: str) -> SettingValue:
        """One setting, or a group of them as one object.

        Raises:
            UnknownSetting: there is none of that name.
        """

    @abstractmethod
    def find_file(self, scope: Scope) -> str:
        """The real path of the file that a change of this scope is written to."""

    @abstractmethod
    def check(self, key: str, value: object) -> None:
        """Raise unless the setting may have this value; None removes it.

        Raises:
            UnknownSetting: there is none of that name.
            BadSetting: the value does not fit.
        """

    @abstractmethod
    async def change(self, key: str, value: object, scope: Scope) -> SettingValue:
        """Write a value, or remove it with None. Return the setting that is then in force.

        Raises:
            SettingNotWritten: the file could not be changed.
        """
