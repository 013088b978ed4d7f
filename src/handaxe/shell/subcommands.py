"""Programs with sub-commands, and the global options that may stand before the sub-command."""

from __future__ import annotations

from handaxe.shell.fields import Field
from handaxe.shell.runners import program_name
from handaxe.shell.tables import names

_GIT_VALUED = names(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr- source"
)
WITH_SUBCOMMANDS = names(
    "git docker podman kubectl helm npm yarn pnpm bun cargo go uv pip pip3 poetry aws gcloud "
    "az gh glab systemctl terraform tofu brew apt apt-get yum dnf pacman apk make hg svn jj "
    "composer bundle gem mix rails flutter dart dotnet conda mamba heroku vercel netlify fly "
    "firebase wrangler supabase snap flatpak launchctl ip nmcli virsh vagrant ansible crontab "
    "redis-cli psql mysql nix openssl oc k9s argocd istioctl docker-compose rustup deno npx "
    "task just"
)


def without_global_options(fields: list[Field]) -> list[list[Field]]:
    """The same command with options before the sub-command left out, in every plausible reading."""
    program = program_name(fields[0])
    if program not in WITH_SUBCOMMANDS or len(fields) < 3 or not fields[1].may_be_option:
        return []
    if program == "git":
        return _exact_git(fields)
    found: list[list[Field]] = []
    for index in range(1, len(fields)):
        field = fields[index]
        if field.may_be_option and field.known is not None:
            continue
        before = fields[index - 1].value
        found.append([fields[0], *fields[index:]])
        if not before.startswith("-") or "=" in before:
            break
    return found


def _exact_git(fields: list[Field]) -> list[list[Field]]:
    at = 1
    while at < len(fields) and (fields[at].value.startswith("-") or fields[at].known is None):
        at += 2 if fields[at].value in _GIT_VALUED else 1
    return [[fields[0], *fields[at:]]] if at < len(fields) else []
