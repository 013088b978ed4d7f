"""The commands of the command line as data: what each takes, with examples."""

from handaxe.frontends.cli.arguments import (
    AGENT_TYPES,
    PROMPTS,
    ROOT,
    SESSION_GROUPS,
    SESSION_ID,
    SETTING_SOURCES,
    SETTINGS,
    Argument,
    CommandPage,
    OptionGroup,
    parse_float,
    parse_int,
)

_JSON = Argument("--json", "print JSON")
_RESULT = Argument("--json", "print the result object as JSON")
_HIDDEN_SESSION = tuple(
    one for group in SESSION_GROUPS for one in group.arguments if one not in (ROOT, SESSION_ID)
)
"""Undo and history accept the options of a session, so that a command line can be reused."""


_CLIENT_ROOT = Argument(
    "--root DIR", "project directory (default: the one of the client, or the current directory)"
)
_SERVER_GROUPS = tuple(
    group._replace(arguments=tuple(_CLIENT_ROOT if one is ROOT else one for one in group.arguments))
    for group in SESSION_GROUPS
)


def _options(*arguments: Argument) -> OptionGroup:
    return OptionGroup("Options", arguments)


def _arguments(*arguments: Argument) -> OptionGroup:
    return OptionGroup("Arguments", arguments)


_CALL = CommandPage(
    "run one tool call, without a model",
    (
        ("handaxe call Read file_path=README.md", "print a file"),
        (
            'handaxe call Grep \'{"pattern": "TODO", "-i": true}\' --json',
            "input and result as JSON",
        ),
        ('handaxe call Bash command="make test" --allowedTools Bash', "allow the call"),
    ),
    groups=(
        _arguments(
            Argument("TOOL", "name of the tool; `handaxe tools` lists them", dest="tool"),
            Argument(
                "JSON | KEY=VALUE",
                "input of the tool; put values that begin with a dash after --",
                dest="input",
                nargs="*",
                default=[],
            ),
        ),
        _options(_RESULT),
        *SESSION_GROUPS,
    ),
    about="The call passes permission, hooks and undo, as a call of an agent does.",
    is_mixed=True,
)
_RUN = CommandPage(
    "run many tool calls in one session, JSON lines in and out",
    (
        ("handaxe run calls.jsonl", "run the calls of a file"),
        (
            'echo \'{"id": "1", "tool": "Read", "input": {"file_path": "a.py"}}\' | handaxe run',
            "run a call from standard input",
        ),
    ),
    groups=(
        _arguments(
            Argument(
                "FILE",
                "JSON lines (default: -, standard input)",
                dest="file",
                nargs="?",
                default="-",
            )
        ),
        *SESSION_GROUPS,
    ),
    about='A line is {"id", "tool", "input"} for one call or {"batch": [...]} for calls at once.',
)
_TOOLS = CommandPage(
    "list the tools, or show one tool's schema and prompt",
    (
        ("handaxe tools", "list the tools"),
        ("handaxe tools Edit", "show the prompt and the schema of Edit"),
        ("handaxe tools --json --provider openai", "print definitions for OpenAI"),
    ),
    groups=(
        _arguments(Argument("NAME", "show only this tool", dest="name", nargs="?")),
        _options(
            Argument("--json", "print schemas as JSON"),
            Argument(
                "--provider P",
                "format of the schemas: anthropic, openai, gemini or json-schema (default)",
                default="json-schema",
            ),
        ),
        *SESSION_GROUPS,
    ),
)
_PROMPT = CommandPage(
    "show the system prompt part by part, with sizes",
    (
        ("handaxe prompt", "show the prompt of the agent in this project"),
        ("handaxe prompt --agent Explore --json", "show the prompt of an agent type as JSON"),
    ),
    groups=(
        _options(
            Argument("--json", "print the parts as JSON"),
            *AGENT_TYPES,
            Argument("--model NAME", "model that the prompt is for; it is not called"),
        ),
        OptionGroup("System prompt", PROMPTS),
        *SESSION_GROUPS,
    ),
)
_EXPLAIN = CommandPage(
    "explain whether a command or tool call is allowed, and why",
    (
        ('handaxe explain "git push"', "show why a command is allowed, asks or is refused"),
        ('handaxe explain --tool Edit --input \'{"file_path": "a.py"}\'', "the same for a tool"),
    ),
    groups=(
        _arguments(Argument("COMMAND", "shell command", dest="shell_command", nargs="?")),
        _options(
            Argument("--tool T", "tool to explain instead of Bash"),
            Argument("--input JSON", "input of that tool"),
            Argument("--json", "print the decision as JSON"),
            Argument("--jsonl", "read one request per line of standard input"),
        ),
        *SESSION_GROUPS,
    ),
    usage=(
        "explain COMMAND [OPTIONS]",
        "explain --tool T --input JSON [OPTIONS]",
        "explain --jsonl",
    ),
    about="Nothing is run. The answer names the rule that decides and rules that would allow it.",
)
_SERVER = Argument("NAME", "name of the server", dest="server")
_SCOPE = Argument(
    "-s, --scope SCOPE",
    "local (only you, this project; default), project (everyone, this project) or user "
    "(only you, all projects)",
    choices=("local", "project", "user"),
)
_CHECK = Argument("--check", "connect to the server and report the result")
_MCP_SERVE = CommandPage(
    "serve the tools to another agent over stdio or HTTP",
    (
        ("handaxe mcp", "serve on standard input and output"),
        ("handaxe mcp --http 8080 --root ~/project", "serve a project over HTTP on this machine"),
    ),
    groups=(
        _options(
            Argument("--http PORT", "serve over HTTP on 127.0.0.1; 0: any port", type=parse_int),
            Argument(
                "--token-file FILE",
                "token that HTTP clients must send (default: $HANDAXE_MCP_TOKEN, or a new one)",
            ),
            Argument("--output-schemas", "also list output schemas of built-in tools"),
        ),
        *_SERVER_GROUPS,
    ),
)  # fmt: skip
_MCP = CommandPage(
    "serve the tools to other agents, or manage MCP servers used here",
    (
        ("handaxe mcp", "serve the tools on standard input and output"),
        ("handaxe mcp install claude-code --write", "let Claude Code use the tools"),
        ("handaxe mcp add github https://example.com/mcp", "use an MCP server here"),
        ("handaxe mcp list --check", "list the servers used here and connect to them"),
    ),
    actions={
        "serve": _MCP_SERVE,
        "install": CommandPage(
            "print or write the settings entry that makes a client use the tools",
            (
                ("handaxe mcp install codex", "print the entry and where it belongs"),
                ("handaxe mcp install codex --write", "write it into the settings of Codex"),
            ),
            groups=(
                _arguments(
                    Argument(
                        "CLIENT",
                        "claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf "
                        "or zed",
                        dest="client",
                        nargs="?",
                    )
                ),
                _options(
                    Argument("--write", "change the client's settings file"),
                    Argument("--name NAME", "name of the entry", default="handaxe"),
                ),
                *_SERVER_GROUPS,
            ),
            about="The session options below become part of the entry.",
        ),
        "list": CommandPage(
            "list the MCP servers used here",
            (
                ("handaxe mcp list", "list the servers"),
                ("handaxe mcp list --check", "connect to each and show its state"),
            ),
            groups=(_options(_CHECK, _JSON), *SESSION_GROUPS),
        ),
        "get": CommandPage(
            "show one MCP server",
            (("handaxe mcp get github --check", "connect and list its tools"),),
            groups=(_arguments(_SERVER), _options(_CHECK, _JSON), *SESSION_GROUPS),
        ),
        "add": CommandPage(
            "add an MCP server",
            (
                ("handaxe mcp add docs https://example.com/mcp", "a server at an address"),
                ("handaxe mcp add fs npx -- -y some-mcp-server .", "a program with options"),
            ),
            groups=(
                _arguments(
                    _SERVER,
                    Argument(
                        "URL|COMMAND",
                        "address or command line; put options of the command after --",
                        dest="words",
                        nargs="+",
                    ),
                ),
                _options(
                    _SCOPE,
                    Argument(
                        "-t, --transport KIND",
                        "stdio, http or sse (default: http for an address, else stdio)",
                        choices=("stdio", "http", "sse"),
                    ),
                    Argument(
                        "-e, --env NAME=VALUE", "environment variable; repeatable", action="append"
                    ),
                    Argument(
                        "-H, --header 'NAME: VALUE'", "HTTP header; repeatable", action="append"
                    ),
                    ROOT,
                ),
            ),
            usage=("mcp add [OPTIONS] NAME URL", "mcp add [OPTIONS] NAME COMMAND [-- ARGS ...]"),
            is_mixed=True,
        ),
        "add-json": CommandPage(
            "add an MCP server from its JSON definition",
            (("handaxe mcp add-json fs '{\"command\": \"fs-server\"}'", "add the server fs"),),
            groups=(
                _arguments(_SERVER, Argument("JSON", "its definition", dest="definition")),
                _options(_SCOPE, ROOT),
            ),
        ),
        "remove": CommandPage(
            "remove an MCP server",
            (("handaxe mcp remove docs", "remove the server docs"),),
            groups=(_arguments(_SERVER), _options(_SCOPE, ROOT)),
        ),
        "login": CommandPage(
            "log in to an MCP server in the browser",
            (("handaxe mcp login github", "log in and keep the login"),),
            groups=(
                _arguments(_SERVER),
                _options(Argument("--no-browser", "print the address without opening it")),
                *SESSION_GROUPS,
            ),
        ),
        "logout": CommandPage(
            "delete the login of an MCP server",
            (("handaxe mcp logout github", "delete the login"),),
            groups=(_arguments(_SERVER), *SESSION_GROUPS),
        ),
    },
)  # fmt: skip
_KEY = Argument("KEY", "name of the setting, e.g. read.line_format", dest="key")
_FILE_SCOPE = Argument(
    "--scope SCOPE",
    "settings file: user (all your projects; default), project (shared) or local",
    choices=("user", "project", "local"),
)
_CONFIG_OPTIONS = (_JSON, ROOT, SETTINGS, SETTING_SOURCES)
_CONFIG = CommandPage(
    "show, get or set settings",
    (
        ("handaxe config", "list the settings and the file of each"),
        ("handaxe config set model sonnet", "choose the model for all your projects"),
    ),
    actions={
        "list": CommandPage(
            "list the settings and the file of each",
            (("handaxe config list --json", "list them as JSON"),),
            groups=(_options(*_CONFIG_OPTIONS),),
        ),
        "get": CommandPage(
            "print one setting",
            (("handaxe config get permissions.allow", "print the allow rules"),),
            groups=(_arguments(_KEY), _options(*_CONFIG_OPTIONS)),
        ),
        "set": CommandPage(
            "set one setting",
            (
                ("handaxe config set model openai/gpt-5", "set it for all your projects"),
                ("handaxe config set sandbox.enabled true --scope project", "for this project"),
            ),
            groups=(
                _arguments(_KEY, Argument("VALUE", "JSON or plain text", dest="value")),
                _options(_FILE_SCOPE, *_CONFIG_OPTIONS),
            ),
        ),
        "unset": CommandPage(
            "remove one setting",
            (("handaxe config unset model", "remove it from your settings file"),),
            groups=(_arguments(_KEY), _options(_FILE_SCOPE, *_CONFIG_OPTIONS)),
        ),
        "path": CommandPage(
            "list the settings files",
            (("handaxe config path --scope user", "print the path of your settings file"),),
            groups=(_options(_FILE_SCOPE, *_CONFIG_OPTIONS),),
        ),
    },
)  # fmt: skip
_PERMISSIONS = CommandPage(
    "list the permission rules, or revoke one",
    (
        ("handaxe permissions", "list the rules with their files and dates"),
        ('handaxe permissions revoke "Bash(git push *)"', "remove an allow rule"),
    ),
    actions={
        "list": CommandPage(
            "list the permission rules with their files and dates",
            (("handaxe permissions list --json", "list them as JSON"),),
            groups=(_options(_JSON, ROOT),),
        ),
        "revoke": CommandPage(
            "remove an allow rule from the settings files",
            (('handaxe permissions revoke "Bash(git push *)"', "git push asks again"),),
            groups=(
                _arguments(Argument("RULE", "rule as `handaxe permissions` lists it", dest="rule")),
                _options(_JSON, ROOT),
            ),
        ),
    },
)
_TRUST = CommandPage(
    "trust a project's settings files to grant permissions",
    (
        ("handaxe trust", "show what this project's files ask for, then confirm"),
        ("handaxe trust --revoke", "stop trusting this project"),
    ),
    groups=(
        _arguments(
            Argument(
                "DIR",
                "project directory (default: the current directory)",
                dest="directory",
                nargs="?",
                default=".",
            )
        ),
        _options(
            Argument("-y, --yes", "do not ask for confirmation"),
            Argument("--show", "show what the files ask for and change nothing"),
            Argument("--revoke", "stop trusting the project"),
            Argument("--list", "list the trusted projects"),
            _JSON,
        ),
    ),
)
_ID = Argument("ID", "id of the session", dest="session_id")
_SESSION_OPTIONS = _options(Argument("--root DIR", "only sessions of this project"), _JSON)
_SESSIONS = CommandPage(
    "list, show, export, fork, rewind, rename or delete sessions",
    (
        ("handaxe sessions", "list the sessions with their ids"),
        ("handaxe sessions show ID", "show the events of a session"),
        ("handaxe -r ID", "continue a session"),
    ),
    actions={
        "list": CommandPage(
            "list the sessions, newest first",
            (("handaxe sessions list --root .", "list the sessions of this project"),),
            groups=(_SESSION_OPTIONS,),
        ),
        "show": CommandPage(
            "show the events of a session",
            (("handaxe sessions show ID", "one line per event"),),
            groups=(_arguments(_ID), _SESSION_OPTIONS),
        ),
        "messages": CommandPage(
            "list the messages of a session with their ids",
            (("handaxe sessions messages ID", "find the message to fork or rewind to"),),
            groups=(_arguments(_ID), _SESSION_OPTIONS),
        ),
        "export": CommandPage(
            "print the events of a session as JSON lines",
            (("handaxe sessions export ID > session.jsonl", "save a session"),),
            groups=(_arguments(_ID), _SESSION_OPTIONS),
        ),
        "fork": CommandPage(
            "copy a session and print the id of the copy",
            (("handaxe sessions fork ID --at MESSAGE", "copy it up to a message"),),
            groups=(
                _arguments(_ID),
                _options(
                    Argument("--at MESSAGE", "id of the last message to copy"),
                    *_SESSION_OPTIONS.arguments,
                ),
            ),
        ),
        "rewind": CommandPage(
            "drop the messages after one message; files stay as they are",
            (("handaxe sessions rewind ID MESSAGE", "keep everything up to MESSAGE"),),
            groups=(
                _arguments(
                    _ID, Argument("MESSAGE", "id of the last message to keep", dest="value")
                ),
                _SESSION_OPTIONS,
            ),
        ),
        "rename": CommandPage(
            "give a session a name",
            (('handaxe sessions rename ID "parser bug"', 'then `handaxe -r "parser bug"`'),),
            groups=(
                _arguments(_ID, Argument("NAME", "the new name", dest="value")),
                _SESSION_OPTIONS,
            ),
        ),
        "delete": CommandPage(
            "delete a session with its undo record",
            (("handaxe sessions delete ID", "delete it from this machine"),),
            groups=(_arguments(_ID), _SESSION_OPTIONS),
        ),
    },
)
_UNDO = CommandPage(
    "undo the changes of a session",
    (
        ("handaxe undo", "undo the last change"),
        ("handaxe undo CALL_ID", "undo this call and everything after it"),
        ("handaxe undo --redo", "take back the last undo"),
    ),
    groups=(
        _arguments(
            Argument(
                "CALL_ID",
                "call to undo, with everything after it; see `handaxe history` "
                "(default: the last change)",
                dest="call_id",
                nargs="?",
            )
        ),
        _options(
            Argument("--only", "undo only this call and keep later ones"),
            Argument("--redo", "take back the last undo"),
            Argument("--force", "undo even if someone else changed a file since"),
            Argument("--path PATH", "undo only this path; repeatable", action="append"),
            Argument("--outside", "also restore files outside the project, without asking"),
            _RESULT,
            ROOT,
            SESSION_ID,
        ),
    ),
    hidden=_HIDDEN_SESSION,
)
_HISTORY = CommandPage(
    "list the calls that changed files, and what they changed",
    (
        ("handaxe history", "list the calls with their ids, for `handaxe undo`"),
        ("handaxe history --diff", "show what changed in each file"),
    ),
    groups=(
        _options(Argument("--diff", "show what changed in each file"), _JSON, ROOT, SESSION_ID),
    ),
    hidden=_HIDDEN_SESSION,
)
_STATS = CommandPage(
    "show what tools, servers and hooks cost, and which are unused",
    (
        ("handaxe stats", "show the numbers of this project"),
        ("handaxe stats --all --days 7", "show the last week in all projects"),
    ),
    groups=(
        _options(
            Argument("--session ID", "only this session, by id or name"),
            Argument("--days N", "only sessions of the last N days", type=parse_float),
            Argument("--all", "sessions of all projects"),
            _JSON,
            ROOT,
        ),
    ),
)
_GC = CommandPage(
    "delete old undo data, results and output beyond the limits",
    (
        ("handaxe gc --dry-run", "show how much would be deleted"),
        ("handaxe gc", "delete it"),
    ),
    groups=(
        _options(
            Argument("--dry-run", "show what would be deleted, and delete nothing"), _JSON, SETTINGS
        ),
    ),
    about="The limits are the settings undo.max_bytes, undo.retention_days and cleanupPeriodDays.",
)
_DU = CommandPage(
    "show the size of the data directory",
    (("handaxe du", "show bytes by kind"), ("handaxe du --json", "the same as JSON")),
    groups=(_options(_JSON),),
)
_DOCTOR = CommandPage(
    "check what works on this machine and how to fix the rest",
    (
        ("handaxe doctor", "check search, sandbox, shell, models and settings"),
        ("handaxe doctor --check", "connect to the MCP servers too"),
    ),
    groups=(_options(Argument("--check", "connect to the MCP servers too"), _JSON),),
)
_TOUR = CommandPage(
    "show handaxe at work in a temporary project; needs no key",
    (("handaxe tour", "run the tour"),),
    about="A scripted model plays the agent, without a network.",
)
_HELP = CommandPage(
    "show the help of handaxe or of a command",
    (("handaxe help undo", "same as `handaxe undo --help`"),),
    usage=("help [COMMAND [ACTION]]",),
)
_VERSION = CommandPage("print the version", (("handaxe version", "same as `handaxe --version`"),))
_UPDATE = CommandPage(
    "print how to update this installation",
    (("handaxe update", "print the command that updates handaxe"),),
    about="Nothing is downloaded.",
)

PAGES: dict[str, CommandPage] = {
    "call": _CALL,
    "run": _RUN,
    "tools": _TOOLS,
    "explain": _EXPLAIN,
    "undo": _UNDO,
    "history": _HISTORY,
    "sessions": _SESSIONS,
    "mcp": _MCP,
    "config": _CONFIG,
    "permissions": _PERMISSIONS,
    "trust": _TRUST,
    "prompt": _PROMPT,
    "stats": _STATS,
    "du": _DU,
    "gc": _GC,
    "doctor": _DOCTOR,
    "tour": _TOUR,
    "help": _HELP,
    "version": _VERSION,
    "update": _UPDATE,
}
"""Every command of `handaxe`."""
