"""Faults with stable codes, one module per family; the base classes are here.

A `ToolFault` is for the model: it becomes a failed result with a stable code. A `SetupError`
is for the person at the keyboard: wrong usage, wrong settings, a missing program. Any other
exception is a bug of handaxe and becomes `internal.error`.

Belongs here: faults that several packages raise or handle.
Does not: faults that only one tool family raises (its own module, such as `edit_faults`).
May import: the other modules of `contract`.
"""

import errno
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from handaxe.contract.call import ToolCall

_CODE_CHARS = frozenset(f"{ascii_letters}{digits}_-.")


def is_code(code: object) -> bool:
    """Whether it has the form `family.fact`."""
    if not isinstance(code, str) or not _CODE_CHARS.issuperset(code):
        return False
    return "." in code and all(code.split("."))


def describe_error(error: BaseException) -> str:
    """The message of an error, also of one whose `__str__` fails."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - code of other authors
        return "it does not say why"


class ToolFault(Exception):
    """A fact the model can act on; raised by any stage, answered as a failed result."""

    code: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - passed through unseen
        """Refuse a code that programs could not rely on, where it is written."""
        super().__init_subclass__(**kwargs)
        code = cls.__dict__.get("code")
        if code is not None and not is_code(code):
            raise TypeError(f"{cls.__qualname__}: {code!r} is not a code of the form family.fact.")

    def __init__(self, sentence: str, *, data: dict[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.data = data or {}

    def at(self, place: str, **where: Any) -> Self:  # noqa: ANN401 - any fact
        """The same fault, saying which part of a call it is about."""
        self.sentence = f"{place}: {self.sentence}"
        self.data = {**self.data, **where}
        return self


class TemplateFault(ToolFault):
    """A fault that is only data: a code, and a sentence with placeholders for facts.

    `data` maps keys of the result's data to the facts that they hold.
    """

    template: ClassVar[str]
    data_facts: ClassVar[Mapping[str, str]]

    def __init_subclass__(
        cls, *, code: str, sentence: str, data: Mapping[str, str] | None = None
    ) -> None:
        cls.code, cls.template, cls.data_facts = code, sentence, data or {}
        super().__init_subclass__()

    def __init__(self, **facts: object) -> None:
        super().__init__(
            self.template.format_map(facts),
            data={key: facts[fact] for key, fact in self.data_facts.items()},
        )


class SetupError(Exception):
    """A problem that only the user can fix; the command line ends with exit code 2."""


class UnknownTool(ToolFault):
    """The call names a tool that is not available here."""

    code = "call.unknown_tool"

    def __init__(
        self, name: str, near: str | None, offered: list[str], why: str | None = None
    ) -> None:
        hint = f" {why}" if why else f" Did you mean {near!r}?" if near else ""
        names = ", ".join(offered) or "none"
        self.why = why
        super().__init__(f"There is no tool named {name!r} here.{hint} Tools on offer: {names}.")


class BadInput(ToolFault):
    """The input of a call does not fit the tool's schema; every mistake is listed."""

    code = "call.bad_input"

    def __init__(self, tool: str, problems: list[str]) -> None:
        issue = "issue" if len(problems) == 1 else "issues"
        lines = "\n".join(problems)
        super().__init__(
            f"InputValidationError: {tool} failed due to the following {issue}:\n{lines}",
            data={"problems": problems},
        )


class NotLoaded(ToolFault):
    """The input is wrong and the model had not got the schema; the result contains it."""

    code = "call.not_loaded"

    def __init__(
        self, tool: str, description: str, schema: dict[str, Any], problems: Sequence[str]
    ) -> None:
        import msgspec

        shown = msgspec.json.encode(schema).decode()
        listed = "\n".join(problems)
        super().__init__(
            f"{tool} was called before its schema was loaded, and the input does not fit; nothing "
            f"was done:\n{listed}\nThe schema is loaded now; call it again with an input that "
            f"fits.\n{description}\nInput: {shown}",
            data={
                "name": tool,
                "description": description,
                "inputSchema": schema,
                "problems": list(problems),
            },
        )


class BadLine(ToolFault):
    """A line of `handaxe run` is not a call."""

    code = "call.bad_line"


class Cancelled(ToolFault):
    """The call was stopped before it finished."""

    code = "call.cancelled"

    def __init__(self, *, started: bool, writing: str | None = None) -> None:
        """`writing` is a file for which the device still needs its time."""
        happened = (
            "It had already started: check what it did before you repeat it."
            if started
            else "It had not started: nothing was changed."
        )
        if writing is not None:
            happened = (
                f"{writing} is still being written, because the device is slow. It ends up with "
                "the old or the new content. Read it before you change it again."
            )
        super().__init__(f"The call was cancelled. {happened}")


class CallInterrupted(ToolFault):
    """The process ended during the call: a crash, a kill or a power cut."""

    code = "call.interrupted"

    def __init__(self, *, started: bool) -> None:
        happened = (
            "It had already started: check what it did before you repeat it."
            if started
            else "It had not started: nothing was changed."
        )
        super().__init__(f"handaxe ended before this call did, by a crash or a kill. {happened}")


class Deferred(ToolFault):
    """The call was deferred; it runs when the run continues."""

    code = "call.deferred"

    def __init__(self, sentence: str = "A hook deferred the call, so it did not run.") -> None:
        super().__init__(sentence)

    @classmethod
    def behind(cls, call_id: str) -> Self:
        """An earlier call that it must not overtake waits for an answer."""
        return cls(
            f"The call comes after the call {call_id}, which waits for an answer: it did not run."
        )


