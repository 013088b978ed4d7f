"""The sandbox of a session: choose the backend and wrap each command."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from handaxe.contract.faults.shell import NoSandbox
from handaxe.contract.ports.shell import AssistedSpawn, ConfinedCommand, ConfinementLevel, Confiner
from handaxe.contract.readable_files import ReadableFiles, is_below
from handaxe.disk.private import make_private
from handaxe.disk.safe_open import resolve_links
from handaxe.shell.analysis.analyzer import analyze
from handaxe.shell.sandbox import bubblewrap, landlock, mount_points, seccomp
from handaxe.shell.sandbox.backend import SandboxBackend, find_backend
from handaxe.shell.sandbox.command_resources import CommandCleanup, can_pin
from handaxe.shell.sandbox.host_allowlist import can_be_private, explain_denial
from handaxe.shell.sandbox.protected_files import CannotSave, ProtectedPathGuard
from handaxe.shell.sandbox.proxy import (
    PORT,
    FilteringProxy,
    ProxyConnection,
    build_proxy_environment,
    wrap_with_listener,
)
from handaxe.shell.sandbox.readonly_paths import (
    NO_RULES,
    Protection,
    ProtectionFinder,
    RootPathRules,
)
from handaxe.shell.sandbox.sandbox_policy import (
    SandboxPolicy,
    drop_replaced_paths,
    find_readable_files,
    is_closed,
    is_readable,
)
from handaxe.shell.sandbox.seccomp import open_content_fd
from handaxe.shell.sandbox.state_store import close_store

_INTERPRETERS = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
_OWN_PLACES = (sys.prefix, sys.base_prefix)
"""Paths of the running Python; shown if a Python program must run inside."""


class SandboxRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for the sandbox besides the policy."""

    enabled: bool = False
    must_hold: bool = True
    """Whether a command is refused if it cannot be sandboxed."""
    must_be_strong: bool | None = None
    """Whether Landlock, which protects less, is rejected; None: only if it is too weak."""
    may_leave: bool = True
    """Whether a command may ask to run outside."""
    is_excluded: Callable[[str], bool] = lambda _: False
    """Whether settings let this command run outside."""
    ignored: Mapping[str, tuple[str, ...]] = {}
    """Refusals that are not reported: a part of the command (`*`: any) to parts of the sentence."""
    bwrap: str | None = None


