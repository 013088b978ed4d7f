"""Why a command could not be run; raised by whoever offers the `Shell` port."""

from handaxe.contract.faults import ToolFault

_LESS = "Wait for other commands to end, or ask for less at once."


class CannotStart(ToolFault):
    """The machine did not start the shell."""

    code = "shell.cannot_start"

    def __init__(self, reason: str, way_out: str = _LESS) -> None:
        super().__init__(f"The command was not started: {reason}. Nothing of it ran. {way_out}")


class BadCommand(ToolFault):
    """The command holds what no shell can be given."""

    code = "shell.bad_command"

    def __init__(self, what: str) -> None:
        super().__init__(f"The command holds {what}, so no shell can run it. Send it without.")


class BadWorkdir(ToolFault):
    """The directory a command should run in cannot be entered."""

    code = "shell.no_directory"

    def __init__(self, cwd: str, reason: str) -> None:
        super().__init__(
            f"The command was not started because its directory {cwd!r} cannot be entered: "
            f"{reason}. Name another directory, or create it with another tool."
        )


class OutsideRoots(ToolFault):
    """The directory that a call names to run in is not one of the session's."""

    code = "shell.outside_roots"

    def __init__(self, cwd: str, roots: tuple[str, ...]) -> None:
        super().__init__(
            f"The command was not started because {cwd!r} lies outside the working directories "
            f"({', '.join(roots)}). Name a directory inside them."
        )


class ShellClosed(ToolFault):
    """The session has ended, so no command starts any more."""

    code = "shell.closed"

    def __init__(self) -> None:
        super().__init__("The session is closing; no command is started any more.")


class CannotPreview(ToolFault):
    """This machine cannot keep the changes of a command apart."""

    code = "preview.impossible"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The command was not run: its changes cannot be kept apart here, because {reason}. "
            "Find out what it would do another way, or run it for real and undo it."
        )


class NoSandbox(ToolFault):
    """Commands have to be confined here, and this machine cannot do it."""

    code = "shell.no_sandbox"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The command was not run: commands must run in the sandbox here, and {why}. Do not "
            "try another way; tell the user that `handaxe doctor` says what is missing.",
            data={"why": why},
        )
