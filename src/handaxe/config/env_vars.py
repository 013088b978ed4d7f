"""Variables of the environment that give settings.

Files override them. An invalid value is ignored: a mistyped variable must not keep a session from
opening.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

_NO_LIMIT = 1 << 62
_NUMBERS: dict[str, tuple[str, str, int, int]] = {
    "BASH_DEFAULT_TIMEOUT_MS": ("shell", "default_timeout_ms", 1, _NO_LIMIT),
    "BASH_MAX_OUTPUT_LENGTH": ("shell", "max_inline_chars", 1_000, 30_000),
    "BASH_MAX_TIMEOUT_MS": ("shell", "max_timeout_ms", 1, _NO_LIMIT),
    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": ("read", "max_tokens", 1_000, 1_000_000),
    "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS": ("search", "timeout_s", 1, _NO_LIMIT),
    "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS": ("agents", "max_running", 1, 1000),
    "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": ("agents", "max_depth", 1, 10),
    "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION": ("web", "max_searches", 1, _NO_LIMIT),
    "TASK_MAX_OUTPUT_LENGTH": ("agents", "max_output_chars", 1_000, 160_000),
}
"""By variable: the group, the key, and the least and the most that the setting takes."""
_TEXTS: dict[str, tuple[str, str]] = {
    "CLAUDE_CODE_SHELL": ("shell", "program"),
    "CLAUDE_CODE_SHELL_PREFIX": ("shell", "prefix"),
}
_SWITCHES: dict[str, tuple[str, str]] = {
    "CLAUDE_CODE_GLOB_HIDDEN": ("search", "glob_hidden"),
    "CLAUDE_CODE_GLOB_NO_IGNORE": ("search", "glob_ignored"),
    "CLAUDE_CODE_PERFORCE_MODE": ("edit", "perforce"),
}
"""Variables that can switch a setting on and off."""
_SWITCHED_OFF: dict[str, str] = {
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "background_tasks",
    "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "fileCheckpointingEnabled",
}
"""Settings that a true value switches off."""
_AT_ONCE = "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"
_MOST_AT_ONCE = 1000
_AUTO_BACKGROUND = "CLAUDE_AUTO_BACKGROUND_TASKS"
_AUTO_BACKGROUND_S = 120.0
_WEB_CACHE = "CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS"
_STAY = "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"
TASKS_VARIABLE = "CLAUDE_CODE_ENABLE_TASKS"
_TASK_TOOLS = frozenset({"TaskCreate", "TaskGet", "TaskList", "TaskUpdate"})
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def is_env_true(variable: str) -> bool:
    """Whether a variable of the environment is true."""
    return os.environ.get(variable, "").strip().lower() in _YES


def read_env_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that variables give, as plain data."""
    found: dict[str, dict[str, Any]] = {}
    for name, (group, key, least, most) in _NUMBERS.items():
        if number := _read_number(environment, name):
            found.setdefault(group, {})[key] = min(max(number, least), most)
    for name, (group, key) in _TEXTS.items():
        if text := environment.get(name, "").strip():
            found.setdefault(group, {})[key] = text
    for name, (group, key) in _SWITCHES.items():
        if (is_on := _read_switch(environment, name)) is not None:
            found.setdefault(group, {})[key] = is_on
    milliseconds = _read_number(environment, _WEB_CACHE)
    if milliseconds or environment.get(_WEB_CACHE, "").strip() == "0":
        found.setdefault("web", {})["cache_s"] = milliseconds / 1000
    if _is_yes(environment, _AUTO_BACKGROUND):
        found.setdefault("agents", {})["auto_background_s"] = _AUTO_BACKGROUND_S
    if _is_yes(environment, _STAY):
        found.setdefault("shell", {})["carry_directory"] = False
    off = {key: False for name, key in _SWITCHED_OFF.items() if _is_yes(environment, name)}
    at_once = _read_number(environment, _AT_ONCE)
    max_parallel = {"max_parallel_calls": min(at_once, _MOST_AT_ONCE)} if at_once else {}
    return {**found, **off, **max_parallel}


def list_excluded_tools(environment: Mapping[str, str]) -> frozenset[str]:
    """Tools that variables remove if no tools are named: TodoWrite does their work."""
    return _TASK_TOOLS if _read_switch(environment, TASKS_VARIABLE) is False else frozenset()


def _read_number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _is_yes(environment: Mapping[str, str], name: str) -> bool:
    return _read_switch(environment, name) is True


def _read_switch(environment: Mapping[str, str], name: str) -> bool | None:
    word = environment.get(name, "").strip().lower()
    return True if word in _YES else False if word in _NO else None


