"""A final answer that must match a JSON Schema, given through a tool.

The first success ends the run. A mismatch is answered with all mistakes, a few times.
"""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import msgspec

from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    MessageAdded,
    RunFinished,
    Subtype,
    TerminalReason,
)
from handaxe.agent.limits import LimitReached, Meter
from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision, PermissionRequest
from handaxe.contract.effects import Effects
from handaxe.contract.events import RunEnded
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.model import Failure, ModelFailed
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool


class RunResult(msgspec.Struct, frozen=True):
    """Why a run ended."""

    reason: TerminalReason
    result: str
    subtype: Subtype = "success"
    is_error: bool = False
    stop_reason: str | None = None
    output: Any = None
    errors: tuple[str, ...] = ()
    deferred: ToolCall | None = None
    status: int | None = None
    failure: Failure | None = None


def make_limit_result(reached: LimitReached) -> RunResult:
    """The result when a limit ends the work."""
    said = reached.sentence
    return RunResult(reached.reason, said, subtype=reached.subtype, is_error=True, errors=(said,))


def make_aborted_result(said: str, *, had_calls: bool) -> RunResult:
    """The result when the work was stopped."""
    reason = "aborted_tools" if had_calls else "aborted_streaming"
    return RunResult(reason, said, subtype="error_during_execution", is_error=True, errors=(said,))


def make_failure_result(failed: ModelFailed) -> RunResult:
    """The result when the model gave no answer."""
    reason = "prompt_too_long" if failed.failure == "too_long" else "model_error"
    said = failed.sentence
    return RunResult(
        reason,
        said,
        is_error=True,
        errors=(said,),
        status=failed.status,
        failure=failed.failure,
    )


def make_deferred_result(call: ToolCall, said: str) -> RunResult:
    """The result when the work stops before a call, to continue later."""
    return RunResult("tool_deferred", said, stop_reason="tool_deferred", deferred=call)


def make_pending_result(count: int, said: str, *, has_prompt: bool) -> RunResult:
    """The result when calls wait for the user."""
    ending = RunResult("permission_pending", said, stop_reason="tool_deferred")
    if not has_prompt:
        return ending
    what = "1 call waits" if count == 1 else f"{count} calls wait"
    lost = f"The prompt was not sent: {what} for an answer. Give the answers, then send it again."
    return msgspec.structs.replace(ending, result=lost, is_error=True, errors=(lost,))


def make_unavailable_result(call: ToolCall) -> RunResult:
    """The result when the waiting call cannot run here; it stays waiting."""
    said = f"The deferred call needs the tool {call.tool}, which is not available now."
    reason = "tool_deferred_unavailable"
    return RunResult(reason, said, stop_reason=reason, is_error=True, errors=(said,), deferred=call)


def find_denied_results(event: AgentEvent) -> list[ToolResult]:
    """The refused calls in an event, including a subagent's."""
    while isinstance(event, FromAgent):
        event = event.event
    answered = event.results if isinstance(event, MessageAdded) else ()
    return [result for result in answered if (result.code or "").startswith("permission.")]


def build_run_finished(
    ending: RunResult,
    meter: Meter,
    session_id: str,
    denials: Sequence[ToolResult],
    pending: Sequence[PermissionRequest],
) -> RunFinished:
    """The last event of a run."""
    return RunFinished(
        subtype=ending.subtype,
        is_error=ending.is_error,
        terminal_reason=ending.reason,
        result=ending.result,
        session_id=session_id,
        turns=meter.turns,
        stop_reason=ending.stop_reason,
        structured_output=ending.output,
        usage=meter.usage,
        model_usage=dict(meter.by_model),
        cost_usd=meter.cost_usd,
        duration_ms=round(meter.elapsed_s * 1000, 3),
        model_ms=round(meter.model_s * 1000, 3),
        denials=tuple(denials),
        errors=ending.errors,
        pending=tuple(pending),
        deferred_call=ending.deferred,
        error_status=ending.status,
        failure=ending.failure,
    )


def build_run_ended(last: RunFinished) -> RunEnded:
    """The log entry for the end of a run."""
    return RunEnded(
        subtype=last.subtype,
        terminal_reason=last.terminal_reason,
        turns=last.turns,
        usage=last.usage,
        cost_usd=last.cost_usd,
        errors=last.errors,
    )


