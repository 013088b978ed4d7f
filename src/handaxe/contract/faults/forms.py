"""Faults of forms that a tool asks the user to fill in."""

from collections.abc import Sequence

from handaxe.contract.faults import TemplateFault, ToolFault


class ElicitationUnavailable(ToolFault):
    """A tool needs a form filled in, and no user can be asked."""

    code = "elicitation.unavailable"

    def __init__(self, why: str = "") -> None:
        sentence = (
            "This tool needs an answer from a user, and this run cannot ask one. "
            "Use a terminal, an MCP client with forms, or `on_elicit` of the library."
        )
        super().__init__(f"{sentence} {why}".strip())


class ElicitationDeclined(
    TemplateFault,
    code="elicitation.declined",
    sentence="The user did not fill in the form of this tool. Continue without it, or ask them.",
):
    """The user did not fill in the form."""


class BadFormAnswer(ToolFault):
    """The answer does not fit the form."""

    code = "elicitation.bad_answer"

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "\n".join(problems)
        super().__init__(f"The answer does not fit the form of this tool:\n{lines}")
