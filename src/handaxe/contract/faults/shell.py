"""Faults of commands, raised by the `Shell` port."""

from handaxe.contract.faults import TemplateFault, ToolFault

_LESS = "Wait for other commands to end, or ask for less at once."


class CannotStart(ToolFault):
    """The machine could not start the shell."""

    code = "shell.cannot_start"

    def __init__(self, reason: str, way_out: str = _LESS) -> None:
        super().__init__(f"The command was not started: {reason}. Nothing of it ran. {way_out}")


class BadCommand(
    TemplateFault,
    code="shell.bad_command",
    sentence="The command contains {what}, so no shell can run it. Send it without.",
):
    """The command contains something that a shell cannot take."""


class BadWorkdir(
    TemplateFault,
    code="shell.no_directory",
    sentence=(
        "The command was not started because its directory {cwd!r} cannot be entered: "
        "{reason}. Name another directory, or create it with another tool."
    ),
):
    """The directory of a command cannot be entered."""


class OutsideRoots(ToolFault):
    """The directory of a call is outside the working directories."""

    code = "shell.outside_roots"

    def __init__(self, cwd: str, roots: tuple[str, ...]) -> None:
        super().__init__(
            f"The command was not started because {cwd!r} lies outside the working directories "
            f"({', '.join(roots)}). Name a directory inside them."
        )


class ShellClosed(
    TemplateFault,
    code="shell.closed",
    sentence="The session is closing, so no command starts any more.",
):
    """The session has ended, so no command starts any more."""


class CannotPreview(
    TemplateFault,
    code="preview.impossible",
    sentence=(
        "The command was not run because its changes cannot be kept separate here: {reason}. "
        "Find out what it would do another way, or run it and undo it."
    ),
):
    """This machine cannot keep the changes of a command separate."""


class NoSandbox(
    TemplateFault,
    code="shell.no_sandbox",
    sentence=(
        "The command was not run because commands must run in the sandbox here, and {why}. Do "
        "not try another way. Ask the user to run `handaxe doctor`, which names what is "
        "missing."
    ),
    data={"why": "why"},
):
    """Commands must run in the sandbox, and this machine cannot do it."""
