"""Put questions with ready-made answers to the person at the other end."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec


class QuestionOption(msgspec.Struct, frozen=True, kw_only=True):
    """One ready-made answer."""

    label: Annotated[str, "The answer in 1-5 words."]
    description: Annotated[str, "The meaning of this choice."] = ""
    preview: Annotated[str | None, "Text shown beside the choice, such as a code sample."] = None


class UserQuestion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One question."""

    question: Annotated[str, "The whole question, ending with a question mark."]
    header: Annotated[str, msgspec.Meta(max_length=12), "A label of at most 12 characters."]
    options: Annotated[
        tuple[QuestionOption, ...],
        msgspec.Meta(min_length=2, max_length=4),
        "2-4 answers to choose from.",
    ]
    multi_select: Annotated[bool, "Whether several answers may be chosen."] = False


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answers."""

    answers: dict[str, str] = {}
    """The chosen labels by the question's text; several are joined with `, `."""
    response: str | None = None
    """A reply in the person's own words instead."""


OnQuestion = Callable[[tuple[UserQuestion, ...]], Awaitable[Answers | dict[str, str] | str | None]]
"""A host's way to ask: labels by question, one free reply, or None without an answer."""


class Questions(ABC):
    """Asks the user."""

    @abstractmethod
    async def ask(self, questions: tuple[UserQuestion, ...]) -> Answers | None:
        """Wait for the answers; None without an answer."""


class ElicitationForm(msgspec.Struct, frozen=True):
    """A request of a tool or an MCP server to the user: a form, or an address to open."""

    source: str
    """The tool or server that asks."""
    message: str
    schema: dict[str, Any] | None
    """A JSON Schema of an object with simple properties; None where there is only an address."""
    url: str | None = None
    elicitation_id: str | None = None
    call_id: str | None = None
    """The call that asks; None for a server that asks by itself."""


OnElicit = Callable[[ElicitationForm], Awaitable[dict[str, Any] | None]]
"""A host's way to show a form: what was put in by the names of the properties; None declines."""


class FormPresenter(ABC):
    """Shows a form to the user."""

    @property
    @abstractmethod
    def is_there(self) -> bool:
        """Whether the user can be asked now."""

    @abstractmethod
    async def show(self, form: ElicitationForm) -> dict[str, Any] | None:
        """The values that the user entered, or None if the user declined."""
