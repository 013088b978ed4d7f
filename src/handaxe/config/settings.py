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
        "Maximum size of the text of one call, estimated as four characters per token.",
    ] = 100_000
    image_max_side: Annotated[
        int, msgspec.Meta(ge=32, le=8_000), "The longest side of a picture, in pixels."
    ] = 1_568
    image_max_bytes: Annotated[
        int,
        msgspec.Meta(ge=10_000, le=20_000_000),
        "Maximum size of a picture as base64, in bytes.",
    ] = 500_000
    media_memory_bytes: Annotated[
        int,
        msgspec.Meta(ge=256 << 20),
        "Memory limit for all processes that open pictures and PDFs; others wait.",
    ] = 1 << 30


class EditOptions(_Options, frozen=True, kw_only=True):
    """How text in files is changed."""

    format: Annotated[
        Literal["auto"] | EditFormat,
        "The editing tool of a model: Edit, MultiEdit, ApplyPatch or EditLines, "
        "which makes Read show a tag with each line; `auto` goes by the model's name.",
    ] = "auto"
    formats: Annotated[
        dict[str, EditFormat],
        "If `format` is `auto`: formats by model names without a vendor, such as "
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
        int,
        msgspec.Meta(ge=0),
        "Maximum size of saved content of all sessions; the oldest is deleted first.",
    ] = 1 << 30
    retention_days: Annotated[
        int, msgspec.Meta(ge=1), "Number of days that a call can be undone."
    ] = 30
    shell_max_files: Annotated[
        int,
        msgspec.Meta(ge=0),
        "Maximum number of files in the roots for which commands can be undone; 0: none.",
    ] = 200_000
    shell_max_bytes: Annotated[
        int,
        msgspec.Meta(ge=0),
        "Maximum size of the roots saved for undo; the largest directories are left out.",
    ] = 1 << 30
    shell_ahead: Annotated[
        bool, "Save the roots in advance, so that the first command waits less."
    ] = True
    trace_commands: Annotated[bool, "Trace the files that commands write, for undo."] = True


class SearchOptions(_Options, frozen=True, kw_only=True):
    """The scope of searches."""

    respect_ignore: Annotated[
        bool, "Leave out files that ignore files name; the result says how many matches that hid."
    ] = True
    timeout_s: Annotated[
        float, msgspec.Meta(gt=0), "Seconds after which a search returns its results so far."
    ] = 20
    glob_ignored: Annotated[
        bool | None, "Whether Glob shows ignored files; unset: as `respect_ignore` says."
    ] = None
    glob_hidden: Annotated[
        bool, "Whether Glob shows hidden names for patterns that contain none."
    ] = True


class ToolSearchOptions(_Options, frozen=True, kw_only=True):
    """When tools send only their names until they are searched for."""

    when: Annotated[
        Literal["auto", "always", "never"],
        "`auto` defers once all definitions together are longer than `limit_chars`.",
    ] = "auto"
    limit_chars: Annotated[
        int, msgspec.Meta(ge=0), "Maximum length of all tool definitions together, in characters."
    ] = 16_000
    native: Annotated[
        bool,
        "Let the provider search in place of ToolSearch where it can: Claude models from 4.5 on.",
    ] = False


