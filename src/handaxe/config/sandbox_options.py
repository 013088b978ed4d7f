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
        bool, "Only `allowRead` of managed settings counts; counts in managed settings only."
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
        bool, "Only hosts that managed settings allow count; counts in managed settings only."
    ] = False
    allow_unix_sockets: Annotated[
        tuple[str, ...], "Unix sockets a command may connect to; lets it open others it can see."
    ] = ()
    allow_all_unix_sockets: Annotated[bool, "A command may open any Unix socket it can see."] = (
        False
    )
    allow_local_binding: Annotated[
        bool, "A command may listen on local ports; in a network of its own it always may."
    ] = False


class SandboxOptions(_Options, frozen=True, kw_only=True, rename="camel"):
    """How commands are confined."""

    enabled: Annotated[bool, "Run commands inside the operating system's sandbox."] = False
    fail_if_unavailable: Annotated[bool, "Run no command where there is no sandbox."] = True
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
    allow_unsandboxed_commands: Annotated[bool, "A command may ask to run outside of it."] = True
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
