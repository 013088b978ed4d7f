"""How well a model edits in each format, and what that costs in tokens.

    python bench/edit_formats.py --model claude-...            # needs the vendor's key
    OPENAI_BASE_URL=http://localhost:8080/v1 \\
        python bench/edit_formats.py --model openai/NAME       # any Chat Completions server
    python bench/edit_formats.py --model perfect               # a script that makes no mistake

Every task is a case of the edit corpus that all formats can say: a model is told which lines have
to become which, shown the file as Read shows it, and asked for one call of the format's tool. The
call is made by handaxe; a refusal is told to the model, which may try again. A task counts by the
bytes of the file in the end. `perfect` sends what `corpus/formats.py` makes of the case, so it
shows what a format costs at least.

Tokens are those that the model reports, over all attempts of a task; where it reports none they
are estimates. Prints a table, an entry for `corpus/models.toml`, and the line for the settings if
the tasks were enough to decide.
"""

import argparse
import asyncio
import base64
import difflib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from math import inf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))

import formats
import run
import table

from handaxe import Session
from handaxe.contract.content import TextBlock
from handaxe.contract.messages import (
    AssistantMessage,
    Message,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import (
    MessageEnded,
    Model,
    ModelEvent,
    ModelFailed,
    ModelRequest,
    ToolEnded,
    ToolSpec,
    ToolStarted,
)
from handaxe.models.factory import open_model
from handaxe.text.tokens import estimate_tokens

SYSTEM = "You change files exactly as you are told, with the one tool that you have."
MAX_TOKENS = 4_000
COLUMNS = (
    "tasks", "landed", "refused", "missed", "wrong_place", "wrong_text", "tokens_in", "tokens_out",
)  # fmt: skip
Case = dict[str, Any]


class Perfect(Model):
    """Sends the right call at once."""

    name = "perfect"

    def __init__(self) -> None:
        self.call: dict[str, Any] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The one call."""
        name = request.tools[0].name
        yield ToolStarted("c1", name)
        yield ToolEnded("c1", name, self.call)
        yield MessageEnded("tool_use", TokenUsage())


def tasks(count: int) -> list[Case]:
    """Cases that should land and that every format can say, spread evenly over the corpus."""
    fit = [
        case
        for case in run.load()
        if run.after(case) is not None
        and not case["replace_all"]
        and all(formats.sent(case, name) for name in table.FORMATS)
    ]
    count = min(count, len(fit))
    return [fit[at * len(fit) // count] for at in range(count)]


def told(case: Case, shown: str, tool: str) -> str:
    """What a model is asked: whole lines that have to become others, and the file."""
    right = run.after(case)
    assert right is not None
    old = formats.lines_of(formats.decoded(case["before"]))
    new = formats.lines_of(formats.decoded(right))
    changes = [
        code
        for code in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    # One line more on each side says where lines belong that are only added.
    first, last = max(changes[0][1] - 1, 0), min(changes[-1][2] + 1, len(old))
    until = len(new) - (len(old) - last)
    before, after = "\n".join(old[first:last]), "\n".join(new[first:until])
    return (
        f"Read({formats.PATH}) shows:\n{shown}\n\nIn {formats.PATH} these lines:\n```\n{before}\n"
        f"```\nhave to become:\n```\n{after}\n```\nChange nothing else. Call {tool} once."
    )


async def said(model: Model, request: ModelRequest) -> tuple[ToolEnded | None, TokenUsage]:
    """The call that a model makes, if it makes one, and what it cost."""
    call: ToolEnded | None = None
    usage = TokenUsage()
    async for event in model.stream(request):
        if isinstance(event, ToolEnded) and call is None:
            call = event
        elif isinstance(event, MessageEnded):
            usage = event.usage
    return call, usage


class Run:
    """One model through the tasks in one format."""

    def __init__(self, model: Model, name: str, attempts: int) -> None:
        self._model, self._name, self._attempts = model, name, attempts
        self.counts: Counter[str] = Counter()
        self.tokens = {"tokens_in": 0, "tokens_out": 0}
        self.is_estimated = False

    async def take(self, case: Case) -> str:
        """One task; how it ended."""
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder, "project")
            file = project / formats.PATH
            file.parent.mkdir(parents=True)
            file.write_bytes(case["before"])
            async with Session(
                project,
                home=Path(folder, "home"),
                tools="Read,Edit",
                settings={"edit": {"format": self._name}},
                permission_mode="acceptEdits",
                setting_sources=(),
            ) as session:
                await self._talk(session, case)
            made = base64.b64encode(file.read_bytes()).decode()
        if base64.b64decode(made) == case["before"]:
            return "missed"
        verdict = run.judge(case, {"after_base64": made})
        # Whole lines were asked for: what reaches beyond them is a wrong place.
        return "wrong_place" if verdict == "outside_changed" else verdict

    async def _talk(self, session: Session, case: Case) -> None:
        shown = (await session.call("Read", file_path=formats.PATH)).text
        [spec] = [tool for tool in session.tools(provider="anthropic") if tool["name"] != "Read"]
        tool = ToolSpec(
            name=spec["name"],
            description=spec["description"],
            input_schema=spec["input_schema"],
        )
        if isinstance(self._model, Perfect):
            self._model.call = formats.sent(case, self._name) or {}
        asked = told(case, shown, tool.name)
        messages: list[Message] = [UserMessage((TextBlock(asked),))]
        for _ in range(self._attempts):
            request = ModelRequest(
                system=(SYSTEM,),
                messages=tuple(messages),
                tools=(tool,),
                tool_choice=tool.name,
                max_tokens=MAX_TOKENS,
            )
            call, usage = await said(self._model, request)
            self._count(request, call, usage)
            if call is None:
                return
            given = call.input if isinstance(call.input, dict) else {}
            result = await session.call(call.name, given)
            if result.ok:
                return
            self.counts["refused"] += 1
            sys.stderr.write(f"     {self._name:8} {result.code}\n")
            answer = ToolResultBlock(call.id, (TextBlock(result.text),), is_error=True)
            messages.append(AssistantMessage((ToolUseBlock(call.id, call.name, given),)))
            messages.append(UserMessage((answer,)))

    def _count(self, request: ModelRequest, call: ToolEnded | None, usage: TokenUsage) -> None:
        read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if read:
            self.tokens["tokens_in"] += read
            self.tokens["tokens_out"] += usage.output_tokens
            return
        self.is_estimated = True
        said = json.dumps(call.input if call else "", ensure_ascii=False)
        self.tokens["tokens_in"] += estimate_tokens(_as_text(request))
        self.tokens["tokens_out"] += estimate_tokens(said)

    def row(self) -> dict[str, Any]:
        """The counts; tokens per task."""
        done = self.counts["tasks"]
        per_task = {key: round(value / done, 1) for key, value in self.tokens.items()}
        return {**{key: self.counts[key] for key in COLUMNS}, **per_task}


def _as_text(request: ModelRequest) -> str:
    texts = [*request.system]
    for message in request.messages:
        texts += [block.text for block in message.content if isinstance(block, TextBlock)]
    for tool in request.tools:
        texts += [tool.name, tool.description, json.dumps(tool.input_schema)]
    return "\n".join(texts)


async def measure(
    model: Model, count: int, attempts: int, minutes: float = inf
) -> tuple[dict[str, Any], bool]:
    """A row for each format, and whether tokens are estimates; formats take turns.

    No task begins after so many minutes.
    """
    runs = {name: Run(model, name, attempts) for name in table.FORMATS}
    began = time.monotonic()
    for number, case in enumerate(tasks(count), 1):
        if time.monotonic() - began > 60 * minutes:
            break
        for name, one in runs.items():
            verdict = await one.take(case)
            one.counts.update(["tasks", verdict])
            sys.stderr.write(f"{number:4} {name:8} {verdict:12} {case['family']}/{case['id']}\n")
    rows = {name: one.row() for name, one in runs.items()}
    return rows, any(one.is_estimated for one in runs.values())


def as_table(rows: dict[str, Any]) -> str:
    """The rows for people."""
    lines = [f"{'':10}" + "".join(f"{column:>13}" for column in COLUMNS)]
    lines += [
        f"{name:10}" + "".join(f"{row[column]:>13}" for column in COLUMNS)
        for name, row in rows.items()
    ]
    return "\n".join(lines) + "\n"


def as_toml(model: str, rows: dict[str, Any], *, is_estimated: bool) -> str:
    """The rows as an entry of `corpus/models.toml`."""
    lines = ["[[measured]]", f"model = {json.dumps(model.rpartition('/')[2])}"]
    if is_estimated:
        lines.append('note = "tokens are estimates"')
    for name, row in rows.items():
        fields = ", ".join(f"{key} = {row[key]}" for key in COLUMNS)
        lines.append(f"formats.{name} = {{ {fields} }}")
    return "\n".join(lines) + "\n"


def advice(model: str, rows: dict[str, Any]) -> str:
    """What the measurement says about the settings."""
    name = model.rpartition("/")[2]
    best = table.best({"model": name, "formats": rows})
    if best is None:
        return (
            f"# This decides nothing: it takes {table.MIN_TASKS} tasks, one that landed, and no "
            "wrong place.\n"
        )
    setting = {"edit": {"formats": {name: best}}}
    return f"# In your settings:\n# {json.dumps(setting)}\n"


async def main() -> int:
    """Measures one model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True, help="as for handaxe, or `perfect`")
    parser.add_argument("--tasks", type=int, default=40, help="how many tasks (default 40)")
    parser.add_argument("--attempts", type=int, default=2, help="calls per task (default 2)")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no task after that")
    options = parser.parse_args()
    model = Perfect() if options.model == "perfect" else open_model(options.model)
    try:
        rows, is_estimated = await measure(model, options.tasks, options.attempts, options.minutes)
    except ModelFailed as failed:
        sys.stderr.write(f"{failed.sentence}\n")
        return 1
    finally:
        await model.close()
    sys.stdout.write(as_table(rows) + "\n")
    if isinstance(model, Perfect):
        return 0
    sys.stdout.write(as_toml(model.name, rows, is_estimated=is_estimated) + "\n")
    sys.stdout.write(advice(model.name, rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
