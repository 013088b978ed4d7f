"""Every option with its meaning and default; the ecosystem's own keep their names."""

from typing import Annotated, Any, Literal

import msgspec

from handaxe.config.sandbox_options import SandboxOptions

ModeName = Literal[
    "default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions", "manual"
]
EditFormat = Literal["replace", "multi", "patch", "lines"]


class _Options(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    pass


class ReadOptions(_Options, frozen=True, kw_only=True):
    """How Read shows a file."""

    line_format: Annotated[
        Literal["arrow", "tab"], "`arrow` shows `     1→text`, `tab` shows `1<TAB>text`."
    ] = "arrow"
    max_tokens: Annotated[
        int,
        msgspec.Meta(ge=1_000, le=1_000_000),
        "How much text one call shows, counted as four characters to a token.",
    ] = 100_000
    image_max_side: Annotated[
        int, msgspec.Meta(ge=32, le=8_000), "The longest side of a picture, in pixels."
    ] = 1_568
    image_max_bytes: Annotated[
        int, msgspec.Meta(ge=10_000, le=20_000_000), "How long a picture may be, as base64."
    ] = 500_000
    media_memory_bytes: Annotated[
        int, msgspec.Meta(ge=256 << 20), "Memory of all processes for pictures and PDFs; more wait."
    ] = 1 << 30


class EditOptions(_Options, frozen=True, kw_only=True):
    """How text in files is changed."""

    format: Annotated[
        Literal["auto"] | EditFormat,
        "What a model is shown to change text with: Edit, MultiEdit, ApplyPatch or EditLines, "
        "which makes Read show a tag with each line; `auto` goes by the model's name.",
    ] = "auto"
    formats: Annotated[
        dict[str, EditFormat],
        "Where `format` is `auto`: formats by model names without a vendor, such as "
        '`{"qwen3-*": "multi"}`; asked before the built-in table.',
    ] = {}
    perforce: Annotated[
        bool, "Refuse to change files that their owner may not write, and say `p4 edit FILE`."
    ] = False
    tolerance: Annotated[
        Literal["exact", "visible"],
        "`exact` wants the very text; `visible` also accepts differences a reader cannot see, "
        "where only one place fits, and says so.",
    ] = "visible"


class UndoOptions(_Options, frozen=True, kw_only=True):
    """How long changes can be undone."""

    max_bytes: Annotated[
        int, msgspec.Meta(ge=0), "How much old content is kept, over all sessions; oldest go first."
    ] = 1 << 30
    retention_days: Annotated[int, msgspec.Meta(ge=1), "How many days a call can be undone."] = 30
    shell_max_files: Annotated[
        int, msgspec.Meta(ge=0), "How many files of the roots a command is undone in; 0: none."
    ] = 200_000
    shell_max_bytes: Annotated[
        int,
        msgspec.Meta(ge=0),
        "How much of the roots is kept for undoing commands; the largest directories are left out.",
    ] = 1 << 30
    shell_ahead: Annotated[bool, "Keep the roots ahead, so the first command waits less."] = True
    trace_commands: Annotated[bool, "Trace which files commands write, for undo."] = True


class SearchOptions(_Options, frozen=True, kw_only=True):
    """The scope of searches."""

    respect_ignore: Annotated[
        bool, "Leave out what ignore files name; how many matches that hid is said."
    ] = True
    timeout_s: Annotated[
        float, msgspec.Meta(gt=0), "Seconds after which a search returns its results so far."
    ] = 20
    glob_ignored: Annotated[
        bool | None, "Whether Glob shows what ignore files name; unset: as `respect_ignore` says."
    ] = None
    glob_hidden: Annotated[
        bool, "Whether Glob shows names that begin with a dot, where the pattern spells none."
    ] = True


class ToolSearchOptions(_Options, frozen=True, kw_only=True):
    """When tools send only their names until they are searched for."""

    when: Annotated[
        Literal["auto", "always", "never"],
        "`auto` defers once all definitions together are longer than `limit_chars`.",
    ] = "auto"
    limit_chars: Annotated[
        int, msgspec.Meta(ge=0), "How long the definitions of all tools may be, in characters."
    ] = 16_000
    native: Annotated[
        bool,
        "Let the provider search in place of ToolSearch where it can: Claude models from 4.5 on.",
    ] = False


class ShellOptions(_Options, frozen=True, kw_only=True):
    """How commands run."""

    default_timeout_ms: Annotated[
        int, msgspec.Meta(ge=1), "How long a command may hold up the model where it says nothing."
    ] = 120_000
    max_timeout_ms: Annotated[
        int, msgspec.Meta(ge=1), "The longest time a command may ask for."
    ] = 600_000
    blocking_budget_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        "After so many seconds a command continues in the background; unset: only at its timeout.",
    ] = None
    max_inline_chars: Annotated[
        int,
        msgspec.Meta(ge=1_000, le=30_000),
        "How much of a command's output is shown; of more, the beginning and the end.",
    ] = 30_000
    program: Annotated[
        str | None, "The bash to use, by its path; unset, or not there: the first on PATH."
    ] = None
    prefix: Annotated[
        str | None,
        "A program that every command is handed to, as its last argument, and that has to run it: "
        "for commands of the model, of hooks, and of MCP servers.",
    ] = None
    carry_directory: Annotated[
        bool, "A `cd` holds for the next command, as long as it stays in the working directories."
    ] = True
    max_background: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "How much may go on in the background of a session."
    ] = 40
    max_background_of_user: Annotated[
        int,
        msgspec.Meta(ge=1, le=10_000),
        "How much may go on in the background of all sessions of the user together.",
    ] = 200
    hidden_variables: Annotated[
        tuple[str, ...],
        "More variables that commands do not get, beside those whose names look like secrets; `*` "
        "stands for any characters.",
    ] = ()
    pass_variables: Annotated[
        tuple[str, ...],
        "Variables that commands and hooks get although their names look like secrets, such as "
        "`GITHUB_TOKEN`; `*` stands for any characters. `hidden_variables` wins.",
    ] = ()
    snapshot: Annotated[
        bool, "Take aliases, functions and PATH from the user's interactive bash, once a session."
    ] = False
    activation: Annotated[
        Literal["auto", "off"],
        "`auto`: look in the PATH of the login shell for a program that a command does not find; "
        "`off`: do not.",
    ] = "auto"
    max_output_bytes: Annotated[
        int, msgspec.Meta(ge=1 << 20), "How much of one command's output is kept on disk."
    ] = 64 << 20
    runaway_bytes: Annotated[
        int, msgspec.Meta(ge=1 << 20), "A command that writes more than this is ended."
    ] = 5_000_000_000
    max_session_bytes: Annotated[
        int, msgspec.Meta(ge=1 << 20), "How much output of one session is kept; ended ones go."
    ] = 1 << 30
    max_kept_bytes: Annotated[
        int, msgspec.Meta(ge=0), "How much output and temporary files are kept; oldest go."
    ] = 2 << 30


class PermissionOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """The calls that may run without a question."""

    allow: Annotated[tuple[str, ...], "Rules for calls that run at once."] = ()
    ask: Annotated[tuple[str, ...], "Rules for calls that always ask."] = ()
    deny: Annotated[tuple[str, ...], "Rules for calls that never run."] = ()
    default_mode: Annotated[
        ModeName | None, "The permission mode a session starts in; `default` if nothing is set."
    ] = None
    additional_directories: Annotated[
        tuple[str, ...], "More directories the session may work in, relative to the project."
    ] = ()
    disable_bypass_permissions_mode: Annotated[
        Literal["disable"] | None, "`disable`: no session may use bypassPermissions mode."
    ] = None
    disable_auto_mode: Annotated[
        Literal["disable"] | None, "`disable`: no session may use auto mode."
    ] = None
    ask_irreversible: Annotated[
        bool,
        "Ask before what cannot be undone, such as a force push, unless a rule names it.",
    ] = True
    classifier: Annotated[
        Literal["model"] | None,
        "Who may allow in `auto` mode what would ask; `model`: the small model of the session.",
    ] = None
    classifier_timeout_s: Annotated[
        float,
        msgspec.Meta(gt=0),
        "So long a classifier may take for a call; then a person is asked.",
    ] = 30


