"""What searches must not show: the files that deny rules keep from every reading tool."""

from collections.abc import Callable

from handaxe.runtime.permission.decide import Policy, is_read_denied


def hidden_files(policy: Policy) -> Callable[[str], bool] | None:
    """Whether a path is hidden under this policy; None where no rule hides anything."""
    deny = policy.book.rules_for("Read")[0]
    if deny.reading is None and not deny.read_scopes:
        return None
    return lambda path: is_read_denied(policy, path)
