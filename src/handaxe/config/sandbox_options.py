"""The options of the sandbox; `handaxe.shell.sandbox` enforces them."""

from typing import Annotated

import msgspec


class _Options(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    pass


class SandboxFileOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """Which files a sandboxed command reaches."""

    allow_write: Annotated[tuple[str, ...], "More places a command may write to."] = ()
    deny_write: Annotated[tuple[str, ...], "Places a command may not write to."] = ()
    allow_read: Annotated[tuple[str, ...], "More places a command may read."] = ()
    deny_read: Annotated[tuple[str, ...], "Places a command may not read."] = ()
    allow_managed_read_paths_only: Annotated[
        bool, "Use only `allowRead` of managed settings; ignored in other settings."
    ] = False
    hide_secrets: Annotated[
        bool, "Hide passwords, keys and tokens, such as `~/.ssh`, `~/.aws` and `/etc/shadow`."
    ] = True
    disabled: Annotated[
        bool, "Leave files out of the sandbox; commands then ask as without a sandbox."
    ] = False


class SandboxNetworkOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """Which hosts a sandboxed command reaches."""

    allowed_domains: Annotated[tuple[str, ...], "Hosts a command may reach; none by default."] = ()
    denied_domains: Annotated[tuple[str, ...], "Hosts a command may not reach."] = ()
    strict_allowlist: Annotated[
        bool, "Refuse other hosts without a question; handaxe always does."
    ] = False
    allow_managed_domains_only: Annotated[
        bool, "Allow only hosts of managed settings; ignored in other settings."
    ] = False
    allow_unix_sockets: Annotated[
        tuple[str, ...], "Unix sockets for commands; with an entry they can open others they see."
    ] = ()
    allow_all_unix_sockets: Annotated[bool, "Let commands open any Unix socket they can see."] = (
        False
    )
    allow_local_binding: Annotated[
        bool, "Let commands listen on local ports; they always can in their own network."
    ] = False


class SandboxOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """How commands are confined."""

    enabled: Annotated[bool, "Run commands inside the operating system's sandbox."] = False
    fail_if_unavailable: Annotated[bool, "Refuse commands if no sandbox is available."] = True
    auto_allow_bash_if_sandboxed: Annotated[
        bool,
        "Sandboxed commands need no question; they can read only the working directories, the "
        "system, toolchains and what `filesystem.allowRead` names.",
    ] = True
    fail_if_weak: Annotated[
        bool | None,
        "Run no command where the sandbox is only a weak one. Unless it is `false`, none runs "
        "where a command could keep protected files from being put back.",
    ] = None
    allow_unsandboxed_commands: Annotated[bool, "Allow a command to request to run outside it."] = (
        True
    )
    excluded_commands: Annotated[
        tuple[str, ...], "Commands that run outside the sandbox, as Bash rules write them."
    ] = ()
    ignore_violations: Annotated[
        dict[str, tuple[str, ...]],
        "Refusals that are not reported: by a part of the command, or `*`, parts of the message.",
    ] = {}
    bwrap_path: Annotated[str | None, "The bubblewrap program to use."] = None
    filesystem: SandboxFileOptions = SandboxFileOptions()
    network: SandboxNetworkOptions = SandboxNetworkOptions()
