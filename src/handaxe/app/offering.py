"""What a session offers its tools from the start: this machine, and its own state."""

from typing import Any

from handaxe.app.change_record import ChangeRecord
from handaxe.app.companions import Surroundings
from handaxe.app.hidden_files import hidden_files
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.media import Media
from handaxe.contract.ports.questions import OnQuestion, Questions
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.search import Search
from handaxe.contract.ports.settings_store import SettingsStore
from handaxe.contract.ports.undo import ChangeHistory
from handaxe.host.media.local import LocalMedia
from handaxe.host.search.local import LocalSearch
from handaxe.session.applied_edits import AppliedEdits
from handaxe.session.permission_state import PermissionState
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.settings.model import Settings


def first_offers(
    around: Surroundings,
    changes: ChangeRecord,
    ledger: ReadLedger,
    edits: AppliedEdits,
    on_question: OnQuestion | None,
) -> dict[type[Any], Any]:
    """Ports and state objects by type; companions and the catalog add theirs."""
    workdir, policy = around.workdir, around.policy
    offers: dict[type[Any], Any] = {
        Files: around.files,
        Media: LocalMedia(),
        Search: LocalSearch(roots=lambda: workdir.roots, hidden=lambda: hidden_files(policy())),
        Workdir: workdir,
        ReadLedger: ledger,
        AppliedEdits: edits,
        ChangeHistory: changes,
        Settings: around.configuration.settings,
        SettingsStore: around.configuration.store(around.files),
        PermissionState: around.permissions,
        ResultStore: around.results,
    }
    if on_question is not None:
        from handaxe.app.questioning import HostQuestions

        offers[Questions] = HostQuestions(on_question)
    return offers
