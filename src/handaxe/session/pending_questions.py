"""Open permission questions, and answers that come later.

The log holds the same events that are taken here, so a question outlives the process that asked.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.events import CallAsked, CallDecided, CallFinished, Compacted
from handaxe.contract.faults import BadAnswer, NotPending

Answers = Mapping[str, Allow | Deny]
"""The user's answers to questions, by call id."""
_MAX_ANSWERED = 1_000


class AskedQuestion(msgspec.Struct):
    """The last question about an unfinished call, and the earlier approved ones."""

    request: PermissionRequest
    digest: str
    session_id: str = ""
    """Which session asked; a copy of it cannot be answered."""
    is_open: bool = True
    accepted: dict[str, Allow] = {}
    """By the digests of earlier questions about the call."""


class PendingQuestions:
    """The questions of one session about calls that have not ended."""

    def __init__(self) -> None:
        self.asked: dict[str, AskedQuestion] = {}
        """By the ids of the calls, the oldest first."""
        self.answers: dict[str, Allow | Deny] = {}
        """The user's new answers, by call id."""
        self.outlive_work = False
        """Whether questions stay open when the work stops, since it is meant to go on later."""
        self.answered: dict[str, None] = {}
        """The last calls that had an answer."""

    @property
    def requests(self) -> tuple[PermissionRequest, ...]:
        """The questions that wait for an answer, the oldest first."""
        return tuple(question.request for question in self.asked.values() if question.is_open)

    def is_open(self, call_id: str) -> bool:
        """Whether a call waits for an answer."""
        question = self.asked.get(call_id)
        return question is not None and question.is_open

    def replay(self, event: object, session_id: str) -> None:
        """An event of the log."""
        match event:
            case CallAsked():
                self.ask(event, session_id)
            case CallDecided():
                self.decide(event)
            case CallFinished():
                self.end(event.call_id)
            case Compacted() if event.trigger == "rewound":
                # Whoever went back dropped what waited for an answer.
                self.asked.clear()
            case _:
                pass

    def ask(self, event: CallAsked, session_id: str = "") -> None:
        """A question was put."""
        if event.request is None:
            return
        before = self.asked.get(event.call_id)
        accepted = {} if before is None else before.accepted
        self.asked[event.call_id] = AskedQuestion(
            event.request, event.digest, session_id, accepted=accepted
        )

    def decide(self, event: CallDecided) -> None:
        """A call was decided about."""
        question = self.asked.get(event.call_id)
        if question is None or not question.is_open:
            return
        question.is_open = False
        if isinstance(event.decision, Allow):
            question.accepted[question.digest] = event.decision
        self._remember(event.call_id)

    def end(self, call_id: str) -> None:
        """A call has its result."""
        question = self.asked.pop(call_id, None)
        if question is not None:
            self._remember(call_id)

    def take_over(self, earlier: "PendingQuestions", session_id: str) -> None:
        """Go on with the questions that an earlier run of this very session left open."""
        self.answered = dict(earlier.answered)
        self.asked = {
            call_id: question
            for call_id, question in earlier.asked.items()
            if question.is_open and question.session_id == session_id
        }

    def check_answers(self, answers: object) -> dict[str, Allow | Deny]:
        """A person's answers by the ids of the calls, if every one can be given.

        Raises:
            BadAnswer: it is not an answer.
            NotPending: no call waits for it.
        """
        if not isinstance(answers, Mapping):
            raise BadAnswer(
                "Answers are given by the ids of the calls, such as {call_id: Allow()}; "
                f"got {answers!r:.100}."
            )
        given = cast("Mapping[object, object]", answers)
        checked = {call_id: _validate_answer(call_id, answer) for call_id, answer in given.items()}
        for call_id in checked:
            if not (isinstance(call_id, str) and self.is_open(call_id)):
                why = (
                    "its question is closed already"
                    if call_id in self.answered
                    else "nothing was asked"
                )
                raise NotPending(call_id, why, [request.call_id for request in self.requests])
        return cast("dict[str, Allow | Deny]", checked)

    def find_answer(self, call_id: str, digest: str) -> Allow | Deny | None:
        """The user's new answer to this question. An answer to another question does not count."""
        question, answer = self.asked.get(call_id), self.answers.pop(call_id, None)
        if answer is None or question is None or question.digest != digest:
            return None
        return answer

    def find_accepted(self, call_id: str, digest: str) -> Allow | None:
        """The approval of exactly this question, from before the open one."""
        question = self.asked.get(call_id)
        return None if question is None else question.accepted.get(digest)

    def _remember(self, call_id: str) -> None:
        self.answered[call_id] = None
        if len(self.answered) > _MAX_ANSWERED:
            del self.answered[next(iter(self.answered))]


def _validate_answer(call_id: object, answer: object) -> Allow | Deny:
    if not isinstance(answer, Allow | Deny):
        raise BadAnswer(
            f"The answer to the call {call_id!r:.100} has to be Allow() or Deny(), "
            f"not {answer!r:.100}."
        )
    try:
        # Types alone keep no host from giving other parts.
        return msgspec.convert(msgspec.to_builtins(answer), type(answer))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadAnswer(f"The answer to the call {call_id!r:.100} is invalid: {error}.") from None


def compute_question_digest(request: PermissionRequest, facts: Iterable[Any]) -> str:
    """The digest that an answer is bound to: of the whole request and the facts behind it."""
    import hashlib

    own = tuple(one for one in request.definitions if one.tool == request.tool)
    asked = msgspec.structs.replace(
        request, call_id="", proposals=(), suggestions=(), remarks=(), definitions=own
    )
    from handaxe.text.sanitize import to_safe_text

    value = (asked, tuple(facts))
    try:
        encoded = msgspec.json.encode(value, order="deterministic")
    except Exception:  # noqa: BLE001 - whatever a host's program gave as input
        encoded = to_safe_text(value).encode()
    return hashlib.sha256(encoded).hexdigest()
