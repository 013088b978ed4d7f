"""Requests of a project's files, and the one gate that grants them.

A reader of such files returns a `Wish`: it can be shown and compared, but its value is only
available from `Wish.grant`, which asks the gate. So a reader that forgets the gate has no value of
the right type.
"""

from abc import ABC, abstractmethod
from hashlib import sha256
from typing import Any, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")
_MAX_CHARS = 4_000
_SHOWN_CHARS = 1_000
Owner = Literal["project", "own"]
"""`own`: written by the user, an organisation or the host program, which need no trust."""


class TrustRequest(Generic[T]):
    """Something that a file wants done beside giving text to a model."""

    __slots__ = ("_nothing", "_shown", "_wanted", "file", "is_projects", "key", "root")

    def __init__(
        self,
        wanted: T,
        nothing: T,
        *,
        key: str,
        shown: object = None,
        file: str = "",
        root: str = "",
        owner: Owner = "project",
    ) -> None:
        """`nothing` stands for `wanted` where that is not granted.

        `shown` is what a person approves; whatever changes it needs the approval again.
        `root` is the folder whose trust counts.
        """
        self._wanted = wanted
        self._nothing = nothing
        self._shown = wanted if shown is None else shown
        self.key = key
        self.file = file
        self.root = root
        self.is_projects = owner == "project"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is wished for."""
        return self._wanted == self._nothing

    @property
    def note(self) -> str:
        """The request as a text that is the same for the same request."""
        try:
            text = msgspec.json.encode(self._shown, order="deterministic", enc_hook=repr).decode()
        except (TypeError, ValueError, RecursionError):
            # A file may hold what JSON cannot.
            text = repr(self._shown)
        if len(text) <= _MAX_CHARS:
            return text
        return f"{text[:_SHOWN_CHARS]}... (sha256 {sha256(text.encode()).hexdigest()})"

    def grant(self, gate: "TrustGate | None") -> T:
        """The requested value, if the gate allows it to a project."""
        if self.is_empty or not self.is_projects:
            return self._wanted
        return self._wanted if gate is not None and gate.allows(self) else self._nothing


class TrustGate(ABC):
    """Says what the user approved of a project's files, as they are now."""

    @abstractmethod
    def allows(self, wish: TrustRequest[Any]) -> bool:
        """Whether exactly this request was approved."""

    @abstractmethod
    def refusal(self, wish: TrustRequest[Any]) -> str | None:
        """Why a request is not granted, what changed and what to do; None if it is granted."""
