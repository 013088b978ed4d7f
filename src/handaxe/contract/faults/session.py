"""Why a session on disk cannot be opened or changed; a host program and a person read them."""

from handaxe.contract.faults import SetupError, ToolFault

_SHOWN_CHARS = 80


class SessionBusy(SetupError, ToolFault):
    """A session is open elsewhere, and not every holder of it asked to share it."""

    code = "session.busy"

    def __init__(self, session_id: str, holder: int, own: int, *, by_agent: bool = False) -> None:
        """`holder` is the process that has it, 0 if that is not known; `own` is this one.

        With `by_agent` it is only the conversation that somebody has.
        """
        who = "another process" if not holder else f"process {holder}"
        if holder == own:
            who = "this process, by a session that is not closed"
        told = (
            f"The session {session_id!r} is open in {who}. Close it there first. To go on from the "
            "same point independently, fork it (`--resume ID --fork-session`, "
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
    """A text cannot be the id of a session."""

    code = "session.bad_id"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"{str(given)[:_SHOWN_CHARS]!r} is not a session id: 1-64 letters, digits, `_`, `-` or "
            "`.`, starting with a letter or digit."
        )


class BadSessionTitle(SetupError, ToolFault):
    """A text cannot be the title of a session."""

    code = "session.bad_title"

    def __init__(self, max_chars: int) -> None:
        super().__init__(f"The name of a session is 1-{max_chars} characters in one line.")


class SessionNotFound(SetupError, ToolFault):
    """No session has this id."""

    code = "session.not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is no session {session_id!r}. `handaxe sessions` lists them.",
            data={"session_id": session_id},
        )


class SessionExists(SetupError, ToolFault):
    """The id of a new session is taken."""

    code = "session.exists"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"There is a session {session_id!r} already. Choose another id.",
            data={"session_id": session_id},
        )


class SessionDamaged(SetupError, ToolFault):
    """The log of a session cannot be read at all."""

    code = "session.damaged"

    def __init__(self, log: str, why: str) -> None:
        super().__init__(f"The session's log {log} is not usable, {why}.")


class SessionElsewhere(SetupError, ToolFault):
    """The log of a session names another project."""

    code = "session.other_root"

    def __init__(self, session_id: str, root: str, asked: str) -> None:
        super().__init__(
            f"The session {session_id!r} belongs to {root}, not to {asked}. Open it with that "
            "root, or begin a new session here.",
            data={"session_id": session_id, "root": root},
        )


class BadEnvironment(SetupError, ToolFault):
    """The variables of a session cannot be those of a process."""

    code = "session.bad_env"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"`env` holds the variables of commands as texts by name: {problem}.",
        )


class ProfileNotMet(SetupError, ToolFault):
    """The arguments of a session break what its profile promises."""

    code = "session.profile"

    def __init__(self, profile: str, problems: list[str]) -> None:
        listed = "; ".join(problems)
        super().__init__(
            f"The profile {profile!r} does not hold: {listed}. Change the argument, or open the "
            "session without the profile.",
            data={"profile": profile, "problems": problems},
        )


class NoSuchMessage(SetupError, ToolFault):
    """The conversation has no message of this name."""

    code = "session.no_message"

    def __init__(self, name: str) -> None:
        super().__init__(f"No message found with message.uuid of: {name}")
