"""Paths outside the working directories that programs must read, as data with a reason each.

A sandbox that hides everything else shows these paths. None may contain a credential: such
directories are listed by their parts, or the credential is in `SYSTEM_SECRETS` or in the list of
home directory secrets, which are hidden. Every existing path costs each command a mount, so paths
for few programs are left to `sandbox.filesystem.allowRead`.
"""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from handaxe.contract.readable_files import count_components, is_below

KERNEL_PLACES = ("/proc", "/sys", "/dev")
"""Paths that the kernel provides; each backend has its own view of them."""

SYSTEM_PLACES = {
    "/usr": "programs and libraries",
    "/bin": "programs",
    "/sbin": "programs",
    "/lib": "libraries",
    "/lib32": "libraries",
    "/lib64": "libraries",
    "/libx32": "libraries",
    "/etc": "configuration of programs, users and certificates",
    "/opt": "programs installed next to those of the system",
    "/nix/store": "programs of Nix",
    "/nix/var/nix/profiles": "programs of Nix",
    "/gnu/store": "programs of Guix",
    "/snap": "programs of snap",
    "/home/linuxbrew/.linuxbrew": "programs of Homebrew",
    "/run/current-system": "programs of NixOS",
    "/run/opengl-driver": "drivers of NixOS",
    "/var/lib/gems": "libraries of Ruby",
}

SYSTEM_SECRETS = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private",
    "/etc/letsencrypt", "/etc/krb5.keytab", "/etc/wireguard", "/etc/openvpn", "/etc/ppp",
    "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/kubernetes",
    "/etc/rancher", "/etc/docker/key.json", "/etc/mysql/debian.cnf", "/etc/postfix/sasl_passwd",
    "/etc/apt/auth.conf", "/etc/apt/auth.conf.d",
)  # fmt: skip
"""Passwords and keys inside system paths."""
_KEYS_DIRECTORY, _KEYS = "/etc/ssh", "*key"

HOME_PLACES = {
    ".gitconfig": "user name and options of git",
    ".config/git/config": "user name and options of git",
    ".config/git/ignore": "ignore rules of git",
    ".config/git/attributes": "attributes of files in git",
    ".gitignore": "ignore rules of git",
    ".gitignore_global": "ignore rules of git",
    ".gitattributes": "attributes of files in git",
    ".local/bin": "programs of the user",
    ".local/lib": "libraries of Python",
    ".local/share/uv": "Python, and programs installed by uv",
    ".local/share/pipx": "programs installed by pipx",
    ".local/pipx": "programs installed by pipx",
    ".local/share/virtualenv": "virtual environments of Python",
    ".local/share/virtualenvs": "virtual environments of Python",
    ".virtualenvs": "virtual environments of Python",
    ".pyenv": "Python",
    ".rye": "Python",
    ".pixi": "Python",
    ".conda": "environments of conda",
    "miniconda3": "conda",
    "miniforge3": "conda",
    "mambaforge": "conda",
    "anaconda3": "conda",
    "micromamba": "conda",
    ".cargo": "Rust programs and packages",
    ".rustup": "Rust",
    ".nvm": "Node.js",
    ".nodenv": "Node.js",
    ".volta": "Node.js",
    ".local/share/fnm": "Node.js",
    ".local/share/pnpm": "pnpm and its packages",
    ".yarn": "yarn and its packages",
    ".bun": "Bun and its packages",
    ".deno": "Deno",
    ".asdf": "versions of programs",
    ".mise": "versions of programs",
    ".local/share/mise": "versions of programs",
    ".local/state/mise": "which projects mise trusts",
    ".config/mise": "versions of programs",
    ".config/direnv": "how direnv works",
    ".local/share/direnv": "which projects direnv trusts",
    ".tool-versions": "versions of programs",
    ".sdkman": "Java",
    ".jenv": "Java",
    ".m2/repository": "packages of Maven",
    ".m2/wrapper": "Maven",
    ".gradle/wrapper": "Gradle",
    ".gradle/jdks": "Java",
    "Android/Sdk": "tools for Android",
    "go/pkg": "packages of Go",
    "go/bin": "programs of Go",
    ".dotnet": ".NET",
    ".nuget/packages": "packages of .NET",
    ".rbenv": "Ruby",
    ".rvm": "Ruby",
    ".local/share/gem": "libraries of Ruby",
    ".ghcup": "Haskell",
    ".cabal/packages": "packages of Haskell",
    ".cabal/store": "packages of Haskell",
    ".opam": "OCaml",
    ".elan": "Lean",
    ".julia/juliaup": "Julia",
    ".julia/packages": "packages of Julia",
    ".julia/compiled": "packages of Julia",
    ".julia/artifacts": "packages of Julia",
    ".pub-cache/hosted": "packages of Dart",
    ".nix-profile": "programs of Nix",
    ".local/state/nix/profiles": "programs of Nix",
    ".guix-profile": "programs of Guix",
    ".linuxbrew": "programs of Homebrew",
    ".ripgreprc": "options of ripgrep",
    ".terminfo": "terminal capabilities",
    ".cache/pypoetry": "packages and environments of Python",
    ".cache/pre-commit": "programs of pre-commit",
    ".cache/pyright-python": "pyright",
    ".cache/node": "package managers of Node.js",
    ".cache/node-gyp": "headers of Node.js",
    ".cache/deno": "packages of Deno",
    ".cache/electron": "Electron",
    ".cache/ms-playwright": "browsers for tests",
    ".cache/puppeteer": "browsers for tests",
    ".cache/Cypress": "browsers for tests",
    ".cache/bazelisk": "Bazel",
    ".cache/coursier": "packages of Scala",
    ".cache/huggingface/hub": "models",
    ".cache/torch": "models",
}
"""Below the home directory. Caches that programs also write are not here, because they are useless
read-only; a setting that makes them writable makes them readable too.
"""

