"""Ask the person at the other end of a host, one batch of questions at a time."""

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
    """Passes questions to the host's own function and reads what it gives back."""

    def __init__(
        self, on_question: OnQuestion, timeout_s: Callable[[], float | None] = lambda: None
    ) -> None:
        """`timeout_s` says how long an answer is waited for; None: for ever."""
        self._on_question = on_question
        self._timeout_s = timeout_s
        self._turns = PromptQueue()

    async def ask(self, questions: tuple[UserQuestion, ...]) -> Answers | None:
        """Wait for the answers; None if nobody answers."""
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
    """Passes forms to the host's own function, one at a time."""

    def __init__(self, on_elicit: OnElicit, may_ask: Callable[[], bool]) -> None:
        # What a host's function really gives back is anybody's guess.
        self._on_elicit: Callable[[ElicitationForm], Awaitable[object]] = on_elicit
        self._may_ask = may_ask
        self._turns = PromptQueue()

    @property
    def is_there(self) -> bool:
        """Whether anybody may be asked now."""
        return self._may_ask()

    async def show(self, form: ElicitationForm) -> dict[str, Any] | None:
        """What the person put in; None declines."""
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
        raise BadFormAnswer([f"The answer is no dict of named values: {filled!r:.100}"])


def parse_question_timeout(wait: str) -> float | None:
    """How long `60s` or `5m` is; None for `never`."""
    return None if wait == "never" else int(wait[:-1]) * (60 if wait.endswith("m") else 1)


def enable_hook_answers(ports: MutableMapping[type[Any], Any]) -> None:
    """Let the model ask although nobody is there: a hook has the answers, or puts the call off."""
    if Questions not in ports:
        ports[Questions] = HostQuestions(_answer_nothing)


async def _answer_nothing(questions: tuple[UserQuestion, ...]) -> None:  # noqa: ARG001 - nobody reads them
    return None
