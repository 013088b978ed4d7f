"""Why a command cannot be shown without being done; raised by whoever offers previews."""

from handaxe.contract.faults import ToolFault


class CannotPreview(ToolFault):
    """This machine cannot keep the changes of a command apart."""

    code = "preview.impossible"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The command was not run: its changes cannot be kept apart here, because {reason}. "
            "Find out what it would do another way, or run it for real and undo it."
        )