_HARMLESS = frozenset(
    [
        "CI",
        "DEBUG",
        "TERM",
        "TZ",
        "LANG",
        "LANGUAGE",
        "COLORTERM",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "LINES",
        "LOG_LEVEL",
        "LOGLEVEL",
        "RUST_LOG",
        "RUST_BACKTRACE",
        "NODE_ENV",
        "RAILS_ENV",
        "RACK_ENV",
        "APP_ENV",
        "FLASK_DEBUG",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONFAULTHANDLER",
        "DO_NOT_TRACK",
    ]
)
_WHOLE = """
    PATH HOME SHELL ENV IFS CDPATH TMP TEMP TERMCAP DISPLAY USER LOGNAME OLDPWD PWD FPATH
    SHELLOPTS PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND CC CXX CPP FC F77 LD AR AS NM RANLIB STRIP LEX
    YACC AWK SED MORE CLASSPATH LOCALDOMAIN XAUTHORITY MFLAGS INPUTRC HISTFILE
"""
_BEGINNINGS = """
    ANDROID ANSIBLE ANTHROPIC ANT_ APT_ ARM_ ASDF AWS AZURE BABEL BASH BAT_ BAZEL BREW BUILDKIT
    BUNDLE BUN_ CABAL CARGO CCACHE CELERY CGO_ CHROME CLANG CLAUDE CLOUDSDK CMAKE COMPOSE COMPOSER
    CONAN CONDA CONTAINER CORECLR COREHOST COVERAGE CUDA CURL CVS DBUS DENO DIRENV DISTCC DJANGO
    DOCKER DOTNET DYLD ELECTRON ELIXIR EMACS ERL ESLINT FD_ FLASK FLY_ FZF GCC GCLOUD GCONV GEM
    GHC GH_ GIO_ GIT GLIBC GNU GO GPG GRADLE GST_ GTK GUILE GUNICORN HANDAXE HELM HEROKU HEX_ HG
    HOMEBREW HUSKY IPYTHON JAVA JDK JEST JQ JULIA JUPYTER JVM KOTLIN KRB5 KUBE LD_ LEFTHOOK LEIN
    LESS LLVM LUA LYNX M2_ MAKE MALLOC MAMBA MAVEN MESON MISE MIX_ MOCHA MONGO MPL MSBUILD MVN
    MYSQL NINJA NIX NODE NOX NPM NUGET NUMBA NVIM NVM NYC OCAML ODBC OLLAMA OPAM OPENAI OPENSSL
    PDM PERL PG PHP PIPENV PIPX PIP_ PKG_CONFIG PLAYWRIGHT PNPM PODMAN POETRY PRETTIER PRE_COMMIT
    PUPPETEER PY QT RAKE RBENV REDIS RENV RIPGREP RSYNC RUBY RUST R_ SBT SCALA SCCACHE SDKMAN
    SELENIUM SQLITE SSH SSL STACK_ STREAMLIT SUDO SVN SWIFT SYSTEMD TCL TERMINFO TERRAFORM
    TERRAGRUNT TF_ TMUX TOX TS_NODE UV VAGRANT VAULT VIM VIRTUAL_ENV VITEST VOLTA WAYLAND WEBPACK
    WGET XCODE XDG YARN ZDOT _JAVA
"""
"""Of tools that take programs, libraries, configuration or endpoints from the environment."""
_PARTS = """
    ADDR ADDRESS API_BASE ARGS ASKPASS AUTH BASE BASE_URL BIN BINARY BROWSER BUNDLE CA CERT CERTS
    CFG CMD COMMAND COMMANDS COMPILER CONF CONFIG CONFIGS CREDENTIALS DIR DIRECTORY DIRS DOMAIN
    DSN EDITOR ENDPOINT ENDPOINTS EXE EXEC EXECUTABLE EXTENSION EXTENSIONS FILE FILES FLAGS HOME
    HOOK HOOKS HOST HOSTS INDEX INI INIT INTERPRETER KEY LAUNCHER LIB LIBRARIES LIBRARY LIBS
    LINKER LOADER MIRROR MODULE MODULES OPTIONS OPTS PAGER PATH PATHS PLUGIN PLUGINS PREFIX
    PRELOAD PROFILE PROG PROGRAM PROXY RC REGISTRY REPO REPOSITORY ROOT RUNNER SCRIPT SCRIPTS
    SERVER SERVERS SETTINGS SHELL SOCK SOCKET STARTUP TOKEN TOOLCHAIN URI URL URLS VISUAL WRAPPER
"""
"""Words that say by themselves that something is chosen, between `_` anywhere in a name."""
_ENDINGS = """
    ALIASES CONFIG DIR EDITOR FLAGS HOME HOST OPTIONS OPTS PAGER PATH PLUGINS PRELOAD PROXY ROOT
    URL
"""


@cache
def _compile_steering() -> re.Pattern[str]:
    whole, beginnings, parts, endings = (
        "|".join(words.split()) for words in (_WHOLE, _BEGINNINGS, _PARTS, _ENDINGS)
    )
    return re.compile(
        rf"(?:{whole})|(?:{beginnings}).*|(?:.*_)?(?:{parts})(?:_.*)?|.*(?:{endings})",
        re.IGNORECASE,
    )


def is_harmless(variable: str) -> bool:
    """Whether a variable chooses nothing, whatever its value is."""
    return variable in _HARMLESS or variable.startswith("LC_")


def is_steering(variable: str) -> bool:
    """Whether a variable may choose what runs, how it is set up, or where requests go."""
    return not is_harmless(variable) and _compile_steering().fullmatch(variable) is not None
