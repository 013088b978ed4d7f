"""Programs with subcommands, and the global options before the subcommand."""

from __future__ import annotations

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.wrappers import get_program_name

_GIT_VALUED = split_names(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --list-cmds"
)
PLAIN_GIT_GLOBALS = split_names(
    "--no-pager -P --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice "
    "--literal-pathspecs --glob-pathspecs --noglob-pathspecs"
)
"""Options before the subcommand that change neither what runs nor where."""
_GIT_FLAGS = PLAIN_GIT_GLOBALS | split_names(
    "--icase-pathspecs --paginate -p --bare --html-path --man-path --info-path --version -v "
    "--help -h --exec-path"
)
_GIT_COMMANDS = split_names(
    "add am annotate apply archimport archive bisect blame branch bugreport bundle cat-file "
    "check-attr check-ignore check-mailmap checkout checkout-index check-ref-format cherry "
    "cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects "
    "credential credential-cache credential-store cvsexportcommit cvsimport cvsserver daemon "
    "describe diagnose diff diff-files diff-index difftool diff-pairs diff-tree fast-export "
    "fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo "
    "format-patch fsck fsck-objects gc get-tar-commit-id gitk grep gui hash-object help hook "
    "http-backend http-fetch http-push imap-send index-pack init init-db instaweb "
    "interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge "
    "merge-base merge-file merge-index merge-one-file mergetool merge-tree mktag mktree "
    "multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune "
    "prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog refs "
    "remote repack replace replay repo request-pull rerere reset restore revert rev-list "
    "rev-parse rm scalar send-email send-pack shell shortlog show show-branch show-index show-ref "
    "sh-i18n sh-setup sparse-checkout stage stash status stripspace submodule svn switch "
    "symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info "
    "upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged "
    "worktree write-tree"
)
WITH_SUBCOMMANDS = split_names(
    "git docker podman kubectl helm npm yarn pnpm bun cargo go uv pip pip3 poetry aws gcloud "
    "az gh glab systemctl terraform tofu brew apt apt-get yum dnf pacman apk make hg svn jj "
    "composer bundle gem mix rails flutter dart dotnet conda mamba heroku vercel netlify fly "
    "firebase wrangler supabase snap flatpak launchctl ip nmcli virsh vagrant ansible crontab "
    "redis-cli psql mysql nix openssl oc k9s argocd istioctl docker-compose rustup deno npx "
    "task just"
)


def skip_git_globals(args: list[Field]) -> list[Field]:
    """The subcommand of git and everything after it."""
    at = _count_git_globals(args)
    return args[at:]


def is_flag(program: str | None, option: str) -> bool:
    """Whether the word after an option is certainly not its value."""
    return "=" in option or (program == "git" and option in _GIT_FLAGS)


def make_unknown_subcommand(fields: list[Field]) -> list[Field] | None:
    """The program with any subcommand, for a possible alias."""
    program = get_program_name(fields[0])
    if program not in WITH_SUBCOMMANDS or len(fields) < 2:
        return None
    if program == "git":
        rest = _strip_git_globals(fields) or [fields]
        word = rest[0][1] if len(rest[0]) > 1 else fields[1]
        if word.known is None or word.value.startswith("-") or word.value in _GIT_COMMANDS:
            return None
    elif not any("alias" in field.value for field in fields[1:]):
        return None
    return [fields[0], Field("unknown", "", fields[1].text, single=False)]


def strip_global_options(fields: list[Field]) -> list[list[Field]]:
    """The command without options before the subcommand, in every plausible reading."""
    program = get_program_name(fields[0])
    if program not in WITH_SUBCOMMANDS or len(fields) < 3 or not fields[1].may_be_option:
        return []
    if program == "git":
        return _strip_git_globals(fields)
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


def _strip_git_globals(fields: list[Field]) -> list[list[Field]]:
    rest = skip_git_globals(fields[1:])
    return [[fields[0], *rest]] if rest else []


def _count_git_globals(args: list[Field]) -> int:
    at = 0
    while at < len(args) and (args[at].value.startswith("-") or args[at].known is None):
        at += 2 if args[at].value in _GIT_VALUED else 1
    return at
