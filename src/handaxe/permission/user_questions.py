"""Ask the person at the other end of a host, one batch of questions at a time."""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

from handaxe.contract.ports.questions import Answers, OnQuestion, Questions, UserQuestion
from handaxe.permission.prompts import PromptQueue


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


def parse_question_timeout(wait: str) -> float | None:
    """How long `60s` or `5m` is; None for `never`."""
    return None if wait == "never" else int(wait[:-1]) * (60 if wait.endswith("m") else 1)


def enable_hook_answers(offers: MutableMapping[type[Any], Any]) -> None:
    """Let the model ask although nobody is there: a hook has the answers, or puts the call off."""
    if Questions not in offers:
        offers[Questions] = HostQuestions(_answer_nothing)


async def _answer_nothing(questions: tuple[UserQuestion, ...]) -> None:  # noqa: ARG001 - nobody reads them
    return None