class AgentOptions(_Options, frozen=True, kw_only=True):
    """Sub-agents: how many, how deep, how long they are waited for."""

    max_depth: Annotated[
        int, msgspec.Meta(ge=0, le=10), "How deep agents may start agents; 0: not at all."
    ] = 3
    max_running: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "How many agents of a session work at once."
    ] = 20
    auto_background_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        "After so many seconds an awaited agent continues in the background; unset: never.",
    ] = None
    max_output_chars: Annotated[
        int,
        msgspec.Meta(ge=1_000, le=160_000),
        "How much of an agent's last message is shown; the rest stays in its file.",
    ] = 32_000
    question_deadline_s: Annotated[
        float,
        msgspec.Meta(gt=0),
        "So long a permission question of an agent in the background waits before it is refused.",
    ] = 600


class WorktreeOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """Checkouts of their own, for agents that work apart and for `--worktree`."""

    base_ref: Annotated[
        Literal["head", "fresh"],
        "The start of a new worktree: the commit that is checked out, or the origin's main branch.",
    ] = "head"
    sparse_paths: Annotated[
        tuple[str, ...],
        "Directories to check out, with the files beside and above them; none: everything.",
    ] = ()
    symlink_directories: Annotated[
        tuple[str, ...],
        "Directories that git ignores, such as `node_modules`, to link from the main checkout.",
    ] = ()


class AttributionOptions(_Options, frozen=True, kw_only=True):
    """The texts that an agent adds to what it writes for others. By default there are none."""

    commit: Annotated[str, "Ends every commit message, such as a `Co-Authored-By` line."] = ""
    pr: Annotated[str, "Ends every description of a pull request."] = ""


class WebOptions(_Options, frozen=True, kw_only=True):
    """Fetching pages and searching the web."""

    max_bytes: Annotated[
        int,
        msgspec.Meta(ge=10_000, le=100_000_000),
        "Maximum size of a page after decompression, in bytes.",
    ] = 10_000_000
    timeout_s: Annotated[
        float, msgspec.Meta(gt=0, le=600), "Maximum time for one page or one search, in seconds."
    ] = 30
    cache_s: Annotated[
        float, msgspec.Meta(ge=0), "How long a fetched page is used again, in seconds; 0: never."
    ] = 900
    screenshot: Annotated[
        bool, "Add a picture of the page to the result of WebFetch, where Chromium is installed."
    ] = False
    answer_model: Annotated[
        str | None,
        "The model that answers the prompt of WebFetch from the page, as `--model` takes it; "
        "unset: the small model of the vendor, if it has one.",
    ] = None
    search: Annotated[
        Literal["searxng", "brave", "tavily", "anthropic", "mcp"] | None,
        "The back end of WebSearch; without one WebSearch is not available.",
    ] = None
    search_url: Annotated[
        str | None, "Address of the back end; SearXNG needs one, such as `http://localhost:8888`."
    ] = None
    search_tool: Annotated[
        str | None, "The MCP tool that searches, such as `mcp__search__web`, for `search: mcp`."
    ] = None
    max_searches: Annotated[
        int, msgspec.Meta(ge=0), "Maximum number of searches of a session, over all its agents."
    ] = 200


