"""Ask the user through the host, one batch of questions at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from handaxe.contract.cancellation import is_external_stop
from handaxe.contract.faults import ToolFault, describe_error
from handaxe.contract.faults.forms import BadFormAnswer, ElicitationUnavailable
from handaxe.contract.ports.questions import (
    Answers,
    ElicitationForm,
    FormPresenter,
    OnElicit,
    OnQuestion,
    Questions,
    UserQuestion,
)
from handaxe.permission.prompts import PromptQueue

_log = logging.getLogger("handaxe.asking")


class HostQuestions(Questions):
    """Sends questions to the host's function and checks the answers."""

    def __init__(
        self, on_question: OnQuestion, timeout_s: Callable[[], float | None] = lambda: None
    ) -> None:
        """`timeout_s`: how long to wait for an answer; None for no limit."""
        self._on_question = on_question
        self._timeout_s = timeout_s
        self._turns = PromptQueue()

    async def ask(self, questions: tuple[UserQuestion, ...]) -> Answers | None:
        """Wait for the answers; None if the user gives no answer."""
        async with self._turns.turn(in_background=False):
            waiting = asyncio.timeout(self._timeout_s())
            try:
                async with waiting:
                    said = await self._on_question(questions)
            except TimeoutError:
                if not waiting.expired():
                    raise
                return None
        if isinstance(said, str):
            return Answers(response=said)
        if isinstance(said, dict):
            return Answers(answers=said)
        return said


class HostForms(FormPresenter):
    """Sends forms to the host's function, one at a time."""

    def __init__(self, on_elicit: OnElicit, may_ask: Callable[[], bool]) -> None:
        # A host's function may return anything.
        self._on_elicit: Callable[[ElicitationForm], Awaitable[object]] = on_elicit
        self._may_ask = may_ask
        self._turns = PromptQueue()

    @property
    def is_there(self) -> bool:
        """Whether the host can show forms."""
        return self._may_ask()

    async def show(self, form: ElicitationForm) -> dict[str, Any] | None:
        """The values that the user entered; None if they declined."""
        async with self._turns.turn(in_background=False):
            try:
                filled = await self._on_elicit(form)
            except BaseException as error:
                # A failing callback must not look like an answer.
                if isinstance(error, ToolFault) or is_external_stop(error):
                    raise
                _log.warning("on_elicit failed", exc_info=error)
                raise ElicitationUnavailable(
                    f"The callback failed ({type(error).__name__}: {describe_error(error)})."
                ) from None
        if filled is None or isinstance(filled, dict):
            return cast("dict[str, Any] | None", filled)
        raise BadFormAnswer([f"The answer must be a dict of named values: {filled!r:.100}"])


def parse_question_timeout(wait: str) -> float | None:
    """The seconds of `60s` or `5m`; None for `never`."""
    return None if wait == "never" else int(wait[:-1]) * (60 if wait.endswith("m") else 1)


def enable_hook_answers(ports: MutableMapping[type[Any], Any]) -> None:
    """Allow questions without a host, because a hook can answer or defer the call."""
    if Questions not in ports:
        ports[Questions] = HostQuestions(_answer_nothing)


async def _answer_nothing(questions: tuple[UserQuestion, ...]) -> None:  # noqa: ARG001 - nobody reads them
    return None
