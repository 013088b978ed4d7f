"""Paths that make other programs run code or relax permissions.

No rule can allow writing to a protected path. Names are compared case-insensitively at any depth,
whether or not they exist: `.GIT/config` is `.git/config` on many file systems, and a missing file
can be created and read later.

handaxe's own data and settings are protected as whole directories, because they decide what is
trusted, what is undone and which programs run.
"""

from collections.abc import Sequence

from handaxe.text.paths import is_inside, normalize
from handaxe.text.secrets import fold_name

_VERSION_CONTROL = """
    .git .hg .svn .jj .sl .bzr .gitconfig .gitmodules .githooks .hgrc .husky .lefthook
    .pre-commit-config.yaml .pre-commit-hooks.yaml .overcommit.yml
    lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml
    lefthook-local.yml lefthook-local.yaml .lefthook-local.yml .lefthook-local.yaml
"""
_EDITORS = """
    .vscode .vscode-server .idea .fleet .zed .vs .nova .devcontainer .devcontainer.json
    .vim .vimrc .gvimrc .exrc .nvimrc .nvim.lua .ideavimrc .emacs .emacs.d .dir-locals.el
    .spacemacs .doom.d pyrightconfig.json .gdbinit .lldbinit .pdbrc
"""
_SHELLS_AND_LOGINS = """
    .bashrc .bash_profile .bash_login .bash_aliases .bash_logout .bashrc.d
    .zshrc .zprofile .zshenv .zlogin .zlogout .profile .kshrc .mkshrc .cshrc .tcshrc .login
    .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc .xresources .pam_environment
    .tmux.conf .screenrc .envrc .direnvrc .mise.toml mise.toml .tool-versions .ssh .gnupg
"""
_PACKAGES_AND_BUILDS = """
    .cargo .yarn .mvn .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs
    bunfig.toml .bunfig.toml .bazelrc .bazelversion .bazeliskrc .condarc .pypirc .gemrc .irbrc
    .rprofile gradle-wrapper.properties gradle-wrapper.jar maven-wrapper.properties
    maven-wrapper.jar sitecustomize.py usercustomize.py .ripgreprc .curlrc .wgetrc .netrc
    .aws .kube .docker
"""
_AGENTS_AND_SERVERS = """
    .handaxe handaxe-trust.json handaxe-logins managed-settings.json managed-settings.d .claude
    .claude.json .mcp.json claude_desktop_config.json .cursor .codex .gemini
    .opencode opencode.json .windsurf .continue .kiro .roo .cline .goose .crush.json
    .aider.conf.yml
"""
PROTECTED_NAMES = frozenset(
    (
        _VERSION_CONTROL
        + _EDITORS
        + _SHELLS_AND_LOGINS
        + _PACKAGES_AND_BUILDS
        + _AGENTS_AND_SERVERS
    ).split()
)
"""In lower case."""
PROTECTED_ENDINGS = (".git", ".code-workspace", ".sublime-project")
"""Suffixes of bare repositories and workspace files."""
_REPOSITORY = ".git"
"""A name with this suffix is a repository only if a path continues below it."""
_BELOW_CONFIG = """
    git fish zsh nvim vim emacs helix zed code vscodium autostart systemd environment.d direnv
    mise pip uv nushell
"""
PROTECTED_PAIRS = frozenset((".config", name) for name in _BELOW_CONFIG.split()) | {
    ("library", "launchagents"),
    (".local", "bin"),
}
_FIRST_OF_PAIRS = frozenset(first for first, _ in PROTECTED_PAIRS)
UNPROTECTED_INSIDE = frozenset({"worktrees", "agent-memory", "agent-memory-local"})
"""Parts of `.claude` that are judged by their own names."""


def find_protected_name(path: str) -> str | None:
    """The part of an absolute path that makes it protected, if any."""
    folded = (
        path.lower().split("/") if path.isascii() else [fold_name(part) for part in path.split("/")]
    )
    if PROTECTED_NAMES.isdisjoint(folded) and _FIRST_OF_PAIRS.isdisjoint(folded):
        for name in folded:
            if name.endswith(PROTECTED_ENDINGS):
                break
        else:
            return None
    return _find_first_protected(path.split("/"), folded)


def _find_first_protected(parts: Sequence[str], folded: Sequence[str]) -> str | None:
    for at, name in enumerate(folded):
        is_name = name in PROTECTED_NAMES or (
            name.endswith(PROTECTED_ENDINGS)
            and not (name.endswith(_REPOSITORY) and at == len(folded) - 1)
        )
        if is_name and not _is_passed_through(parts, at):
            return parts[at]
        if name in _FIRST_OF_PAIRS and tuple(folded[at : at + 2]) in PROTECTED_PAIRS:
            return f"{parts[at]}/{parts[at + 1]}"
    return None


def _is_passed_through(parts: Sequence[str], at: int) -> bool:
    """Whether this `.claude` only leads to a checkout or an agent's memory."""
    return parts[at] == ".claude" and len(parts) > at + 2 and parts[at + 1] in UNPROTECTED_INSIDE


class OwnPaths:
    """The data and settings of handaxe and its ecosystem; false if empty."""

    __slots__ = ("_folded", "_prefixes", "above", "paths")

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(dict.fromkeys(normalize(path) for path in paths))
        self._folded = {fold_path(path): path for path in self.paths}
        self._prefixes = tuple(f"{path}/" for path in self._folded)
        self.above = frozenset(above for path in self._folded for above in _list_parents(path))
        """Every directory above one of them, folded: moving it moves them."""

    def restrict_to(self, roots: Sequence[str]) -> "OwnPaths":
        """The same, with only directories below some roots above them."""
        folded = tuple(f"{fold_path(root).rstrip('/')}/" for root in roots)
        seen = OwnPaths(self.paths)
        seen.above = frozenset(place for place in self.above if place.startswith(folded))
        return seen

    def __bool__(self) -> bool:
        return bool(self.paths)

    def below(self, roots: Sequence[str]) -> "OwnPaths":
        """The protected paths inside some directories."""
        found = [path for path in self.paths if any(is_inside(path, root) for root in roots)]
        return OwnPaths(found) if found else NO_PLACES

    def around(self, path: str) -> str | None:
        """The own directory that a path is or is in."""
        folded = fold_path(path)
        if not folded.startswith(self._prefixes) and folded not in self._folded:
            return None
        return next(own for name, own in self._folded.items() if is_inside(folded, name))

    def find_changed(self, path: str) -> str | None:
        """The own directory that changing a path would change: it, one above or one around it."""
        folded = fold_path(path)
        own = self.around(path)
        if own is not None:
            inside = folded[len(fold_path(own)) + 1 :].partition("/")
            return None if inside[0] in UNPROTECTED_INSIDE and inside[2] else own
        if folded not in self.above:
            return None
        return next(own for name, own in self._folded.items() if is_inside(name, folded))


def fold_path(path: str) -> str:
    """A path normalized for comparison."""
    if path.isascii():
        return path.lower()
    return "/".join(fold_name(part) for part in path.split("/"))


def _list_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(1, len(parts))]


NO_PLACES = OwnPaths(())
