"""What keeps a tool from an answer to its form."""

from collections.abc import Sequence

from handaxe.contract.faults import ToolFault


class ElicitationUnavailable(ToolFault):
    """A tool wants a form filled in, and nobody is there to do it."""

    code = "elicitation.unavailable"

    def __init__(self, why: str = "") -> None:
        sentence = (
            "This tool needs an answer from a person, and nobody can be asked in this run. "
            "Use a terminal, an MCP client with forms, or `on_elicit` of the library."
        )
        super().__init__(f"{sentence} {why}".strip())


class ElicitationDeclined(ToolFault):
    """The person did not fill in the form."""

    code = "elicitation.declined"

    def __init__(self) -> None:
        super().__init__(
            "The user did not fill in the form of this tool. Go on without it, or ask the user."
        )


class BadFormAnswer(ToolFault):
    """What came back does not fit the form."""

    code = "elicitation.bad_answer"

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "\n".join(problems)
        super().__init__(f"The answer does not fit the form of this tool:\n{lines}")
