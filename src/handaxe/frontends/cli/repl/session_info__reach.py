"""What a session may touch, in three lines for a person who has not met handaxe here before."""

from handaxe.app.session import Session
from handaxe.storage.sessions import list_conversations

_CHANGES = {
    "default": "Changes: asks before every one; each can be undone.",
    "acceptEdits": "Changes: files in these directories without asking; each can be undone.",
    "plan": "Changes: none while a plan is made.",
    "auto": "Changes: a classifier decides what has to be asked; each can be undone.",
    "dontAsk": "Changes: only what rules allow; the rest is refused.",
    "bypassPermissions": "Changes: anything without asking; only deny rules hold.",
}
_ADVISORY = (
    " Deny rules hold for handaxe's own tools and for what a command names; without the sandbox "
    "they are advisory for what a program does by itself."
)


def is_new_here(session: Session) -> bool:
    """Whether nobody has talked to handaxe in this project yet."""
    home = session.surroundings.data_home
    return next(iter(list_conversations(home, session.workdir.root)), None) is None


def describe_access(session: Session) -> tuple[str, str, str]:
    """What may be read, what may be changed, and how far commands get."""
    directories = ", ".join(session.workdir.roots)
    reads = f"Reads: {directories}; asks for anything outside."
    return reads, _CHANGES[session.permissions.mode], _describe_commands(session)


def has_advisory_rules(session: Session) -> bool:
    """Whether deny rules name files while no sandbox enforces them."""
    denied = (rule.text for rule in session.permissions.rules if rule.behaviour == "deny")
    names_files = any(text.startswith(("Read(", "Edit(")) for text in denied)
    return names_files and not session.settings.sandbox.enabled


def _describe_commands(session: Session) -> str:
    if session.settings.sandbox.enabled:
        return "Commands: in a sandbox; `handaxe doctor` says what it keeps out."
    free = "with your rights, no sandbox; those that only look run, others ask."
    return f"Commands: {free}{_ADVISORY if has_advisory_rules(session) else ''}"
