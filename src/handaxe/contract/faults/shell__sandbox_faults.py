"""Why a command cannot be confined as asked."""

from handaxe.contract.faults import ToolFault


class NoSandbox(ToolFault):
    """Commands have to be confined here, and this machine cannot do it."""

    code = "shell.no_sandbox"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The command was not run: commands must run in the sandbox here, and {why}. Do not "
            "try another way; tell the user that `handaxe doctor` says what is missing.",
            data={"why": why},
        )
