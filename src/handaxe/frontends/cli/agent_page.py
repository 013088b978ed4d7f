"""The options of the agent, as data."""

from handaxe.frontends.cli.arguments import (
    AGENT_TYPES,
    HELP,
    PERMISSION_GROUP,
    PROJECT_GROUP,
    PROMPTS,
    SETTINGS_GROUP,
    TOOLS_GROUP,
    Argument,
    CommandPage,
    OptionGroup,
    parse_float,
    parse_int,
)

_PROMPT = Argument("PROMPT", "task for the agent", dest="prompt", nargs="*")
_SKIP_PERMISSIONS = Argument(
    "--dangerously-skip-permissions", "same as --permission-mode bypassPermissions"
)
_VERSION = Argument("-v, --version", "print the version")
_MODEL = (
    Argument(
        "--model NAME",
        "model to use, e.g. sonnet or openai/NAME (any compatible server, address in "
        "OPENAI_BASE_URL)",
    ),
    Argument("--fallback-model NAMES", "models to fall back to when the model is overloaded"),
    Argument("--effort LEVEL", "reasoning effort: low, medium or high"),
    Argument("--max-turns N", "maximum number of agent turns", type=parse_int),
    Argument("--max-budget-usd USD", "maximum cost in USD", type=parse_float),
    Argument(
        "--max-total-tokens N",
        "maximum number of tokens, input and output, subagents included",
        type=parse_int,
    ),
    Argument("--max-thinking-tokens N", "token budget for extended thinking", type=parse_int),
    Argument(
        "--prices FILE|JSON",
        'prices in USD per million tokens: {"NAME": {"input": 3, "output": 15}}',
    ),
    Argument("--record FILE", "record requests and answers to FILE, for --model replay:FILE"),
)
_CONVERSATIONS = (
    Argument(
        "-c, --continue",
        "continue the last conversation in this project",
        dest="continue_",
        action="store_true",
    ),
    Argument("-r, --resume [ID]", "continue a conversation by id or name; see `handaxe sessions`"),
    Argument("-n, --name NAME", "name for this conversation"),
    Argument("--fork-session", "continue in a copy with a new id"),
    Argument("--resume-session-at UUID", "continue from this message and drop the later ones"),
    Argument(
        "--resume-drops-turn UUID", "fail if more than the turn of this prompt would be dropped"
    ),
    Argument("--rewind-files UUID", "restore files to their state at this message, then exit"),
    Argument("--no-session-persistence", "keep nothing of this run on disk"),
    Argument("-w, --worktree [NAME]", "work in a new git worktree of the project"),
)
_HEADLESS = (
    Argument("-p, --print", "print one answer and exit; never asks"),
    Argument(
        "--output-format FORMAT",
        "text (default), json (one object at the end) or stream-json",
        choices=("text", "json", "stream-json"),
        default="text",
    ),
    Argument(
        "--input-format FORMAT",
        "text (default) or stream-json",
        choices=("text", "stream-json"),
        default="text",
    ),
    Argument("--json-schema JSON", "JSON Schema the final answer must match"),
    Argument(
        "--background-wait SECONDS",
        "maximum wait for background work after the answer (default: 600 for agents, "
        "120 for commands)",
        type=parse_float,
    ),
    Argument("--defer-permissions", "end the run at a call that needs permission, exit code 3"),
    Argument(
        "--answer CALL_ID=allow|deny[:WHY]",
        "answer a waiting call, with -p and --resume; repeatable",
        action="append",
    ),
    Argument(
        "--permission-prompt-tool stdio|TOOL",
        "MCP tool that answers permission questions, e.g. mcp__SERVER__TOOL",
    ),
)
_STREAM = (
    Argument("--include-partial-messages", "print parts of an answer as they arrive"),
    Argument("--include-hook-events", "print what hooks did"),
    Argument("--include-call-display", "print display blocks of tool calls"),
    Argument("--replay-user-messages", "print user messages too"),
    Argument("--forward-subagent-text", "print the text of subagents too"),
    Argument("--prompt-suggestions", "print a suggestion for the next prompt after each turn"),
)
_HOOKS = (
    Argument("--init", "with -p: run the Setup hooks before the session"),
    Argument("--init-only", "run the Setup and SessionStart hooks, then exit"),
    Argument("--maintenance", "with -p: run the Setup hooks for maintenance"),
)
_DEBUGGING = (
    Argument("--verbose", "log every tool call to stderr"),
    Argument("--debug", "write a debug log to stderr"),
    Argument("--debug-file FILE", "write the debug log to a file"),
    Argument("--bare", "ignore all settings files, hooks and servers; offer Bash, Read and Edit"),
    Argument(
        "--safe-mode", "keep settings, but ignore instructions, skills, agents, hooks and servers"
    ),
    Argument("--disable-slash-commands", "no skills; `/name` in a prompt is plain text"),
)
IGNORED = (
    *(
        Argument(f"{name} VALUE", "no effect", action="append", default=None)
        for name in (
            "--betas", "--task-budget", "--thinking", "--thinking-display", "--plugin-dir",
        )
    ),
    Argument("--session-mirror", "no effect"),
    Argument("--allow-dangerously-skip-permissions", "no effect"),
)  # fmt: skip
"""Options of other programs that are accepted and change nothing."""

AGENT_PAGE = CommandPage(
    "run a coding agent in your terminal, or one of its tools",
    (
        ("handaxe", "start the agent in this directory"),
        ('handaxe -p "Which functions have no test?"', "print one answer and exit"),
        ("handaxe --continue", "continue the last conversation"),
        ("handaxe call Grep pattern=TODO", "run one tool, without a model"),
    ),
    groups=(
        OptionGroup("Arguments", (_PROMPT,)),
        OptionGroup("Model and limits", _MODEL),
        OptionGroup("One answer without a terminal", _HEADLESS),
        OptionGroup("Conversations", _CONVERSATIONS),
        OptionGroup("Permissions", (*PERMISSION_GROUP.arguments, _SKIP_PERMISSIONS)),
        PROJECT_GROUP,
        TOOLS_GROUP,
        SETTINGS_GROUP,
        OptionGroup("System prompt and agent types", (*PROMPTS, *AGENT_TYPES)),
        OptionGroup("With --output-format stream-json", _STREAM),
        OptionGroup("Hooks", _HOOKS),
        OptionGroup("Debugging", _DEBUGGING),
        OptionGroup("Help", (HELP, _VERSION)),
    ),
    usage=("[OPTIONS] [PROMPT ...]", "COMMAND [OPTIONS]"),
    hidden=IGNORED,
    is_mixed=True,
)
"""`handaxe` without a command. Its commands are added where the help is shown."""
