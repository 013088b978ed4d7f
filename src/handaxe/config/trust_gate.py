"""The gate between the requests of a project's files and their effects."""

from collections.abc import Callable, Iterable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

from handaxe.config.source import SettingsFragment
from handaxe.config.trust import RequestFinder
from handaxe.contract.faults import SetupError
from handaxe.contract.trust_gate import TrustGate, TrustRequest

if TYPE_CHECKING:
    from handaxe.config.trust_store import TrustRecord

_SHOWN_CHARS = 300


class ProjectGate(TrustGate):
    """Grants what the user, a host program or the user's settings approved for one folder.

    The host's word is for the files as they are when the session opens; that of settings for the
    files as they are when it is first heard.
    """

    def __init__(
        self,
        root: str,
        record: "Callable[[], TrustRecord]",
        find_requests: RequestFinder,
        *,
        trusted: bool | None,
    ) -> None:
        self.root = root
        self._record = record
        self._find_requests = find_requests
        self._trusted = trusted
        self._vouched: dict[str, str] | None = None
        self._is_listed = False

    @property
    def is_trusted(self) -> bool:
        """Whether the folder is trusted at all."""
        if self._trusted is not None:
            return self._trusted
        if self._vouched is not None:
            return True
        try:
            folder = self._record().find(self.root)
        except SetupError:
            return False
        return folder is not None and (self._is_listed or not folder.listed)

    def approved(self, root: str | None = None) -> Mapping[str, str]:
        """The approvals for the files of a folder, by the keys and notes of requests."""
        if self._trusted is False:
            return {}
        if self._vouched is not None:
            return self._vouched
        try:
            record = self._record()
            folder = record.find(root or self.root)
            if folder is not None and folder.listed and not self._is_listed:
                return {}
            return record.approved(root or self.root)
        except SetupError:
            return {}

    def hear(self, fragments: Iterable[SettingsFragment], *, is_listed: bool) -> None:
        """Accept the trust of a host program or of the user's settings when it is first given."""
        self._is_listed = is_listed
        is_said = self._trusted is True or (self._trusted is None and is_listed)
        if not is_said or self._vouched is not None:
            return
        if self._trusted is None and self._is_noted():
            return
        wishes = self._find_requests(self.root, fragments, in_parts=self._trusted is None)
        notes = {wish.key: wish.note for wish in wishes}
        if self._trusted is None:
            try:
                self._record().trust(self.root, notes, listed=True)
            except SetupError:
                # Without a place to note it, the word holds for this session.
                self._vouched = notes
        else:
            self._vouched = notes

    def allows(self, wish: TrustRequest[Any]) -> bool:
        """Whether exactly this request was approved."""
        if self._vouched is not None and self._trusted and self._is_from_part(wish):
            # A part of the project is found when work begins there.
            return self._vouched.setdefault(wish.key, wish.note) == wish.note
        return self.approved(wish.root).get(wish.key) == wish.note

    def approve(self, wishes: Iterable[TrustRequest[Any]]) -> None:
        """Record the user's approval of further requests of the folder."""
        notes = {wish.key: wish.note for wish in wishes}
        if self._vouched is not None:
            self._vouched |= notes
        elif notes:
            self._record().approve(self.root, notes)

    def refusal(self, wish: TrustRequest[Any]) -> str | None:
        """Why a request is not granted, what changed and what to do; None if it is granted."""
        if wish.is_empty or not wish.is_projects or self.allows(wish):
            return None
        earlier = self.approved(wish.root).get(wish.key)
        wanted = _cut(wish.note)
        command = f"`handaxe trust {quote(wish.root)}`"
        if earlier is None:
            return (
                f"{wish.file}: this is not approved and does not count: {wanted}. If you trust the "
                f"project, run {command}."
            )
        return (
            f"{wish.file}: what it wants to do has changed since the project was trusted, from "
            f"{_cut(earlier)} to {wanted}. It does not count. To approve it, run {command}."
        )

    def _is_noted(self) -> bool:
        try:
            return self._record().find(self.root) is not None
        except SetupError:
            return True

    def _is_from_part(self, wish: TrustRequest[Any]) -> bool:
        if not wish.key.startswith("skill:"):
            return False
        if wish.root != self.root:
            return True
        own = tuple(f"{self.root}/{folder}/" for folder in (".claude", ".handaxe"))
        return wish.file.startswith(f"{self.root}/") and not wish.file.startswith(own)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
