"""The options of the agent, headless or at a terminal."""

import argparse
import math
from collections.abc import Mapping, Sequence

from handaxe.contract.decision import Allow, Defer, Deny, PermissionRequest
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.session_options import add_session_options
from handaxe.frontends.cli.variadic_options import check_prompt, expand_variadic_options
from handaxe.permission.prompts import OnAsk
from handaxe.text.escape import find_closest_name

WAIT_VARIABLE = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
_AGENTS_S = 600.0
_COMMANDS_S = 120.0
"""As long as a command may take in the foreground; a server would hold the run for ever."""

_WITHOUT_EFFECT = (
    "--betas", "--task-budget", "--thinking", "--thinking-display", "--plugin-dir",
)  # fmt: skip
_FLAGS_WITHOUT_EFFECT = (
    "--session-mirror", "--allow-dangerously-skip-permissions",
)  # fmt: skip
_SILENT = {"allow_dangerously_skip_permissions", "thinking"}


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Declare everything `handaxe` takes when no command is named."""
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do")
    parser.add_argument(
        "-p", "--print", action="store_true", help="answer once without a terminal, then stop"
    )
    parser.add_argument("--model", metavar="NAME", help="who answers, such as openai/NAME")
    parser.add_argument("--fallback-model", metavar="NAMES",
                        help="who answers instead, where the model has no room")  # fmt: skip
    parser.add_argument("--record", metavar="FILE",
                        help="add what is asked and answered to FILE, for --model replay:FILE"
                        )  # fmt: skip
    parser.add_argument("--effort", metavar="LEVEL", help="how hard to try: low, medium, high")
    parser.add_argument("--max-turns", type=int, metavar="N", help="most rounds of tool calls")
    parser.add_argument("--max-budget-usd", type=float, metavar="USD", help="most money to spend")
    parser.add_argument("--max-total-tokens", type=int, metavar="N",
                        help="most tokens in and out, over all answers and sub-agents"
                        )  # fmt: skip
    parser.add_argument("--prices", metavar="FILE|JSON",
                        help="what models cost, in dollars for a million tokens: "
                        '{"NAME": {"input": 3, "output": 15}}')  # fmt: skip
    parser.add_argument("--max-thinking-tokens", type=int, metavar="N", help="room for thoughts")
    parser.add_argument("--background-wait", type=float, metavar="SECONDS",
                        help="most time -p waits for background work after its answer "
                        "(600 for agents, 120 for commands)")  # fmt: skip
    parser.add_argument("--json-schema", metavar="JSON", help="the final answer has to fit this")
    parser.add_argument("--agent", metavar="TYPE", help="which type of agent leads the session")
    parser.add_argument("--agents", metavar="JSON", help="types of agents for this run")
    parser.add_argument("-w", "--worktree", nargs="?", const="", metavar="NAME",
                        help="work in a git worktree of the project")  # fmt: skip
    add_prompt_options(parser)
    _add_formats(parser)
    _add_sessions(parser)
    group = parser.add_argument_group("more")
    group.add_argument("--dangerously-skip-permissions", action="store_true",
                       help="never ask (--permission-mode bypassPermissions)")  # fmt: skip
    group.add_argument("--permission-prompt-tool", metavar="stdio|TOOL",
                       help="who answers permission questions of a headless run")  # fmt: skip
    group.add_argument("--defer-permissions", action="store_true",
                       help="end a headless run where a call needs a yes; --answer gives it later"
                       )  # fmt: skip
    group.add_argument("--answer", action="append", default=[], metavar="CALL_ID=allow|deny[:WHY]",
                       help="answer a call that waits, with -p and --resume; can be repeated"
                       )  # fmt: skip
    group.add_argument("--disable-slash-commands", action="store_true",
                       help="no skills; `/name` in a prompt is plain text")  # fmt: skip
    group.add_argument("--verbose", action="store_true", help="tell every call on standard error")
    group.add_argument("--debug", action="store_true", help="log what happens inside")
    group.add_argument("--debug-file", metavar="FILE", help="the same, into a file")
    group.add_argument("--bare", action="store_true",
                       help="use nothing but what is given here, and only Bash, Read and Edit"
                       )  # fmt: skip
    group.add_argument("--safe-mode", action="store_true",
                       help="settings count, but no instructions, skills, agents, hooks, servers"
                       )  # fmt: skip
    add_session_options(parser)
    for name in _WITHOUT_EFFECT:
        parser.add_argument(name, help=argparse.SUPPRESS, action="append")
    for name in _FLAGS_WITHOUT_EFFECT:
        parser.add_argument(name, help=argparse.SUPPRESS, action="store_true")


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Declare what changes the system prompt."""
    group = parser.add_argument_group("system prompt")
    group.add_argument("--system-prompt", metavar="TEXT", help="in place of ours")
    group.add_argument("--system-prompt-file", metavar="FILE", help="the same from a file")
    group.add_argument("--append-system-prompt", metavar="TEXT", help="after ours")
    group.add_argument("--append-system-prompt-file", metavar="FILE", help="the same from a file")
    group.add_argument("--append-subagent-system-prompt", metavar="TEXT",
                       help="after the prompts of sub-agents")  # fmt: skip


