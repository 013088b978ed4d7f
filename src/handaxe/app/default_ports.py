"""The default ports of a session: this machine and the session's state."""

from typing import TYPE_CHECKING

from handaxe.app.services.service import SessionContext
from handaxe.config.settings import Settings
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.files import Files, NameFinder
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.undo import ChangeHistory
from handaxe.session.permission_state import PermissionState
from handaxe.session.port_registry import PortRegistry
from handaxe.session.read_ledger import AppliedEdits, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.undo.tracker import ChangeTracker

if TYPE_CHECKING:
    from handaxe.config.reload import SettingsReloader
    from handaxe.contract.ports.dry_run import CommandPreviews
    from handaxe.contract.ports.media import Media
    from handaxe.contract.ports.permission import PermissionChanges
    from handaxe.contract.ports.plans import Plans
    from handaxe.contract.ports.questions import OnQuestion, Questions
    from handaxe.contract.ports.search import Search
    from handaxe.contract.ports.web import Web, WebSearcher


def build_default_ports(
    session_context: SessionContext,
    changes: ChangeTracker,
    ledger: ReadLedger,
    edits: AppliedEdits,
    on_question: "OnQuestion | None",
) -> PortRegistry:
    """Ports and state objects by type; services and the catalog add more."""
    package = "handaxe.contract.ports"
    ports = PortRegistry(
        {
            Files: session_context.files,
            Workdir: session_context.workdir,
            ReadLedger: ledger,
            AppliedEdits: edits,
            ChangeHistory: changes,
            Settings: session_context.configuration.settings,
            PermissionState: session_context.permissions,
            ResultStore: session_context.results,
            f"{package}.media.Media": lambda: _create_media(session_context),
            f"{package}.plans.Plans": lambda: _create_plans(session_context),
            f"{package}.dry_run.CommandPreviews": lambda: _create_previews(session_context),
            f"{package}.web.Web": lambda: _create_web(session_context),
            f"{package}.search.Search": lambda: _create_search(session_context),
            f"{package}.files.NameFinder": lambda: _create_name_finder(session_context, ports),
            "handaxe.contract.trust_gate.TrustGate": lambda: session_context.configuration.gate,
            f"{package}.settings_store.SettingsStore": lambda: session_context.configuration.store(
                session_context.files
            ),
        }
    )
    if session_context.configuration.settings.web.search is not None:
        ports.add({f"{package}.web.WebSearcher": lambda: _create_searcher(session_context)})
    if on_question is not None:
        if not callable(on_question):
            raise SetupError(f"`on_question` must be an async function; got {on_question!r}.")
        ports.add(
            {
                f"{package}.questions.Questions": lambda: _create_questions(
                    session_context, on_question
                )
            }
        )
    return ports


def register_permission_changes(
    ports: PortRegistry, session_context: SessionContext, live: "SettingsReloader"
) -> None:
    """Let answers to permission questions change permissions, too."""

    def make() -> "PermissionChanges":
        from handaxe.app.services.permission_updates import SessionPermissionChanges

        return SessionPermissionChanges(session_context, live)

    ports.add({"handaxe.contract.ports.permission.PermissionChanges": make})


def _create_media(session_context: SessionContext) -> "Media":
    from handaxe.media.local_media import LocalMedia

    return LocalMedia(lambda: session_context.configuration.settings.read.media_memory_bytes)


def _create_search(session_context: SessionContext) -> "Search":
    from handaxe.permission.denied_paths import (
        make_read_allow_check,
        make_read_deny_check,
    )
    from handaxe.search.local_search import LocalSearch

    workdir, policy = session_context.workdir, session_context.policy
    return LocalSearch(
        roots=lambda: workdir.roots,
        hidden=lambda: make_read_deny_check(policy()),
        may_read=lambda: make_read_allow_check(policy()),
        own_places=workdir.own_places,
    )


def _create_web(session_context: SessionContext) -> "Web":
    from handaxe.web.local_web import LocalWeb

    policy = session_context.policy
    return LocalWeb(
        lambda: session_context.configuration.settings.web,
        lambda: [
            rule.domain
            for rule in policy().rules
            if rule.behaviour == "deny" and rule.tool == "WebFetch" and rule.domain
        ],
    )


def _create_searcher(session_context: SessionContext) -> "WebSearcher":
    from handaxe.web.search_backends import HttpSearcher

    return HttpSearcher(lambda: session_context.configuration.settings.web)


def _create_name_finder(session_context: SessionContext, ports: PortRegistry) -> "NameFinder":
    from handaxe.contract.ports.search import Search
    from handaxe.search.near_paths import SearchedNames

    configuration = session_context.configuration
    return SearchedNames(
        ports[Search], session_context.workdir, lambda: configuration.settings.search
    )


def _create_plans(session_context: SessionContext) -> "Plans":
    from handaxe.app.services.plans import PlanFiles

    configuration = session_context.configuration
    directory = configuration.settings.plans_directory
    return PlanFiles(
        session_context.session_id,
        configuration.root,
        directory,
        session_context.results,
        session_context.policy,
    )


def _create_previews(session_context: SessionContext) -> "CommandPreviews":
    from handaxe.app.services.session_shell import SessionPreviews

    return SessionPreviews(session_context)


def _create_questions(session_context: SessionContext, on_question: "OnQuestion") -> "Questions":
    from handaxe.permission.user_questions import HostQuestions, parse_question_timeout

    return HostQuestions(
        on_question,
        lambda: parse_question_timeout(
            session_context.configuration.settings.ask_user_question_timeout
        ),
    )
