"""What permission rules keep from every reading tool, from searches, and from changing tools."""

from collections.abc import Callable

from handaxe.contract.decision import Allow
from handaxe.permission.decide import (
    JudgedPath,
    PermissionQuery,
    Policy,
    decide,
    is_read_denied,
    is_write_denied,
)


def make_read_deny_check(policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is hidden under this policy; None where no rule hides anything."""
    deny = policy.book.find_rules("Read")[0]
    if deny.reading is None and not deny.read_scopes:
        return None
    return lambda path: is_read_denied(policy, path)


def make_read_allow_check(policy: Policy) -> Callable[[str], bool]:
    """Whether Read of the file at a path runs without a question under this policy."""

    def is_allowed(path: str) -> bool:
        request = PermissionQuery("Read", read_only=True, paths=(JudgedPath(path, path, "read"),))
        return isinstance(decide(request, policy), Allow)

    return is_allowed


def make_write_deny_check(policy: Policy) -> Callable[[str], bool] | None:
    """Whether rules with a pattern keep a path as it is; None where there are none."""
    if not policy.book.find_rules("Edit")[0].write_scopes:
        return None
    return lambda path: is_write_denied(policy, path)