class TimedOut(ToolFault):
    """The call exceeded the timeout of its tool."""

    code = "call.timed_out"

    def __init__(self, tool: str, timeout_s: float, *, is_stopped: bool = True) -> None:
        end = "was stopped" if is_stopped else "could not be stopped: it may still be at work"
        super().__init__(
            f"{tool} did not finish within {timeout_s:g} s and {end}. "
            "Ask for less at a time, or check what it had done before you repeat it."
        )


class NestedCall(ToolFault):
    """A nested call cannot run inside its parent."""

    code = "call.nested"

    @classmethod
    def for_cycle(cls, call: "ToolCall", blocker: "ToolCall", parent: "ToolCall | None") -> Self:
        """`call` would have to wait for `blocker`, which ends only after `parent`."""
        inside = "" if parent is None else f" inside {_name_call(parent)}"
        waited = "that call" if parent is None else parent.tool
        return cls(
            f"{_name_call(call)} cannot run{inside}: it would have to wait for "
            f"{_name_call(blocker)}, which waits for {waited} to end. Nothing was done. "
            f"Call it again when {blocker.tool} has ended.",
            data={
                "call_id": call.id,
                "waits_for": blocker.id,
                "parent_id": None if parent is None else parent.id,
            },
        )

    @classmethod
    def for_depth(cls, call: "ToolCall", limit: int) -> Self:
        """Too many calls are inside each other, as where a hook calls the tool that it is for."""
        return cls(
            f"{_name_call(call)} would be inside {limit} other calls, which is the limit: nothing "
            "was done. A tool, hook or callback that makes calls must not do so for the calls "
            "that it makes itself.",
            data={"call_id": call.id, "limit": limit},
        )


def _name_call(call: "ToolCall") -> str:
    return f"{call.tool!s:.64} ({call.id!s:.64})"


class ToolFailed(ToolFault):
    """The tool failed without a code of its own."""

    code = "call.failed"
    no_words = "The tool failed and does not say why. Try another way."


class ResultLost(
    TemplateFault,
    code="call.result_lost",
    sentence=(
        "The call {call_id!r} was made before and is not repeated, but its result is lost: "
        "{reason}. Check what it did. To make it again, use another id."
    ),
):
    """The call was made before, and its result is lost."""


class InternalError(ToolFault):
    """A bug of handaxe or of a tool; the traceback is in the log, not in the result."""

    code = "internal.error"

    def __init__(self, tool: str, error: BaseException) -> None:
        what = ": ".join(filter(None, (type(error).__name__, describe_error(error))))
        super().__init__(
            f"{tool} failed because of an internal error ({what}). "
            "This is a bug of the tool, not of your input; try another way."
        )


class BadOutput(ToolFault):
    """The data of a tool does not fit the output type that it declares."""

    code = "internal.bad_output"

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        super().__init__(
            f"{tool} gave data that does not fit its output type: {'; '.join(problems)}. The call "
            "was made. This is a bug of the tool, not of your input; check what it did.",
            data={"problems": list(problems)},
        )


class SystemFailed(ToolFault):
    """The machine failed, not the tool: a broken device, no space, no thread, too many files."""

    code = "system.failed"

    def __init__(self, tool: str, error: BaseException) -> None:
        super().__init__(
            f"{tool} failed because of the machine: {describe_system_error(error)}. "
            "Remove the cause, then try again."
        )


_NO_THREAD = "can't start new thread"
_SYSTEM_ERRORS = frozenset(
    {
        errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE,
        errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.ENODEV,
    }
)  # fmt: skip


def is_system_error(error: BaseException) -> bool:
    """Whether the machine is the cause, whatever was asked of it."""
    if isinstance(error, OSError):
        return error.errno in _SYSTEM_ERRORS
    return isinstance(error, RuntimeError) and _NO_THREAD in describe_error(error)


def describe_system_error(error: BaseException) -> str:
    """The system's error message and the file it is about."""
    if not isinstance(error, OSError):
        return describe_error(error)
    named = f" ({error.filename!r})" if error.filename is not None else ""
    return f"{(error.strerror or str(error)).lower()}{named}"


class Asked(ToolFault):
    """The call needs the approval of a user, and no user can be asked."""

    code = "permission.asked"


class AnswerPending(ToolFault):
    """A user will answer later; until then the call waits."""

    code = "permission.pending"

    def __init__(self, call_id: str, reason: str) -> None:
        super().__init__(
            f"The call {call_id} did not run: it waits for an answer. Give the answer under this "
            f"id. {reason}"
        )


LEFT_OPEN = frozenset({Deferred.code, AnswerPending.code})
"""Codes of calls that did not run and still can, under the same id."""


class NotPending(SetupError, ToolFault):
    """The answer names a call that does not wait for one."""

    code = "permission.not_pending"

    def __init__(self, call_id: object, why: str, waiting: Iterable[str]) -> None:
        listed = ", ".join(waiting)
        told = f"Calls that wait for an answer: {listed}." if listed else "No call waits for one."
        super().__init__(f"The call {call_id!r:.100} waits for no answer: {why}. {told}")


class BadAnswer(SetupError, ToolFault):
    """The answer to a permission question is invalid."""

    code = "permission.bad_answer"


class Denied(ToolFault):
    """A rule, a mode or a user refused the call."""

    code = "permission.denied"


class HookBlocked(ToolFault):
    """A hook stopped the call before it ran."""

    code = "hook.blocked"


class BadPath(ToolFault):
    """No file can have this path."""

    code = "file.bad_path"