class LocalConfiner(Confiner):
    """Sandboxes commands with the means of this machine."""

    def __init__(
        self,
        wanted: Callable[[], SandboxRequirements],
        policy: Callable[[], SandboxPolicy],
        *,
        ruled: Callable[[], RootPathRules] = lambda: NO_RULES,
        ledger: str | None = None,
        means: SandboxBackend | None = None,
        interpreter: str | None = None,
        recovered: tuple[str, ...] = (),
    ) -> None:
        """All arguments are evaluated for every command.

        `ruled` tells which files in a root rules protect from reading or changes. `ledger` is a
        directory for cleanup after a killed process. `recovered` are notes about such a cleanup,
        for the next command.
        """
        self._wanted = wanted
        self._policy = lambda: drop_replaced_paths(policy())
        self._ruled = ruled
        self._ledger = ledger
        self._given_means = means
        self._found: tuple[tuple[tuple[str, ...], str | None], SandboxBackend] | None = None
        self._interpreter = interpreter
        self._finder = ProtectionFinder()
        self._recovered = recovered
        self._proxies: dict[tuple[tuple[str, ...], tuple[str, ...]], FilteringProxy] = {}

    @property
    def level(self) -> ConfinementLevel:
        """The restrictions of sandboxed programs."""
        wanted = self._wanted()
        if not wanted.enabled:
            return ConfinementLevel(means="none", network="open", files="open")
        policy = self._policy()
        means = self._choose_backend(policy, wanted)
        if means.name == "none":
            notes = (f"Commands are not sandboxed: {means.problem}.",)
            return ConfinementLevel(means="none", network="open", files="open", notes=notes)
        return ConfinementLevel(
            means=means.name,
            network="off"
            if means.name == "landlock" and policy.network == "listed"
            else policy.network,
            files="roots" if policy.confines_files else "open",
            notes=landlock.list_shortcomings(policy) if means.name == "landlock" else (),
        )

    def is_confining(self, command: str, *, unconfined: bool = False) -> bool:
        """Whether this command would run inside."""
        wanted = self._wanted()
        if not wanted.enabled or (unconfined and wanted.may_leave):
            return False
        if self._choose_backend(self._policy(), wanted).name == "none":
            return False
        return not wanted.is_excluded(command)

    def get_readable_files(self) -> ReadableFiles | None:
        """The files that sandboxed programs can read; None if reading is not limited."""
        return find_readable_files(self._policy())

    def explain_closed_host(self, host: str) -> str | None:
        """Why programs started here cannot connect to a host; None if they can."""
        if not self._wanted().enabled:
            return None
        return explain_denial(host.strip("[]"), self._policy().denied_domains)

    def confine(
        self,
        argv: list[str],
        *,
        cwd: str,
        env: dict[str, str],
        unconfined: bool = False,
        command: str | None = None,
    ) -> ConfinedCommand:
        """How to start `argv`."""
        wanted = self._wanted()
        outside = ConfinedCommand(
            list(argv), dict(env), close=self.take_recovered, is_confined=False
        )
        if not wanted.enabled or (unconfined and wanted.may_leave):
            return outside
        if command is not None and wanted.is_excluded(command):
            return outside
        policy = self._policy()
        means = self._choose_backend(policy, wanted)
        found = None
        if means.name == "landlock" or command is None or not analyze(command).only_reads:
            found = self._finder.find(policy, self._ruled())
            hidden = found.hidden
        else:
            # Nothing to write to, so nothing that has to be kept from being written.
            hidden = self._finder.hidden(policy, self._ruled())
        if hidden:
            policy = msgspec.structs.replace(policy, deny_read=(*policy.deny_read, *hidden))
        problem = _find_obstacle(policy, means)
        if problem is not None:
            if wanted.must_hold:
                raise NoSandbox(why=problem)
            return outside
        make_private(Path(policy.temp_directory))
        env = {**env, **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), policy.temp_directory)}
        argv = _move_loader_variables(argv, env)
        try:
            if means.name == "landlock":
                confined = self._confine_by_landlock(policy, found or Protection(), argv, env)
            else:
                confined = self._confine_by_bubblewrap(
                    policy, found, means.program or "bwrap", [*argv], env, cwd
                )
        except CannotSave as error:
            if wanted.must_hold:
                raise NoSandbox(why=str(error)) from None
            return outside
        _suppress_refusals(confined, wanted.ignored, command or " ".join(argv))
        return confined

    def hidden(self) -> tuple[str, ...]:
        """The paths that sandboxed programs may not read."""
        policy = self._policy()
        return (*policy.deny_read, *self._finder.hidden(policy, self._ruled()))

    def build_closed_view(self) -> list[str] | None:
        """The view of programs that can read only listed paths, as bubblewrap options."""
        policy = self._policy()
        return bubblewrap.build_read_only_view(policy) if is_closed(policy) else None

    def close(self) -> None:
        """Stop the proxies, and remove the data saved for commands."""
        while self._proxies:
            self._proxies.popitem()[1].close()
        if self._ledger is not None:
            close_store(self._ledger)

    def _choose_backend(self, policy: SandboxPolicy, wanted: SandboxRequirements) -> SandboxBackend:
        found = self._find_strongest(policy, wanted)
        if found.name != "landlock" or wanted.must_be_strong is False:
            return found
        problem = found.landlock_weakness
        if wanted.must_be_strong:
            problem = "Landlock is too weak for `sandbox.failIfWeak`"
        if problem is None:
            return found
        return msgspec.structs.replace(found, name="none", landlock_problem=problem)

    def _find_strongest(self, policy: SandboxPolicy, wanted: SandboxRequirements) -> SandboxBackend:
        if self._given_means is not None:
            return self._given_means
        asked = (tuple(policy.roots), wanted.bwrap)
        if self._found is None or self._found[0] != asked:
            self._found = (asked, find_backend(policy.roots, bwrap=wanted.bwrap))
        return self._found[1]

    def _confine_by_bubblewrap(
        self,
        policy: SandboxPolicy,
        found: Protection | None,
        program: str,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
    ) -> ConfinedCommand:
        protection, guard = self._watch(policy, found)
        door: ProxyConnection | None = None
        descriptors: list[int] = []
        last = argv
        if policy.network == "listed":
            python = self._find_python(policy)
            door = self._door(policy)
            argv = wrap_with_listener(argv, door.descriptor, python)
            descriptors.append(door.descriptor)
            local = can_be_private("localhost", policy.allowed_domains)
            env = {**env, **build_proxy_environment(reaches_local=local)}
        filter_fd = open_content_fd(seccomp.build_filter(unix_sockets=policy.has_unix_sockets))
        masks = mount_points.acquire_mount_points(protection.missing, self._ledger)
        options = bubblewrap.build_arguments(
            policy,
            protection,
            masks=masks,
            cwd=cwd,
            seccomp_fd=filter_fd,
            visible=_OWN_PLACES if door else (),
            is_reading=found is None,
        )
        closing = CommandCleanup(
            filter_fd,
            door=door,
            masks=(masks, self._ledger),
            guard=guard,
            told=self.take_recovered(),
        )
        if can_pin(program):
            options = closing.pin(options, policy.roots)
        lent = None
        if bubblewrap.OWN_NETWORK in options:
            kept = [option for option in options if option != bubblewrap.OWN_NETWORK]
            lent = AssistedSpawn([program, *kept, *last], door and door.descriptor, PORT)
        return ConfinedCommand(
            [program, *options, *argv],
            env,
            (*closing.descriptors, *descriptors),
            closing,
            lent=lent,
        )

    def _watch(
        self, policy: SandboxPolicy, found: Protection | None
    ) -> tuple[Protection, ProtectedPathGuard | None]:
        """Save the protected paths that no mount protects; mount those that cannot be saved."""
        if found is None or not policy.confines_files:
            return Protection(), None
        while True:
            masked = found.names.found.union(found.missing)
            try:
                return found, ProtectedPathGuard(
                    found.watched,
                    policy,
                    ledger=self._ledger,
                    names=msgspec.structs.replace(found.names, found=masked),
                    look_again=lambda: self._finder.names(policy, self._ruled()),
                )
            except CannotSave as error:
                if error.path not in found.watched:
                    raise
                found = msgspec.structs.replace(
                    found,
                    fixed=(*found.fixed, error.path),
                    watched=tuple(path for path in found.watched if path != error.path),
                )

    def take_recovered(self) -> tuple[str, ...]:
        """Notes about files restored after a killed process, once."""
        told, self._recovered = self._recovered, ()
        return told

    def _confine_by_landlock(
        self, policy: SandboxPolicy, found: Protection, argv: list[str], env: dict[str, str]
    ) -> ConfinedCommand:
        protected = dict.fromkeys((*found.fixed, *found.watched, *found.missing))
        guard = ProtectedPathGuard(
            tuple(protected),
            policy,
            ledger=self._ledger,
            directories=found.anchored,
            names=found.names,
            must_be_whole=True,
            look_again=lambda: self._finder.names(policy, self._ruled()),
        )
        plan_fd = open_content_fd(landlock.build_plan(policy))
        filter_fd = open_content_fd(
            seccomp.build_filter(
                unix_sockets=policy.has_unix_sockets,
                internet=policy.network == "open",
                shares_processes=True,
            )
        )
        start = [self._interpreter or sys.executable, "-I", "-S", landlock.LAUNCHER]
        return ConfinedCommand(
            [*start, str(plan_fd), str(filter_fd), *argv],
            env,
            (plan_fd, filter_fd),
            CommandCleanup(plan_fd, filter_fd, guard=guard, told=self.take_recovered()),
            lent=AssistedSpawn(argv, plan=(plan_fd, filter_fd)),
        )

    def _door(self, policy: SandboxPolicy) -> ProxyConnection:
        # A command keeps the lists it was started with, whatever settings say later.
        lists = (policy.allowed_domains, policy.denied_domains)
        if lists not in self._proxies:
            self._proxies[lists] = FilteringProxy(*lists)
        return self._proxies[lists].open()

    def _find_python(self, policy: SandboxPolicy) -> str:
        for place in (self._interpreter, *_INTERPRETERS):
            if not place or not os.access(place, os.X_OK):
                continue
            real = resolve_links(place)
            is_ours = is_closed(policy) and any(is_below(real, own) for own in _OWN_PLACES)
            if is_ours or is_readable(policy, real):
                return place
        raise NoSandbox(why="no Python can be read inside it, which listed hosts need")


def _suppress_refusals(
    confined: ConfinedCommand, ignored: Mapping[str, tuple[str, ...]], command: str
) -> None:
    parts = [
        part
        for place, texts in ignored.items()
        if place == "*" or place in command
        for part in texts
    ]
    if parts:
        tell = confined.close
        confined.close = lambda: tuple(
            sentence for sentence in tell() if not any(part in sentence for part in parts)
        )


def _move_loader_variables(argv: list[str], env: dict[str, str]) -> list[str]:
    """Move variables that load libraries out of `env`, so that they apply only inside."""
    moved = [name for name in env if name.startswith(("LD_", "GLIBC_"))]
    if not moved:
        return argv
    return ["/usr/bin/env", *(f"{name}={env.pop(name)}" for name in moved), *argv]


def _find_obstacle(policy: SandboxPolicy, means: SandboxBackend) -> str | None:
    """Why the backend cannot enforce a policy."""
    if means.name == "none":
        return means.problem
    hidden = landlock.find_denied_in_roots(policy) if means.name == "landlock" else []
    return f"Landlock cannot hide {hidden[0]} inside a working directory" if hidden else None
