"""Ask the person at the other end of a host, one batch of questions at a time."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from handaxe.contract.ports.questions import Answers, OnQuestion, Question, Questions


class HostQuestions(Questions):
    """Passes questions to the host's own function and reads what it gives back."""

    def __init__(self, on_question: OnQuestion) -> None:
        self._on_question = on_question
        self._turn = asyncio.Lock()

    async def ask(self, questions: tuple[Question, ...]) -> Answers | None:
        """Wait for the answers; None if nobody answers."""
        async with self._turn:
            said = await self._on_question(questions)
        if isinstance(said, str):
            return Answers(response=said)
        if isinstance(said, dict):
            return Answers(answers=said)
        return said


def offer_to_hooks(offers: MutableMapping[type[Any], Any]) -> None:
    """Let the model ask although nobody is there: a hook has the answers, or puts the call off."""
    if Questions not in offers:
        offers[Questions] = HostQuestions(_nobody)


async def _nobody(questions: tuple[Question, ...]) -> None:  # noqa: ARG001 - nobody reads them
    return None
