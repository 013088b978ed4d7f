import pytest

from handaxe.permission.protected_paths import find_protected_name

PROTECTED = """
.git/config .git/hooks/pre-commit .GIT/config .Git .gitmodules .gitconfig .config/git/config
.CONFIG/Git/attributes .vscode/settings.json .VSCode/tasks.json .idea/workspace.xml
.husky/pre-push .cargo/config.toml .devcontainer/devcontainer.json .devcontainer.json
.yarn/plugins/x.cjs .mvn/extensions.xml .claude/settings.json .claude/hooks/x.sh
.claude/agents/a.md .claude .claude/worktrees .CLAUDE/worktrees/x/a.py .handaxe/settings.json
.HANDAXE/settings.local.json .mcp.json .MCP.json .claude.json .bashrc .BASHRC .bash_profile
handaxe-trust.json etc/managed-settings.json managed-settings.d/a.json
.bash_login .bash_aliases .bash_logout .zshrc .zprofile .zshenv .zlogin .zlogout .profile .envrc
.npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs bunfig.toml .bunfig.toml
.bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml lefthook.yaml
.lefthook.yml .lefthook.yaml gradle/wrapper/gradle-wrapper.properties maven-wrapper.properties
.ripgreprc pyrightconfig.json .cursor/mcp.json .codex/config.toml .gemini/settings.json .hg/hgrc
.ssh/authorized_keys .vimrc .exrc .emacs.d/init.el sitecustomize.py server.git/config
project.code-workspace .githooks/x .config/fish/config.fish .config/systemd/user/x.service
.config/autostart/x.desktop Library/LaunchAgents/x.plist
"""
ORDINARY = """
a.py .gitignore .gitattributes .github/workflows/ci.yml git/config config/git src/git.py
.claude/worktrees/fix/src/a.py .config/other/x CLAUDE.md AGENTS.md README.md settings.json
vscode/settings.json .vscodex profile.py .profiles bashrc x.gitx env .env Makefile package.json
.editorconfig hooks/useThing.ts src/hooks.py docs/.gitkeep pyproject.toml a.git
"""


@pytest.mark.parametrize("name", PROTECTED.split())
@pytest.mark.parametrize("where", ["/repo/", "/repo/deep/er/", "/home/dev/", "/"])
def test_a_path_that_makes_programs_run_code_is_protected(name, where):
    assert find_protected_name(where + name) is not None


@pytest.mark.parametrize("name", ORDINARY.split())
@pytest.mark.parametrize("where", ["/repo/", "/repo/deep/er/"])
def test_an_ordinary_path_is_not_protected(name, where):
    assert find_protected_name(where + name) is None


def test_a_checkout_below_worktrees_is_protected_by_its_own_names():
    assert find_protected_name("/repo/.claude/worktrees/fix/.git") == ".git"
    assert find_protected_name("/repo/.claude/worktrees/fix/.claude/settings.json") == ".claude"


@pytest.mark.parametrize("name", [".g\u200cit", ".\uff47it", ".gi\u0131t"[:3] + "t", ".G\u0130T"])
def test_other_spellings_of_a_name_are_seen_through(name):
    folded = find_protected_name(f"/repo/{name}/config")
    assert (folded is not None) is (name != ".G\u0130T")