_VARIABLES = {
    "VIRTUAL_ENV": (".",),
    "CONDA_PREFIX": (".",),
    "MAMBA_ROOT_PREFIX": (".",),
    "PYENV_ROOT": (".",),
    "UV_PYTHON_INSTALL_DIR": (".",),
    "UV_TOOL_DIR": (".",),
    "CARGO_HOME": ("bin", "registry", "git"),
    "RUSTUP_HOME": (".",),
    "NVM_DIR": (".",),
    "FNM_DIR": (".",),
    "VOLTA_HOME": (".",),
    "PNPM_HOME": (".",),
    "BUN_INSTALL": ("bin", "install"),
    "DENO_DIR": (".",),
    "GOROOT": (".",),
    "GOPATH": ("bin", "pkg"),
    "GOMODCACHE": (".",),
    "JAVA_HOME": (".",),
    "SDKMAN_DIR": (".",),
    "ASDF_DIR": (".",),
    "ASDF_DATA_DIR": (".",),
    "MISE_DATA_DIR": (".",),
    "RBENV_ROOT": (".",),
    "DOTNET_ROOT": (".",),
    "ANDROID_HOME": (".",),
    "PLAYWRIGHT_BROWSERS_PATH": (".",),
}
"""The user's variables that name such a path, and which part of it is read."""
_BESIDE_PROGRAMS = ("lib", "lib64", "libexec", "pyvenv.cfg")


def find_readable_paths(home: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Existing paths outside the working directories that this user's programs must read."""
    places = [*KERNEL_PLACES, *SYSTEM_PLACES, *(f"{home}/{name}" for name in HOME_PLACES)]
    known = tuple(places)
    for place in _list_variable_paths(environment):
        # A directory that contains the home directory or a whole disk is not a program directory.
        is_wide = count_components(place) < 2 or is_below(home, place)
        if not is_wide and not any(is_below(place, one) for one in known):
            places.append(place)
    return tuple(place for place in dict.fromkeys(places) if os.access(place, os.R_OK))


def find_system_secrets() -> tuple[str, ...]:
    """The passwords and keys inside system paths."""
    keys = sorted(str(path) for path in Path(_KEYS_DIRECTORY).glob(_KEYS))
    return (*SYSTEM_SECRETS, *keys)


def _list_variable_paths(environment: Mapping[str, str]) -> Iterator[str]:
    """Paths in the user's variables, without checks."""
    for name, parts in _VARIABLES.items():
        if environment.get(name, "").startswith("/"):
            yield from (os.path.normpath(f"{environment[name]}/{part}") for part in parts)
    for entry in environment.get("PATH", "").split(os.pathsep):
        if entry.startswith("/"):
            directory = os.path.normpath(entry)
            yield directory
            if directory.endswith(("/bin", "/sbin")):
                above = directory.rpartition("/")[0]
                yield from (f"{above}/{name}" for name in _BESIDE_PROGRAMS)


_BASES = {
    "XDG_CONFIG_HOME": ".config/",
    "XDG_DATA_HOME": ".local/share/",
    "XDG_STATE_HOME": ".local/state/",
    "XDG_CACHE_HOME": ".cache/",
}


class CredentialPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file or directory below the home directory."""

    path: str
    reason: str


class CredentialName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name or a pattern of names."""

    name: str
    reason: str


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All listed credentials."""

    home: tuple[CredentialPath, ...]
    pattern: tuple[CredentialName, ...]
    """Names at the top of the home directory."""
    variable: tuple[CredentialName, ...]
    """The user's variables that name such a path."""


@cache
def load_credentials() -> Credentials:
    """The contents of `credentials.toml`."""
    import tomllib

    text = Path(__file__).with_name("credentials.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Credentials)


def find_credentials(
    home: str, environment: Mapping[str, str], roots: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The paths to hide, whether or not they exist.

    A variable that names a file in a root hides nothing, because the user put it where commands
    work.
    """
    listed = load_credentials()
    found = [
        path for place in listed.home for path in _expand_home_path(home, place.path, environment)
    ]
    found += _find_matching_names(home, [pattern.name for pattern in listed.pattern])
    found += (
        path
        for path in _list_credential_paths(environment, [one.name for one in listed.variable])
        if not is_below(home, path) and not any(is_below(path, root) for root in roots)
    )
    return tuple(dict.fromkeys(found))


def _expand_home_path(home: str, path: str, environment: Mapping[str, str]) -> Iterator[str]:
    yield f"{home}/{path}"
    for variable, usual in _BASES.items():
        base = environment.get(variable, "")
        if base.startswith("/") and path.startswith(usual):
            yield os.path.normpath(f"{base}/{path[len(usual) :]}")


def _find_matching_names(home: str, patterns: list[str]) -> Iterator[str]:
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return
    for name in names:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            yield f"{home}/{name}"


def _list_credential_paths(environment: Mapping[str, str], variables: list[str]) -> Iterator[str]:
    for name in variables:
        for path in environment.get(name, "").split(os.pathsep):
            if path.startswith("/") and not is_below(path, "/dev"):
                yield os.path.normpath(path)
