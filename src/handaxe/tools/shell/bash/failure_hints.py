"""Hints after a failed command: the sandbox or a removed variable may be the reason.

These are hints only, because a full disk or missing rights cause the same messages.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import join, normpath

from handaxe.config.sandbox_options import SandboxOptions
from handaxe.contract.ports.shell import ConfinementLevel
from handaxe.contract.readable_files import ReadableFiles
from handaxe.text.secrets import has_matching_pattern

_FILES = re.compile(
    r"read-only file system|operation not permitted|permission denied|\b(?:EROFS|EPERM|EACCES)\b",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could not resolve|couldn't connect|name or service not known|name resolution"
    r"|network is unreachable|connection refused"
    r"|\b(?:ECONNREFUSED|ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"no such file|not found|cannot (?:access|find|open)|can't open|does not exist|not a git repos"
    r"|permission denied|\b(?:ENOENT|EACCES)\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"""(?<![\w.~/-])(?:\.\.|/)[^\s:;,'"`()\[\]<>]*""")
_MOST_CHARS = 20_000


def build_sandbox_hint(
    command: str,
    output: str,
    level: ConfinementLevel,
    options: SandboxOptions,
    files: ReadableFiles | None = None,
    cwd: str = "/",
) -> str | None:
    """The access that the sandbox may have blocked, and the remedy, or None."""
    limits: list[str] = []
    if files is not None and (hidden := _find_hidden_path(output, files, cwd)) is not None:
        limits.append(f"it cannot read {hidden} unless sandbox.filesystem.allowRead names it")
    if level.files != "open" and _FILES.search(output):
        limits.append("it can write only in the working directories and in $TMPDIR")
    if level.network != "open" and _NETWORK.search(output):
        limits.append(f"it reaches {_describe_network(level, options)}")
    if not limits or _is_ignored(command, output, options.ignore_violations):
        return None
    way_out = " You can ask to run it outside the sandbox (dangerouslyDisableSandbox)."
    hint = f"The sandbox may be the reason: {' and '.join(limits)}."
    return hint + (way_out if options.allow_unsandboxed_commands else "")


def _find_hidden_path(output: str, files: ReadableFiles, cwd: str) -> str | None:
    """A path that the output reports as missing and that the sandbox hides."""
    for line in output[-_MOST_CHARS:].splitlines():
        if not _MISSING.search(line):
            continue
        for named in _PATH.findall(line):
            path = normpath(join(cwd, named))
            if not files.can_read(path):
                return path
    return None


def _describe_network(level: ConfinementLevel, options: SandboxOptions) -> str:
    listed = "sandbox.network.allowedDomains"
    if level.network != "off":
        return f"only hosts that {listed} names, local ones only by their own names"
    return "no host" if options.network.allowed_domains else f"no host, as {listed} names none"


def _is_ignored(command: str, output: str, ignored: Mapping[str, Sequence[str]]) -> bool:
    return any(
        part in output
        for place, parts in ignored.items()
        if place == "*" or place in command
        for part in parts
    )


NOT_FOUND = 127
"""The exit code of shells for an unknown program."""

# Bash prints the message in the user's language; the surrounding text identifies it.
_COMPLAINTS = re.compile(
    r"^bash: \S+ \d+: (?P<bash>[^\s:/]+): [^:\n]+$"
    r"|: \d+: (?P<dash>[^\s:/]+): not found$"
    r"|: command not found: (?P<zsh>[^\s:/]+)$"
    r"|\benv: [‘'`](?P<env>[^\s:/]+)[’']: ",
    re.MULTILINE,
)


def find_missing_program(said: str) -> str | None:
    """The last program that the output reports as missing."""
    named = [found[found.lastgroup or 0] for found in _COMPLAINTS.finditer(said)]
    return named[-1] if named else None


MAX_SHOWN = 6

_FORGE = ("GH_*", "GITHUB_*")
_NPM = ("NPM_*", "NODE_AUTH_TOKEN", "YARN_*", "npm_config_*")
_PYPI = ("TWINE_*", "UV_*", "PYPI_*", "POETRY_*", "FLIT_*", "HATCH_*")
_AWS = ("AWS_*",)
_GOOGLE = ("GOOGLE_*", "GCLOUD_*", "GCP_*", "CLOUDSDK_*")
_AZURE = ("AZURE_*", "ARM_*")
_INFRASTRUCTURE = (
    *_AWS, *_GOOGLE, *_AZURE, "TF_*", "CLOUDFLARE_*", "DIGITALOCEAN_*", "HCLOUD_TOKEN", "VAULT_*",
    "GITHUB_TOKEN",
)  # fmt: skip
PROGRAMS: dict[str, tuple[str, ...]] = {
    "gh": _FORGE,
    "hub": _FORGE,
    "glab": ("GITLAB_*", "GL_*", "CI_JOB_TOKEN"),
    "tea": ("GITEA_*",),
    "git push": (*_FORGE, "GITLAB_*", "GITEA_*", "BITBUCKET_*"),
    "git clone": (*_FORGE, "GITLAB_*", "GITEA_*", "BITBUCKET_*"),
    "git fetch": (*_FORGE, "GITLAB_*", "GITEA_*", "BITBUCKET_*"),
    "git pull": (*_FORGE, "GITLAB_*", "GITEA_*", "BITBUCKET_*"),
    "aws": _AWS,
    "sam": _AWS,
    "cdk": _AWS,
    "eksctl": _AWS,
    "s3cmd": _AWS,
    "serverless": _AWS,
    "gcloud": _GOOGLE,
    "gsutil": _GOOGLE,
    "bq": _GOOGLE,
    "firebase": (*_GOOGLE, "FIREBASE_*"),
    "az": _AZURE,
    "azd": _AZURE,
    "terraform": _INFRASTRUCTURE,
    "tofu": _INFRASTRUCTURE,
    "terragrunt": _INFRASTRUCTURE,
    "pulumi": (*_INFRASTRUCTURE, "PULUMI_*"),
    "ansible-playbook": ("ANSIBLE_*", *_INFRASTRUCTURE),
    "kubectl": ("KUBE*", *_AWS, *_GOOGLE, *_AZURE),
    "helm": ("KUBE*", "HELM_*", *_AWS, *_GOOGLE, *_AZURE),
    "vault": ("VAULT_*",),
    "consul": ("CONSUL_*",),
    "nomad": ("NOMAD_*",),
    "doppler": ("DOPPLER_*",),
    "op": ("OP_*",),
    "bw": ("BW_*",),
    "sops": ("SOPS_*", "AGE_*", *_AWS, *_GOOGLE, *_AZURE),
    "npm publish": _NPM,
    "npm install": _NPM,
    "npm ci": _NPM,
    "npm whoami": _NPM,
    "pnpm publish": _NPM,
    "pnpm install": _NPM,
    "yarn publish": _NPM,
    "yarn npm": _NPM,
    "yarn install": _NPM,
    "bun publish": _NPM,
    "twine": _PYPI,
    "uv publish": _PYPI,
    "poetry publish": _PYPI,
    "hatch publish": _PYPI,
    "flit publish": _PYPI,
    "cargo publish": ("CARGO_*",),
    "gem push": ("GEM_*", "RUBYGEMS_*"),
    "bundle install": ("BUNDLE_*",),
    "dotnet nuget": ("NUGET_*",),
    "nuget": ("NUGET_*",),
    "composer": ("COMPOSER_*",),
    "mvn": ("MAVEN_*", "SONATYPE_*", "GPG_*", "GITHUB_TOKEN"),
    "gradle": ("ORG_GRADLE_*", "SONATYPE_*", "SIGNING_*", "GITHUB_TOKEN"),
    "docker login": ("DOCKER*", *_FORGE, "CI_REGISTRY_*"),
    "docker push": ("DOCKER*", *_FORGE, "CI_REGISTRY_*"),
    "docker compose": ("*",),
    "docker-compose": ("*",),
    "podman login": ("DOCKER*", "CI_REGISTRY_*"),
    "heroku": ("HEROKU_*",),
    "vercel": ("VERCEL_*",),
    "netlify": ("NETLIFY_*",),
    "fly": ("FLY_*",),
    "flyctl": ("FLY_*",),
    "railway": ("RAILWAY_*",),
    "render": ("RENDER_*",),
    "wrangler": ("CLOUDFLARE_*", "CF_*"),
    "doctl": ("DIGITALOCEAN_*",),
    "hcloud": ("HCLOUD_*",),
    "linode-cli": ("LINODE_*",),
    "supabase": ("SUPABASE_*",),
    "stripe": ("STRIPE_*",),
    "twilio": ("TWILIO_*",),
    "sentry-cli": ("SENTRY_*",),
    "datadog-ci": ("DATADOG_*", "DD_*"),
    "snyk": ("SNYK_*",),
    "sonar-scanner": ("SONAR_*",),
    "codecov": ("CODECOV_*",),
    "circleci": ("CIRCLE*",),
    "psql": ("PG*", "POSTGRES_*", "DATABASE_URL"),
    "pg_dump": ("PG*", "POSTGRES_*", "DATABASE_URL"),
    "mysql": ("MYSQL_*",),
    "mysqldump": ("MYSQL_*",),
    "mongosh": ("MONGO*",),
    "redis-cli": ("REDIS*",),
    "prisma": ("*DATABASE_URL", "DIRECT_URL"),
    "alembic": ("*DATABASE_URL", "DB_*"),
    "rails": ("*DATABASE_URL", "RAILS_*", "SECRET_KEY_BASE"),
    "huggingface-cli": ("HF_*", "HUGGING*"),
    "hf": ("HF_*", "HUGGING*"),
    "wandb": ("WANDB_*",),
    "claude": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("OPENAI_*",),
    "gemini": ("GEMINI_*", "GOOGLE_*"),
    "llm": ("*_API_KEY",),
    "aider": ("*_API_KEY",),
    "restic": ("RESTIC_*", *_AWS, "B2_*"),
    "borg": ("BORG_*",),
    "rclone": ("RCLONE_*", *_AWS),
    "sshpass": ("SSHPASS",),
}
"""By the first words of a command: the variables that it may need to log in."""


def explain_removed_variables(
    command: str, said: str, removed: Sequence[str], *, failed: bool
) -> str | None:
    """The removed variables that a command may need, and how to pass them.

    `said` is the end of its output.
    """
    missing = [name for name in removed if _is_expanding(command, name)]
    if failed:
        patterns = _find_needed(command)
        missing += [
            name
            for name in removed
            if name not in missing
            and (has_matching_pattern(name, patterns) or _is_naming(said, name))
        ]
    if not missing:
        return None
    shown = ", ".join(missing[:MAX_SHOWN])
    more = f" and {len(missing) - MAX_SHOWN} more" if len(missing) > MAX_SHOWN else ""
    return (
        f"Commands do not get variables whose names look like secrets: {shown}{more}. To pass "
        "them, the user can list their names in `shell.pass_variables` of the user settings."
    )


def _find_needed(command: str) -> Iterable[str]:
    return [
        pattern
        for words, patterns in PROGRAMS.items()
        if words.partition(" ")[0] in command and re.search(_build_start_pattern(words), command)
        for pattern in patterns
    ]


def _build_start_pattern(words: str) -> str:
    """A pattern for a command that starts with these words anywhere in a script."""
    options = r"(?:\s+-\S+(?:\s+[^\s;&|-]\S*)?)*?\s+"
    spaced = options.join(map(re.escape, words.split()))
    return rf"(?:^|[\s;&|(`/\"']){spaced}(?=$|[\s;&|)`\"'])"


def _is_expanding(command: str, name: str) -> bool:
    return name in command and bool(
        re.search(rf"\$\{{?[#!]?{re.escape(name)}(?![A-Za-z0-9_])", command)
    )


def _is_naming(said: str, name: str) -> bool:
    return name in said and bool(
        re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", said)
    )