class Settings(_Options, frozen=True, kw_only=True):
    """The whole configuration of a session."""

    read: ReadOptions = ReadOptions()
    edit: EditOptions = EditOptions()
    search: SearchOptions = SearchOptions()
    tool_search: ToolSearchOptions = ToolSearchOptions()
    shell: ShellOptions = ShellOptions()
    permissions: PermissionOptions = PermissionOptions()
    undo: UndoOptions = UndoOptions()
    sandbox: SandboxOptions = SandboxOptions()
    agents: AgentOptions = AgentOptions()
    worktree: WorktreeOptions = WorktreeOptions()
    attribution: AttributionOptions = AttributionOptions()
    web: WebOptions = WebOptions()
    background_tasks: Annotated[
        bool,
        "Whether commands and agents may go on in the background; otherwise all of them are "
        "waited for, and a command whose time is up is ended.",
    ] = True
    max_parallel_calls: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "How many calls run at once."
    ] = 10
    retention_days: Annotated[
        int, msgspec.Meta(ge=1), "How long stored results are kept after their session."
    ] = 30
    disable_skill_shell_execution: Annotated[bool, "Commands in a skill's text are not run."] = (
        msgspec.field(default=False, name="disableSkillShellExecution")
    )
    skill_overrides: Annotated[
        dict[str, Literal["on", "name-only", "user-invocable-only", "off"]],
        "Who sees a skill, by its name: all, all without its purpose, only users, none.",
    ] = msgspec.field(default_factory=dict[str, Any], name="skillOverrides")
    skill_listing_budget: Annotated[
        float,
        msgspec.Meta(gt=0, le=1),
        "How much of the model's context the list of skills may take.",
    ] = msgspec.field(default=0.01, name="skillListingBudgetFraction")
    skill_purpose_chars: Annotated[
        int, msgspec.Meta(ge=0), "How many characters of one skill's purpose that list shows."
    ] = msgspec.field(default=1_536, name="skillListingMaxDescChars")
    task_list: Annotated[
        str | None, "A task list that several sessions share, by name; unset: one per session."
    ] = None
    trusted_folders: Annotated[
        tuple[str, ...],
        "Folders that are trusted, with what their files want to do when they are first seen.",
    ] = ()
    model: Annotated[str | None, "The model an agent uses, as `--model` takes it."] = None
    effort_level: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        "How hard an agent's model tries, as `--effort` takes it.",
    ] = msgspec.field(default=None, name="effortLevel")
    api_key_helper: Annotated[
        str | None,
        "A shell command that prints the key for Anthropic's API; asked where the environment has "
        "none.",
    ] = msgspec.field(default=None, name="apiKeyHelper")
    language: Annotated[str | None, "The language an agent answers in, such as `german`."] = None
    include_git_instructions: Annotated[
        bool, "Tell an agent the state of the repository when it starts."
    ] = msgspec.field(default=True, name="includeGitInstructions")
    auto_compact_enabled: Annotated[
        bool, "Sum up a conversation by itself when the model's context is nearly full."
    ] = msgspec.field(default=True, name="autoCompactEnabled")
    file_checkpointing_enabled: Annotated[
        bool, "Record what calls change before they change it, so that it can be undone."
    ] = msgspec.field(default=True, name="fileCheckpointingEnabled")
    plans_directory: Annotated[
        str | None,
        "Where plans are kept, relative to the project and inside it; unset: with the session.",
    ] = msgspec.field(default=None, name="plansDirectory")
    ask_user_question_timeout: Annotated[
        Annotated[str, msgspec.Meta(pattern="^(never|[1-9][0-9]{0,4}[sm])$")],
        "How long a question of the model waits for an answer, such as `60s` or `5m`; after "
        "that the model continues without one.",
    ] = msgspec.field(default="never", name="askUserQuestionTimeout")
    output_style: Annotated[
        str | None, "How the agent talks: the name of an output style; unset: the default one."
    ] = msgspec.field(default=None, name="outputStyle")
    agent: Annotated[
        str | None, "The type of agent that the session's own agent is, as `--agent` takes it."
    ] = None
    claude_md_excludes: Annotated[
        tuple[str, ...],
        "Files of instructions that do not count: absolute paths, or patterns of them.",
    ] = msgspec.field(default=(), name="claudeMdExcludes")
    auto_memory_enabled: Annotated[
        bool | None,
        "Let an agent keep what it learns about a project in a directory of the user's; unset: "
        "existing notes are only read.",
    ] = msgspec.field(default=None, name="autoMemoryEnabled")
    auto_memory_directory: Annotated[
        str | None, "That directory; unset: `projects/<project>/memory` in `~/.claude`."
    ] = msgspec.field(default=None, name="autoMemoryDirectory")
    env: Annotated[dict[str, str], "Variables for commands, hooks and servers."] = {}
    hooks: Annotated[
        dict[str, tuple[dict[str, Any], ...]], "The hooks of each event, as a list of matchers."
    ] = {}
    disable_all_hooks: Annotated[bool, "No hook runs, except those of managed settings."] = (
        msgspec.field(default=False, name="disableAllHooks")
    )
    allow_managed_hooks_only: Annotated[
        bool, "Only hooks of managed settings run; counts in managed settings only."
    ] = msgspec.field(default=False, name="allowManagedHooksOnly")
    allow_managed_permission_rules_only: Annotated[
        bool, "Only managed settings may hold allow rules; counts in managed settings only."
    ] = msgspec.field(default=False, name="allowManagedPermissionRulesOnly")
    allowed_http_hook_urls: Annotated[
        tuple[str, ...] | None, "Addresses that hooks may be sent to; unset: any."
    ] = msgspec.field(default=None, name="allowedHttpHookUrls")
    http_hook_allowed_env_vars: Annotated[
        tuple[str, ...] | None, "Variables that headers of hooks may hold; unset: any they name."
    ] = msgspec.field(default=None, name="httpHookAllowedEnvVars")
    respect_gitignore: Annotated[
        bool | None, "Stands for `search.respect_ignore` where that is not set."
    ] = msgspec.field(default=None, name="respectGitignore")
    cleanup_period_days: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        "Stands for `retention_days` where that is not set.",
    ] = msgspec.field(default=None, name="cleanupPeriodDays")
    enable_all_project_mcp_servers: Annotated[
        bool, "Every server of the project's `.mcp.json` may start."
    ] = msgspec.field(default=False, name="enableAllProjectMcpServers")
    enabled_mcpjson_servers: Annotated[
        tuple[str, ...], "Servers of `.mcp.json` that may start."
    ] = msgspec.field(default=(), name="enabledMcpjsonServers")
    disabled_mcpjson_servers: Annotated[
        tuple[str, ...], "Servers of `.mcp.json` that may not start."
    ] = msgspec.field(default=(), name="disabledMcpjsonServers")
    mcp_servers: Annotated[
        dict[str, dict[str, Any]], "MCP servers by name; a project's own are in `.mcp.json`."
    ] = msgspec.field(default={}, name="mcpServers")
    allowed_mcp_servers: Annotated[
        tuple[dict[str, Any], ...] | None, "The only servers that may be used; unset: any."
    ] = msgspec.field(default=None, name="allowedMcpServers")
    allow_managed_mcp_servers_only: Annotated[
        bool, "Only managed settings' `allowedMcpServers` counts; counts in managed settings only."
    ] = msgspec.field(default=False, name="allowManagedMcpServersOnly")
    denied_mcp_servers: Annotated[tuple[dict[str, Any], ...], "Servers that may not be used."] = (
        msgspec.field(default=(), name="deniedMcpServers")
    )


def split_prefix(options: ShellOptions) -> tuple[str, ...]:
    """The program and its first arguments; nothing where none is set."""
    given = (options.prefix or "").strip()
    if not given:
        return ()
    import shlex

    try:
        return tuple(shlex.split(given))
    except ValueError:
        # One quote too many: it can only be the path itself.
        return (given,)
