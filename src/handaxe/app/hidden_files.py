"""What deny rules keep from every reading tool, and from every changing one."""

from collections.abc import Callable

from handaxe.runtime.permission.decide import Policy, is_read_denied, is_write_denied


def hidden_files(policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is hidden under this policy; None where no rule hides anything."""
    deny = policy.book.rules_for("Read")[0]
    if deny.reading is None and not deny.read_scopes:
        return None
    return lambda path: is_read_denied(policy, path)


def kept_files(policy: Policy) -> Callable[[str], bool] | None:
    """Whether rules with a pattern keep a path as it is; None where there are none."""
    if not policy.book.rules_for("Edit")[0].write_scopes:
        return None
    return lambda path: is_write_denied(policy, path)