NAME = "StructuredOutput"
_ALIAS = "SyntheticOutput"
_NAMES = NAME, _ALIAS
MAX_FAILURES = 5
_WRAPPED = "result"
_MAX_PROBLEMS = 20


class FinalOutput:
    """The required form, and the given answer."""

    def __init__(self, schema: dict[str, Any], *, max_failures: int = MAX_FAILURES) -> None:
        self._schema = schema
        self._max_failures = max_failures
        self._is_wrapped = schema.get("type", "object") != "object"
        self._validator = _build_validator(schema)
        self._failures = 0
        self.is_given = False
        self.value: Any = None

    def start(self) -> None:
        """Expect a new answer for a new run."""
        self._failures = 0
        self.reject()

    def reject(self) -> None:
        """Forget an answer that was not final; it does not count as a failure."""
        self.is_given = False
        self.value = None

    @property
    def text(self) -> str:
        """The answer as JSON."""
        return msgspec.json.encode(self.value).decode()

    @property
    def is_hopeless(self) -> bool:
        """Whether the attempts are used up."""
        return self._failures >= self._max_failures

    def heard(self, results: Sequence[ToolResult]) -> bool:
        """Whether the answer was given; counts an invalid one."""
        tried = [result for result in results if result.tool in _NAMES]
        self._failures += bool(tried) and not any(result.ok for result in tried)
        return self.is_given

    def demand(self) -> str:
        """The message to a model that ends without the answer; counts as a failure."""
        self._failures += 1
        return f"Give your final answer by calling {NAME} now, with input that fits its schema."

    def ending(self) -> RunResult:
        """How a run ends without a valid answer."""
        said = f"The model gave no output that matches the schema in {self._failures} attempts."
        return RunResult(
            "structured_output_retry_exhausted",
            said,
            subtype="error_max_structured_output_retries",
            is_error=True,
            errors=(said,),
        )

    def tool(self) -> Tool[Any]:
        """The tool to add to the session's tools."""
        made = type(NAME, (_StructuredOutput,), {"name": NAME, "output": self})
        made.args_type = self
        return made()

    def model_json_schema(self) -> dict[str, Any]:
        """The input schema of the tool; types other than objects are wrapped."""
        schema = copy.deepcopy(self._schema)
        if not self._is_wrapped:
            return {"type": "object", **schema}
        definitions = {key: schema.pop(key) for key in ("$defs",) if key in schema}
        return {
            "type": "object",
            "properties": {_WRAPPED: schema},
            "required": [_WRAPPED],
            **definitions,
        }

    def model_validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """The input if it is valid; raises `ValueError` with every mistake."""
        value: Any = given[_WRAPPED] if self._is_wrapped else given
        errors = [
            f"{'/'.join(map(str, error.instance_path)) or 'the whole'}: {error.message}"
            for error, _ in zip(
                self._validator.iter_errors(value), range(_MAX_PROBLEMS), strict=False
            )
        ]
        if errors:
            raise ValueError("It does not match the schema: " + "; ".join(errors))
        return given

    def take(self, given: dict[str, Any]) -> None:
        """Store the answer."""
        self.value = given[_WRAPPED] if self._is_wrapped else given
        self.is_given = True


class _StructuredOutput(Tool[Any]):
    """Gives a final answer in the requested form."""

    name = NAME
    aliases = (_ALIAS,)
    search_hint = "give the final answer as structured data"
    effects = Effects.on_state("final output")
    always_load = True
    output: ClassVar[FinalOutput]

    def prompt(self) -> str:
        return (
            "Gives your final answer as data that matches the schema of its input. Call "
            "it once, when everything else is done; it ends the work."
        )

    async def decide(self, args: Any, ctx: ToolContext) -> Decision | None:  # noqa: ANN401, ARG002
        return Allow("the final answer changes nothing")

    async def call(self, args: Any, ctx: ToolContext) -> ToolResult:  # noqa: ANN401, ARG002
        if self.output.is_given:
            return ToolResult("The final answer was already given; the first one counts.")
        self.output.take(cast("dict[str, Any]", args))
        return ToolResult("The final answer was accepted.", data={"output": self.output.value})


def _build_validator(schema: dict[str, Any]) -> Any:  # noqa: ANN401 - an untyped library's
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema)
    except (ValueError, TypeError) as error:
        raise SetupError(f"The output schema is not a valid JSON Schema: {error}") from None