class ShellOptions(_Options, frozen=True, kw_only=True):
    """How commands run."""

    default_timeout_ms: Annotated[
        int, msgspec.Meta(ge=1), "Timeout of a command if its call sets none."
    ] = 120_000
    max_timeout_ms: Annotated[int, msgspec.Meta(ge=1), "Maximum timeout that a call may set."] = (
        600_000
    )
    blocking_budget_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        "Seconds after which a command continues in the background; unset: only at its timeout.",
    ] = None
    max_inline_chars: Annotated[
        int,
        msgspec.Meta(ge=1_000, le=30_000),
        "Maximum characters of output in a result; longer output loses its middle.",
    ] = 30_000
    program: Annotated[
        str | None, "Path of the bash to use; unset or missing: the first bash on PATH."
    ] = None
    prefix: Annotated[
        str | None,
        "A program that every command is handed to, as its last argument, and that has to run it: "
        "for commands of the model, of hooks, and of MCP servers.",
    ] = None
    carry_directory: Annotated[
        bool,
        "Keep the directory of a `cd` for the next command if it is a working directory.",
    ] = True
    max_background: Annotated[
        int,
        msgspec.Meta(ge=1, le=1000),
        "Maximum background commands and agents of a session.",
    ] = 40
    max_background_of_user: Annotated[
        int,
        msgspec.Meta(ge=1, le=10_000),
        "Maximum background commands and agents of all the user's sessions.",
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
        bool, "Read aliases, functions and PATH from the user's interactive bash once per session."
    ] = False
    activation: Annotated[
        Literal["auto", "off"],
        "`auto`: look in the PATH of the login shell for a program that a command does not find; "
        "`off`: do not.",
    ] = "auto"
    max_output_bytes: Annotated[
        int, msgspec.Meta(ge=1 << 20), "Maximum size of one command's output on disk."
    ] = 64 << 20
    runaway_bytes: Annotated[
        int, msgspec.Meta(ge=1 << 20), "Output size at which a command is ended."
    ] = 5_000_000_000
    max_session_bytes: Annotated[
        int,
        msgspec.Meta(ge=1 << 20),
        "Maximum size of one session's stored output; old output is deleted first.",
    ] = 1 << 30
    max_kept_bytes: Annotated[
        int,
        msgspec.Meta(ge=0),
        "Maximum size of stored output and temporary files; the oldest are deleted first.",
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
        Literal["disable"] | None, "`disable` forbids bypassPermissions mode."
    ] = None
    disable_auto_mode: Annotated[Literal["disable"] | None, "`disable` forbids auto mode."] = None
    ask_irreversible: Annotated[
        bool,
        "Ask before irreversible actions, such as a force push, unless a rule names them.",
    ] = True
    classifier: Annotated[
        Literal["model"] | None,
        "Classifier that decides in `auto` mode; `model`: the small model of the session.",
    ] = None
    classifier_timeout_s: Annotated[
        float,
        msgspec.Meta(gt=0),
        "Timeout of the classifier for one call; then the user is asked.",
    ] = 30


