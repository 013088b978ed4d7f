"""AskUserQuestion: ask one to four questions with suggested answers."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.faults import TemplateFault
from handaxe.contract.ports.questions import Answers, Questions, UserQuestion
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs


class NobodyAnswers(
    TemplateFault,
    code="user.no_answer",
    sentence=(
        "The user did not answer. Choose the most careful option yourself, say which one, and "
        "continue."
    ),
):
    """The user did not answer."""


class SameQuestion(
    TemplateFault,
    code="user.same_question",
    sentence="{text!r} occurs twice. Make the texts different.",
):
    """Two questions, or two options of one question, have the same text."""


class AskUserQuestionArgs(ToolArgs, kw_only=True):
    questions: Annotated[
        list[UserQuestion], msgspec.Meta(min_length=1, max_length=4), "1-4 questions."
    ]
    answers: Annotated[dict[str, str] | None, "Set by the host; leave it out."] = None
    annotations: Annotated[dict[str, Any] | None, "Set by the host; leave it out."] = None
    metadata: Annotated[dict[str, Any] | None, "Kept unchanged."] = None


class QuestionOptionData(TypedDict):
    """One suggested answer."""

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
    """The questions and the answers."""

    questions: list[UserQuestionData]
    answers: Annotated[dict[str, str], "By question; several answers are joined with `, `."]
    response: NotRequired[Annotated[str, "A free-text reply instead of answers."]]


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
            raise SameQuestion(text=text)


def _format_answers(args: AskUserQuestionArgs, said: Answers) -> str:
    lines = [
        f"{question.question}\n  → {said.answers.get(question.question, '(no answer)')}"
        for question in args.questions
        if said.answers
    ]
    if said.response is not None:
        lines.append(f"The user responded: {said.response}")
    return "\n".join(lines)
