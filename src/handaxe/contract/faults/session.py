"""Faults of sessions on disk, for programs and their users."""

from handaxe.contract.faults import SetupError, TemplateFault, ToolFault

_SHOWN_CHARS = 80


class SessionBusy(SetupError, ToolFault):
    """The session is open elsewhere, and not every holder shares it."""

    code = "session.busy"

    def __init__(self, session_id: str, holder: int, own: int, *, by_agent: bool = False) -> None:
        """`holder` is the process that has it, 0 if that is not known; `own` is this one.

        With `by_agent`, only the conversation is in use.
        """
        who = "another process" if not holder else f"process {holder}"
        if holder == own:
            who = "this process, by a session that is not closed"
        told = (
            f"The session {session_id!r} is open in {who}. Close it there first. To continue "
            "independently from the same point, fork it (`--resume ID --fork-session`, "
            "`Session(fork_of=ID)`). Several work in one "
            "session only if each asks for that (`--shared-session`, `Session(shared=True)`)."
        )
        if by_agent:
            who = "this process" if holder == own else who
            told = (
                f"Another agent in {who} has the conversation of the session {session_id!r}. Close "
                "that agent first, or give this one a session of its own (`Session(fork_of=ID)`)."
            )
        super().__init__(told, data={"session_id": session_id, "process": holder or None})


class BadSessionId(SetupError, ToolFault):
    """The text cannot be the id of a session."""

    code = "session.bad_id"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"{str(given)[:_SHOWN_CHARS]!r} is not a session id: 1-64 letters, digits, `_`, `-` or "
            "`.`, starting with a letter or digit."
        )


class BadSessionTitle(
    SetupError,
    TemplateFault,
    code="session.bad_title",
    sentence="The name of a session must have 1-{max_chars} characters in one line.",
):
    """The text cannot be the title of a session."""


class SessionNotFound(
    SetupError,
    TemplateFault,
    code="session.not_found",
    sentence="There is no session {session_id!r}. `handaxe sessions` lists them.",
    data={"session_id": "session_id"},
):
    """No session has this id."""


class SessionExists(
    SetupError,
    TemplateFault,
    code="session.exists",
    sentence="There is a session {session_id!r} already. Choose another id.",
    data={"session_id": "session_id"},
):
    """Another session has this id."""


class SessionDamaged(
    SetupError,
    TemplateFault,
    code="session.damaged",
    sentence="The log of the session, {log}, cannot be used: {why}.",
):
    """The log of the session cannot be read."""


class SessionElsewhere(
    SetupError,
    TemplateFault,
    code="session.other_root",
    sentence=(
        "The session {session_id!r} belongs to {root}, not to {asked}. Open it with that root, "
        "or begin a new session here."
    ),
    data={"session_id": "session_id", "root": "root"},
):
    """The log of the session names another project."""


class BadEnvironment(
    SetupError,
    TemplateFault,
    code="session.bad_env",
    sentence="`env` must map names of variables to texts: {problem}.",
):
    """The variables of a session are invalid."""


class ProfileNotMet(SetupError, ToolFault):
    """The arguments of a session do not fit its profile."""

    code = "session.profile"

    def __init__(self, profile: str, problems: list[str]) -> None:
        listed = "; ".join(problems)
        super().__init__(
            f"The profile {profile!r} does not hold: {listed}. Change the argument, or open the "
            "session without the profile.",
            data={"profile": profile, "problems": problems},
        )


class NoSuchMessage(
    SetupError,
    TemplateFault,
    code="session.no_message",
    sentence="No message found with message.uuid of: {name}",
):
    """The conversation has no message with this id."""
