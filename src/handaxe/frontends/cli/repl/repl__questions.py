"""Questions of the model as menus: numbers choose, words answer freely."""

import sys
from collections.abc import Awaitable, Callable

from handaxe.contract.ports.questions import Answers, UserQuestion
from handaxe.frontends.cli.render import write_out
from handaxe.frontends.cli.tty_input import discard_typed_input
from handaxe.text.escape import to_visible_text

ReadLine = Callable[[], Awaitable[str | None]]


async def ask_in_menu(questions: tuple[UserQuestion, ...], read: ReadLine) -> Answers | None:
    """The person's answers; None if they give none."""
    answers: dict[str, str] = {}
    for question in questions:
        write_out(_format_menu(question))
        sys.stdout.flush()
        # An answer is typed by somebody who has seen the question.
        discard_typed_input()
        several = "numbers" if question.multi_select else "a number"
        write_out(f"Choose {several}, or answer in your own words: ")
        sys.stdout.flush()
        line = await read()
        if line is None or not line.strip():
            return Answers(answers=answers) if answers else None
        answers[question.question] = parse_choice(question, line)
    return Answers(answers=answers)


def parse_choice(question: UserQuestion, line: str) -> str:
    """What a typed line means: the labels of its numbers, or the words themselves."""
    words = line.replace(",", " ").split()
    labels = [choice.label for choice in question.options]
    numbers = [int(word) for word in words if word.isdecimal()]
    is_choice = bool(numbers) and len(numbers) == len(words)
    if is_choice and all(1 <= number <= len(labels) for number in numbers):
        picked = numbers if question.multi_select else numbers[:1]
        return ", ".join(dict.fromkeys(labels[number - 1] for number in picked))
    return line.strip()


def _format_menu(question: UserQuestion) -> str:
    lines = [f"\n[{to_visible_text(question.header)}] {_indent_lines(question.question)}\n"]
    for number, choice in enumerate(question.options, 1):
        meaning = f": {_indent_lines(choice.description)}" if choice.description else ""
        lines.append(f"  {number}. {to_visible_text(choice.label)}{meaning}\n")
        if choice.preview:
            lines += [f"       {to_visible_text(line)}\n" for line in choice.preview.splitlines()]
    return "".join(lines)


def _indent_lines(text: str) -> str:
    """Text of several lines, none of which begins where ours do."""
    return to_visible_text(text, lines=True).replace("\n", "\n       ")
