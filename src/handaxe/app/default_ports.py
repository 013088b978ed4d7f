"""What a session offers its tools from the start: this machine, and its own state."""

from typing import TYPE_CHECKING

from handaxe.app.services.service import SessionContext
from handaxe.config.settings import Settings
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.undo import ChangeHistory
from handaxe.session.applied_edits import AppliedEdits
from handaxe.session.permission_state import PermissionState
from handaxe.session.port_registry import PortRegistry
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.undo.tracker import ChangeTracker

if TYPE_CHECKING:
    from handaxe.config.reload import SettingsReloader
    from handaxe.contract.ports.dry_run import CommandPreviews
    from handaxe.contract.ports.media import Media
    from handaxe.contract.ports.permission__permission_changes import PermissionChanges
    from handaxe.contract.ports.plans import Plans
    from handaxe.contract.ports.questions import OnQuestion, Questions
    from handaxe.contract.ports.search import Search


def build_default_ports(
    around: SessionContext,
    changes: ChangeTracker,
    ledger: ReadLedger,
    edits: AppliedEdits,
    on_question: "OnQuestion | None",
) -> PortRegistry:
    """Ports and state objects by type; companions and the catalog add theirs."""
    ports = "handaxe.contract.ports"
    offers = PortRegistry(
        {
            Files: around.files,
            Workdir: around.workdir,
            ReadLedger: ledger,
            AppliedEdits: edits,
            ChangeHistory: changes,
            Settings: around.configuration.settings,
            PermissionState: around.permissions,
            ResultStore: around.results,
            f"{ports}.media.Media": lambda: _create_media(around),
            f"{ports}.plans.Plans": lambda: _create_plans(around),
            f"{ports}.dry_run.CommandPreviews": lambda: _create_previews(around),
            f"{ports}.search.Search": lambda: _create_search(around),
            "handaxe.contract.trust_gate.TrustGate": lambda: around.configuration.gate,
            f"{ports}.settings_store.SettingsStore": lambda: around.configuration.store(
                around.files
            ),
        }
    )
    if on_question is not None:
        if not callable(on_question):
            raise SetupError(f"`on_question` is an async function, not {on_question!r}.")
        offers.add({f"{ports}.questions.Questions": lambda: _create_questions(around, on_question)})
    return offers


def register_permission_changes(
    offers: PortRegistry, around: SessionContext, live: "SettingsReloader"
) -> None:
    """Let whoever answers permission questions change permissions, too."""

    def make() -> "PermissionChanges":
        from handaxe.app.services.permission_updates import SessionPermissionChanges

        return SessionPermissionChanges(around, live)

    offers.add({"handaxe.contract.ports.permission__permission_changes.PermissionChanges": make})


def _create_media(around: SessionContext) -> "Media":
    from handaxe.media.local_media import LocalMedia

    return LocalMedia(lambda: around.configuration.settings.read.media_memory_bytes)


def _create_search(around: SessionContext) -> "Search":
    from handaxe.permission.denied_paths__hidden_files import (
        make_read_allow_check,
        make_read_deny_check,
    )
    from handaxe.search.local_search import LocalSearch

    workdir, policy = around.workdir, around.policy
    return LocalSearch(
        roots=lambda: workdir.roots,
        hidden=lambda: make_read_deny_check(policy()),
        may_read=lambda: make_read_allow_check(policy()),
        own_places=workdir.own_places,
    )


def _create_plans(around: SessionContext) -> "Plans":
    from handaxe.app.services.plans import PlanFiles

    configuration = around.configuration
    directory = configuration.settings.plans_directory
    return PlanFiles(
        around.session_id, configuration.root, directory, around.results, around.policy
    )


def _create_previews(around: SessionContext) -> "CommandPreviews":
    from handaxe.app.default_ports__previewing import SessionPreviews

    return SessionPreviews(around)


def _create_questions(around: SessionContext, on_question: "OnQuestion") -> "Questions":
    from handaxe.permission.user_questions import HostQuestions, parse_question_timeout

    return HostQuestions(
        on_question,
        lambda: parse_question_timeout(around.configuration.settings.ask_user_question_timeout),
    )