def _add_formats(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("headless")
    formats = ("text", "json", "stream-json")
    group.add_argument("--output-format", choices=formats, default="text", help="what is printed")
    group.add_argument(
        "--input-format", choices=("text", "stream-json"), default="text", help="what is read"
    )
    for name, text in (
        ("--include-partial-messages", "stream-json: every piece of an answer as it comes"),
        ("--include-hook-events", "stream-json: what hooks did"),
        ("--include-call-display", "stream-json: how calls look, as blocks to show"),
        ("--replay-user-messages", "stream-json: repeat what was said to the agent"),
        ("--forward-subagent-text", "stream-json: also what sub-agents say"),
        ("--prompt-suggestions", "stream-json: what the person may say next, after each turn"),
    ):
        group.add_argument(name, action="store_true", help=text)


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("conversations")
    group.add_argument("-c", "--continue", dest="continue_", action="store_true",
                       help="go on with the last conversation in this project")  # fmt: skip
    group.add_argument("-r", "--resume", nargs="?", const="", metavar="ID",
                       help="go on with a conversation, by its id or name")  # fmt: skip
    group.add_argument("-n", "--name", metavar="NAME",
                       help="a name to find this conversation by")  # fmt: skip
    group.add_argument("--resume-session-at", metavar="UUID",
                       help="go on after this message, and forget what followed it")  # fmt: skip
    group.add_argument("--resume-drops-turn", metavar="UUID",
                       help="... only if nothing but this prompt's turn is forgotten")  # fmt: skip
    group.add_argument("--rewind-files", metavar="UUID",
                       help="put files back to how they were when this was said, then stop"
                       )  # fmt: skip
    group.add_argument("--fork-session", action="store_true",
                       help="go on under a new id, and leave the old one as it is")  # fmt: skip
    group.add_argument("--init", action="store_true",
                       help="headless: run the hooks at `Setup` before the session")  # fmt: skip
    group.add_argument("--init-only", action="store_true",
                       help="run the hooks at `Setup` and `SessionStart`, then stop")  # fmt: skip
    group.add_argument("--maintenance", action="store_true",
                       help="headless: the same as --init, for upkeep")  # fmt: skip
    group.add_argument("--no-session-persistence", action="store_true",
                       help="keep nothing of this run")  # fmt: skip


def parse_agent_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """The options; a flag that nobody knows names the nearest one."""
    words = ["--debug" if word.startswith("--debug=") else word for word in argv]
    arguments, strange = parser.parse_known_intermixed_args(expand_variadic_options(words))
    if strange:
        raise SetupError(_explain_unknown_option(strange[0], _list_flags(parser)))
    check_prompt(words, arguments.prompt)
    return arguments


def list_ignored_options(arguments: argparse.Namespace) -> list[str]:
    """Flags that were given and change nothing here."""
    names = (*_WITHOUT_EFFECT, *_FLAGS_WITHOUT_EFFECT)
    fields = {name: name[2:].replace("-", "_") for name in names}
    return [
        name for name, field in fields.items() if getattr(arguments, field) and field not in _SILENT
    ]


def _list_flags(parser: argparse.ArgumentParser) -> list[str]:
    words = parser.format_usage().replace("[", " ").replace("]", " ").split()
    return [word for word in words if word.startswith("--")]


def _explain_unknown_option(word: str, known: Sequence[str]) -> str:
    name = word.partition("=")[0]
    near = find_closest_name(name, [flag for flag in known if flag.startswith("--")])
    hint = f" Did you mean {near}?" if near else ""
    return f"There is no option {name}.{hint} `handaxe --help` lists them."


async def _defer_question(_request: PermissionRequest) -> Defer:
    """Whoever started the run answers when it has ended."""
    return Defer()


def choose_on_ask(arguments: argparse.Namespace) -> OnAsk | None:
    """Who answers permission questions where nobody else does."""
    return _defer_question if arguments.defer_permissions else None


def parse_answers(given: Sequence[str]) -> dict[str, Allow | Deny]:
    """What `--answer` says, by the ids of the calls."""
    answers: dict[str, Allow | Deny] = {}
    for text in given:
        call_id, _, word = text.partition("=")
        verdict, _, reason = word.partition(":")
        if not call_id or verdict not in {"allow", "deny"} or call_id in answers:
            what = "names a call twice" if call_id in answers else "is no answer"
            raise SetupError(f"--answer {text!r} {what}. Say CALL_ID=allow or CALL_ID=deny:WHY.")
        kind = Allow if verdict == "allow" else Deny
        answers[call_id] = kind(reason.strip(), by="user")
    return answers


def is_headless(arguments: argparse.Namespace) -> bool:
    """Whether nobody sits at a terminal for this."""
    streams = arguments.input_format == arguments.output_format == "stream-json"
    alone = arguments.rewind_files or arguments.init_only
    return bool(arguments.print or streams or alone)


def read_background_wait(given_s: float | None, env: Mapping[str, str]) -> tuple[float, float]:
    """How many seconds a run waits for agents, and for commands; 0 in the variable is for ever."""
    if given_s is not None:
        if not given_s >= 0:
            raise SetupError("--background-wait takes seconds: 0 or more, or inf.")
        return given_s, given_s
    given_ms = env.get(WAIT_VARIABLE, "")
    if not given_ms.strip().isdecimal():
        return _AGENTS_S, _COMMANDS_S
    wait_s = int(given_ms) / 1000 or math.inf
    return wait_s, wait_s