class AgentOptions(_Options, frozen=True, kw_only=True):
    """Sub-agents: how many, how deep, how long they are waited for."""

    max_depth: Annotated[
        int,
        msgspec.Meta(ge=0, le=10),
        "Maximum nesting of agents that start agents; 0: agents start none.",
    ] = 3
    max_running: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "Maximum number of running agents of a session."
    ] = 20
    auto_background_s: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        "Seconds after which an awaited agent continues in the background; unset: never.",
    ] = None
    max_output_chars: Annotated[
        int,
        msgspec.Meta(ge=1_000, le=160_000),
        "Maximum characters of an agent's last message in a result; the rest stays in its file.",
    ] = 32_000
    question_deadline_s: Annotated[
        float,
        msgspec.Meta(gt=0),
        "Seconds that a permission question of a background agent waits before it is refused.",
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
    """The texts that an agent adds to commits and pull requests. By default there are none."""

    commit: Annotated[
        str, "Text at the end of every commit message, such as a `Co-Authored-By` line."
    ] = ""
    pr: Annotated[str, "Text at the end of every pull request description."] = ""


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
        float, msgspec.Meta(ge=0), "Seconds that a fetched page is reused; 0: never."
    ] = 900
    screenshot: Annotated[
        bool, "Add a picture of the page to the result of WebFetch if Chromium is installed."
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
        "Allow commands and agents to run in the background. With `false` every call waits, and "
        "a command ends at its timeout.",
    ] = True
    max_parallel_calls: Annotated[
        int, msgspec.Meta(ge=1, le=1000), "Maximum number of calls that run at once."
    ] = 10
    retention_days: Annotated[
        int, msgspec.Meta(ge=1), "Number of days to keep stored results after their session."
    ] = 30
    disable_skill_shell_execution: Annotated[bool, "Do not run commands in a skill's text."] = (
        msgspec.field(default=False, name="disableSkillShellExecution")
    )
    skill_overrides: Annotated[
        dict[str, Literal["on", "name-only", "user-invocable-only", "off"]],
        "Visibility of skills, by name: all, all without the purpose, only users, or none.",
    ] = msgspec.field(default_factory=dict[str, Any], name="skillOverrides")
    skill_listing_budget: Annotated[
        float,
        msgspec.Meta(gt=0, le=1),
        "Share of the model's context that the list of skills may take.",
    ] = msgspec.field(default=0.01, name="skillListingBudgetFraction")
    skill_purpose_chars: Annotated[
        int, msgspec.Meta(ge=0), "Maximum characters of one skill's purpose in that list."
    ] = msgspec.field(default=1_536, name="skillListingMaxDescChars")
    task_list: Annotated[
        str | None, "A task list that several sessions share, by name; unset: one per session."
    ] = None
    trusted_folders: Annotated[
        tuple[str, ...],
        "Folders that are trusted together with the requests of their files when first seen.",
    ] = ()
    model: Annotated[str | None, "The model an agent uses, as `--model` takes it."] = None
    effort_level: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        "Reasoning effort of an agent's model, as `--effort` takes it.",
    ] = msgspec.field(default=None, name="effortLevel")
    api_key_helper: Annotated[
        str | None,
        "Shell command that prints Anthropic's API key, if the environment has none.",
    ] = msgspec.field(default=None, name="apiKeyHelper")
    language: Annotated[str | None, "The language an agent answers in, such as `german`."] = None
    include_git_instructions: Annotated[
        bool, "Tell an agent the state of the repository when it starts."
    ] = msgspec.field(default=True, name="includeGitInstructions")
    auto_compact_enabled: Annotated[
        bool, "Summarize a conversation automatically when the model's context is nearly full."
    ] = msgspec.field(default=True, name="autoCompactEnabled")
    file_checkpointing_enabled: Annotated[
        bool, "Save files before calls change them, so that undo can restore them."
    ] = msgspec.field(default=True, name="fileCheckpointingEnabled")
    plans_directory: Annotated[
        str | None,
        "Directory for plans, relative to the project and inside it; unset: with the session.",
    ] = msgspec.field(default=None, name="plansDirectory")
    ask_user_question_timeout: Annotated[
        Annotated[str, msgspec.Meta(pattern="^(never|[1-9][0-9]{0,4}[sm])$")],
        "Time that a question of the model waits for an answer, such as `60s` or `5m`; then the "
        "model continues without one.",
    ] = msgspec.field(default="never", name="askUserQuestionTimeout")
    output_style: Annotated[str | None, "Name of the output style; unset: the default style."] = (
        msgspec.field(default=None, name="outputStyle")
    )
    agent: Annotated[str | None, "Agent type of the main agent, as `--agent` takes it."] = None
    claude_md_excludes: Annotated[
        tuple[str, ...],
        "Instruction files to ignore: absolute paths, or patterns of them.",
    ] = msgspec.field(default=(), name="claudeMdExcludes")
    auto_memory_enabled: Annotated[
        bool | None,
        "Let an agent keep what it learns about a project in a directory of the user's; unset: "
        "existing notes are only read.",
    ] = msgspec.field(default=None, name="autoMemoryEnabled")
    auto_memory_directory: Annotated[
        str | None, "Directory of these notes; unset: `projects/<project>/memory` in `~/.claude`."
    ] = msgspec.field(default=None, name="autoMemoryDirectory")
    env: Annotated[dict[str, str], "Variables for commands, hooks and servers."] = {}
    hooks: Annotated[
        dict[str, tuple[dict[str, Any], ...]], "The hooks of each event, as a list of matchers."
    ] = {}
    disable_all_hooks: Annotated[bool, "Run no hooks except those of managed settings."] = (
        msgspec.field(default=False, name="disableAllHooks")
    )
    allow_managed_hooks_only: Annotated[
        bool, "Run only hooks of managed settings; ignored in other settings."
    ] = msgspec.field(default=False, name="allowManagedHooksOnly")
    allow_managed_permission_rules_only: Annotated[
        bool,
        "Use only the allow rules of managed settings; ignored in other settings.",
    ] = msgspec.field(default=False, name="allowManagedPermissionRulesOnly")
    allowed_http_hook_urls: Annotated[
        tuple[str, ...] | None, "Addresses that HTTP hooks may use; unset: any."
    ] = msgspec.field(default=None, name="allowedHttpHookUrls")
    http_hook_allowed_env_vars: Annotated[
        tuple[str, ...] | None,
        "Environment variables that headers of HTTP hooks may contain; unset: any.",
    ] = msgspec.field(default=None, name="httpHookAllowedEnvVars")
    respect_gitignore: Annotated[
        bool | None, "Used for `search.respect_ignore` if that is unset."
    ] = msgspec.field(default=None, name="respectGitignore")
    cleanup_period_days: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        "Used for `retention_days` if that is unset.",
    ] = msgspec.field(default=None, name="cleanupPeriodDays")
    enable_all_project_mcp_servers: Annotated[
        bool, "Allow every server of the project's `.mcp.json` to start."
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
        tuple[dict[str, Any], ...] | None, "Servers that may be used; unset: all."
    ] = msgspec.field(default=None, name="allowedMcpServers")
    allow_managed_mcp_servers_only: Annotated[
        bool,
        "Use only `allowedMcpServers` of managed settings; ignored in other settings.",
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
