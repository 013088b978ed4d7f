"""What permission rules keep from every reading tool, from searches, and from changing tools."""

from collections.abc import Callable

from handaxe.contract.decision import Allow
from handaxe.runtime.permission.decide import (
    JudgedPath,
    Policy,
    Request,
    decide,
    is_read_denied,
    is_write_denied,
)


def hidden_files(policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is hidden under this policy; None where no rule hides anything."""
    deny = policy.book.rules_for("Read")[0]
    if deny.reading is None and not deny.read_scopes:
        return None
    return lambda path: is_read_denied(policy, path)


def files_read_unasked(policy: Policy) -> Callable[[str], bool]:
    """Whether Read of the file at a path runs without a question under this policy."""

    def is_allowed(path: str) -> bool:
        request = Request("Read", read_only=True, paths=(JudgedPath(path, path, "read"),))
        return isinstance(decide(request, policy), Allow)

    return is_allowed


def kept_files(policy: Policy) -> Callable[[str], bool] | None:
    """Whether rules with a pattern keep a path as it is; None where there are none."""
    if not policy.book.rules_for("Edit")[0].write_scopes:
        return None
    return lambda path: is_write_denied(policy, path)
