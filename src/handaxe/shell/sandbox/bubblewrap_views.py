"""The views of paths in a bubblewrap sandbox: shown, read-only or hidden."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handaxe.contract.readable_files import count_components, is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.shell.sandbox.mount_points import is_for_directory
from handaxe.shell.sandbox.readonly_paths import Protection
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy, is_closed, is_readable

_OWN_VIEWS = ("/proc", "/dev")
"""Where a command has its own files instead of the machine's."""


class ExistingPaths(NamedTuple):
    """The existing paths of a policy, checked for every command."""

    writable: tuple[str, ...]
    readable: tuple[str, ...]
    """Roots that are read-only this time."""
    allowed: tuple[str, ...]
    denied_files: tuple[str, ...]
    denied_directories: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    """Links on the way to readable paths, with their targets."""
    empty: frozenset[str] = frozenset()
    """Empty readable directories."""


def build_views(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: ExistingPaths
) -> list[str]:
    """Every path with its own view, wider ones first, so that the more specific wins."""
    # A path in a hidden directory must not reappear through its own view.
    steps = [
        step
        for step in _build_visible_steps(policy, protection, masks, here)
        if is_readable(policy, step.path)
    ]
    steps += [_Step(1, path, ("--ro-bind", path, path)) for path in _find_resolver_file(policy)]
    skeleton = [*_build_skeleton(policy, here, steps)] if is_closed(policy) else []
    steps += [*_build_hidden_steps(policy, here, steps), *skeleton]
    steps += _build_anchors(here, steps)
    steps.sort(
        key=lambda step: (_is_apart(step, steps), count_components(step.path), step.rank, step.path)
    )
    return [option for step in steps for option in step.options]


def is_replaced(path: str) -> bool:
    """Whether commands have their own view of a path anyway."""
    return is_below(path, "/tmp") or is_below(path, "/run")  # noqa: S108 - the name, not a file


class _Step(NamedTuple):
    rank: int
    path: str
    options: tuple[str, ...]


def _find_resolver_file(policy: SandboxPolicy) -> list[str]:
    """The file below `/run` that host name lookup often needs."""
    if policy.network != "open":
        return []
    real = resolve_links("/etc/resolv.conf")
    return [real] if is_below(real, "/run") else []


def _build_anchors(here: ExistingPaths, steps: Sequence[_Step]) -> list[_Step]:
    """Protect every directory above a view from being renamed and replaced.

    A mount point cannot be renamed, but the directories above it could.
    """
    kinds = {step.path: step.options[0] for step in steps}
    found: dict[str, _Step] = {}
    for step in steps:
        way: list[str] = []
        above = step.path.rpartition("/")[0]
        while above and above not in kinds:
            way.append(above)
            above = above.rpartition("/")[0]
        # Only where the next view around it can be written: else a bind would open it again.
        if kinds.get(above) in {"--bind", "--bind-try"} and any(
            is_below(above, one) for one in here.writable
        ):
            found |= {path: _Step(2, path, ("--bind", path, path)) for path in way}
    return list(found.values())


def _is_apart(step: _Step, steps: Sequence[_Step]) -> bool:
    """Whether it can come last, because it adds many mounts that later steps would read."""
    return step.path == "/sys" and not any(
        one is not step and is_below(one.path, "/sys") for one in steps
    )


def _build_skeleton(
    policy: SandboxPolicy, here: ExistingPaths, shown: Sequence[_Step]
) -> Iterator[_Step]:
    """An otherwise empty view: links to shown paths, and a home directory."""
    for path, target in here.links:
        if not _is_seen(path, shown):
            yield _Step(0, path, ("--symlink", target, path))
    home = resolve_links(policy.home_directory or "/")
    if not _is_seen(home, shown):
        yield _Step(0, home, ("--dir", home))


def _is_seen(path: str, shown: Sequence[_Step]) -> bool:
    """Whether a path is part of a shown one."""
    return any(is_below(path, step.path) for step in shown)


def _build_visible_steps(
    policy: SandboxPolicy, protection: Protection, masks: Sequence[str], here: ExistingPaths
) -> Iterator[_Step]:
    for path in dict.fromkeys(here.writable):
        yield _Step(0, path, ("--bind", path, path))
    covered = ("/",) if is_closed(policy) else (*here.writable, *here.denied_directories)
    for path in here.readable:
        # Else it is seen anyway, as a part of the machine.
        if is_replaced(path) or any(is_below(path, place) for place in covered):
            yield _Step(0, path, ("--ro-bind", path, path))
    for path in here.allowed:
        if path in _OWN_VIEWS or _is_shown_already(policy, here, path):
            continue
        if path in here.empty:
            yield _Step(1, path, ("--dir", path))
            continue
        inside = any(is_below(path, place) for place in here.writable)
        yield _Step(1, path, ("--bind-try" if inside else "--ro-bind-try", path, path))
    for path in protection.anchored:
        yield _Step(2, path, ("--bind", path, path))
    for path in (*protection.fixed, *masks):
        if path not in policy.roots:
            is_new = path in masks and is_for_directory(path)
            options = _build_empty_directory(path, "0555") if is_new else ("--ro-bind", path, path)
            yield _Step(3, path, options)


def _is_shown_already(policy: SandboxPolicy, here: ExistingPaths, path: str) -> bool:
    """Whether a readable path is part of another one, with nothing hidden between."""
    around = [
        count_components(place)
        for place in (*here.writable, *here.readable, *here.allowed)
        if place != path and is_below(path, place)
    ]
    hidden = [count_components(place) for place in policy.deny_read if is_below(path, place)]
    hidden += [
        count_components(place) for place in here.denied_directories if is_below(path, place)
    ]
    if not is_closed(policy) and not hidden and not is_replaced(path):
        return True
    return max(around, default=-1) > max(hidden, default=-1)


def _build_hidden_steps(
    policy: SandboxPolicy, here: ExistingPaths, shown: Sequence[_Step]
) -> Iterator[_Step]:
    inner = (*policy.allow_read, *policy.roots, policy.temp_directory)
    for path in here.denied_files:
        if _can_be_seen(policy, path, shown):
            yield _Step(4, path, ("--ro-bind", "/dev/null", path))
    for path in here.denied_directories:
        if _can_be_seen(policy, path, shown):
            # Somewhere to go through where something inside may be read, but nothing to list.
            is_open = any(is_below(place, path) and is_readable(policy, place) for place in inner)
            yield _Step(4, path, _build_empty_directory(path, "0111" if is_open else "0000"))


def _can_be_seen(policy: SandboxPolicy, path: str, shown: Sequence[_Step]) -> bool:
    """Whether a path would be visible if nothing hid it."""
    is_in_view = not is_closed(policy) and not is_replaced(path)
    return is_in_view or _is_seen(path, shown)


def _build_empty_directory(path: str, mode: str) -> tuple[str, ...]:
    """A directory of the command; files put there disappear with it."""
    # Rather than a bind: for each of those bubblewrap reads the list of all mounts.
    return ("--perms", mode, "--tmpfs", path)
