"""AskUserQuestion: one to four questions with answers to choose from."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.questions import Answers, Questions, UserQuestion
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class NobodyAnswers(ToolFault):
    """The person at the other end gave no answer."""

    code = "user.no_answer"

    def __init__(self) -> None:
        super().__init__(
            "Nobody answered. Choose the most careful option yourself, say which one, and go on."
        )


class SameQuestion(ToolFault):
    """Two questions, or two answers of one question, have the same text."""

    code = "user.same_question"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} stands there twice; answers could not be told apart.")


class AskUserQuestionArgs(ToolArgs, kw_only=True):
    questions: Annotated[
        list[UserQuestion], msgspec.Meta(min_length=1, max_length=4), "1-4 questions."
    ]
    answers: Annotated[dict[str, str] | None, "Filled in by the host; leave it out."] = None
    annotations: Annotated[dict[str, Any] | None, "Filled in by the host; leave it out."] = None
    metadata: Annotated[dict[str, Any] | None, "Kept as it is."] = None


class QuestionOptionData(TypedDict):
    """One ready-made answer."""

    label: str
    description: str
    preview: str | None


class UserQuestionData(TypedDict):
    """One question."""

    question: str
    header: str
    options: list[QuestionOptionData]
    multiSelect: bool


class AskUserQuestionData(TypedDict):
    """What was asked, and what the person said."""

    questions: list[UserQuestionData]
    answers: Annotated[dict[str, str], "By the question's text; several are joined with `, `."]
    response: NotRequired[Annotated[str, "A reply in the person's own words instead."]]


class AskUserQuestion(Tool[AskUserQuestionArgs]):
    search_hint = "clarify requirements, choose between options"
    output_type = AskUserQuestionData
    uses = (Questions,)
    asks_person = True
    effects = Effects.on_state("user")
    interrupt = "cancel"

    async def validate(self, args: AskUserQuestionArgs, ctx: ToolContext) -> None:
        _refuse_twins([question.question for question in args.questions])
        for question in args.questions:
            _refuse_twins([choice.label for choice in question.options])

    async def call(self, args: AskUserQuestionArgs, ctx: ToolContext) -> ToolResult:
        said = Answers(answers=args.answers) if args.answers else None
        if said is None:
            said = await ctx[Questions].ask(tuple(args.questions))
        if said is None or (said.response is None and not said.answers):
            raise NobodyAnswers
        asked: list[UserQuestionData] = msgspec.to_builtins(args.questions)
        data: AskUserQuestionData = {"questions": asked, "answers": said.answers}
        if said.response is not None:
            data["response"] = said.response
        return ToolResult(_format_answers(args, said), data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return "AskUserQuestion"


def _refuse_twins(texts: list[str]) -> None:
    for at, text in enumerate(texts):
        if text in texts[:at]:
            raise SameQuestion(text)


def _format_answers(args: AskUserQuestionArgs, said: Answers) -> str:
    lines = [
        f"{question.question}\n  → {said.answers.get(question.question, '(no answer)')}"
        for question in args.questions
        if said.answers
    ]
    if said.response is not None:
        lines.append(f"The user responded: {said.response}")
    return "\n".join(lines)
