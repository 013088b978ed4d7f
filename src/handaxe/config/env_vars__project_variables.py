"""Which variables a project's settings may set, and which never.

A variable that chooses a program, a library, a configuration or an endpoint does as a program
would. Names are judged, not values: a name that belongs to a tool which reads such variables is
out, whatever it is for. A few names are harmless whatever their value; all others count as they
were shown when the project was trusted.
"""

import re
from functools import cache

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
