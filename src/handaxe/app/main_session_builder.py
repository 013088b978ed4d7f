"""Build a session from its arguments."""

from collections.abc import Callable

import msgspec

from handaxe.app.builder import SessionBuilder, SessionOptions, SessionParts
from handaxe.app.default_ports import build_default_ports, register_permission_changes
from handaxe.app.services.background import make_command_probes
from handaxe.app.services.configuration import open_configuration
from handaxe.app.services.crash_recovery import recover_project
from handaxe.app.services.hooks import SessionHooks
from handaxe.app.services.permission_setup import (
    build_permission_state,
    connect_forms,
    connect_permission_prompts,
)
from handaxe.app.services.service import SessionContext
from handaxe.app.services.session_services import SessionServices
from handaxe.app.services.tool_selection import build_catalog
from handaxe.catalog.catalog import Catalog
from handaxe.catalog.edit_formats import choose_edit_tool
from handaxe.config.reload import SettingsReloader
from handaxe.config.working_directories import list_directories, resolve_working_directories
from handaxe.contract.events import ModeChanged
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.tools import ToolCaller
from handaxe.hooks.notify import notify_directory_change
from handaxe.hooks.service import Hooks
from handaxe.permission.decide import Policy, build_hidden_check
from handaxe.permission.policy import CurrentPolicy
from handaxe.pipeline.context import PipelineContext
from handaxe.session.port_registry import PortRegistry
from handaxe.session.workdir import Workdir
from handaxe.storage.home import (
    find_data_home,
    generate_session_id,
    get_session_directory,
    get_user_home,
    validate_session_id,
)
from handaxe.storage.session_lock import SessionLock
from handaxe.storage.sessions import delete_session, find_session_directory, refuse_other_root
from handaxe.undo.tracker import ChangeTracker


class MainSessionBuilder(SessionBuilder):
    """Builds a session from its arguments."""

    tracker: ChangeTracker
    session_services: SessionServices
    reloader: SettingsReloader
    session_hooks: SessionHooks

    def __init__(self, options: SessionOptions) -> None:
        self.data_home = find_data_home(options.home)
        project = resolve_working_directories(options.root, ())[0][0]
        if options.profile is not None or options.env is not None:
            options = _apply_profile(options, project)
        self._options = options
        given = options.session_id
        session_id = validate_session_id(given) if given else generate_session_id()
        self.lock = lock = SessionLock(
            self.data_home, session_id, shared=options.shared, is_named=given is not None
        )
        self.recovery = recover_project(self.data_home, project, given)
        configuration = open_configuration(
            project,
            home=self.data_home,
            given=options.settings,
            sources=options.setting_sources,
            trusted=options.trusted,
        )
        configuration.discovery = options.discovery
        if options.profile is not None:
            from handaxe.config.profiles import check_profile

            home = None if options.home is None else self.data_home
            check_profile(options.profile, configuration, home)
        directory = get_session_directory(self.data_home, session_id)
        self._has_past = bool(given or options.fork_of)
        self._fork = self._copy_past(session_id, project)
        super().__init__(session_id, directory, configuration, has_past=self._has_past, lock=lock)
        if self.history.started is not None:
            refuse_other_root(session_id, self.history.started.root, project)

    def _copy_past(self, session_id: str, project: str) -> str | None:
        """Copy the past of the forked session and return the id of the copy."""
        options = self._options
        if options.fork_of is None:
            if options.fork_at is not None:
                raise SetupError("`fork_at` is a message of the session that `fork_of` names.")
            return None
        from handaxe.app.rewind import fork_session_at

        find_session_directory(self.data_home, options.fork_of, root=project)
        return fork_session_at(
            self.data_home, options.fork_of, session_id, message_id=options.fork_at
        )

    def build_session(self) -> SessionParts:
        """Build all parts, connect the start hooks and resume an earlier run."""
        try:
            return self._build_session()
        except BaseException:
            if self._fork is not None:
                # Delete a copy whose session could not be opened.
                self.lock.release()
                delete_session(self.data_home, self._fork)
            raise

    def _build_session(self) -> SessionParts:
        self.build()
        parts = SessionParts(
            history=self.history,
            recorder=self.recorder,
            new_call_id=self.new_call_id,
            session_context=self.session_context,
            tracker=self.tracker,
            ports=self.ports,
            services=self.session_services,
            reloader=self.reloader,
            hooks=self.session_hooks,
            catalog=self.catalog,
            deferral=self.deferral,
            pipeline_context=self.pipeline_context,
            pipeline=self.pipeline,
            recovery=self.recovery,
        )
        began = "fork" if self._fork else "resume" if self.history.started else "startup"
        start = self._options.start or began
        parts.hooks.join(
            parts.pipeline_context, start, self.data_home, parts.mcp_servers, parts.follow
        )
        if self._has_past:
            from handaxe.app.resume import resume

            resume(
                self.history, self.log_id, self.recorder, self.pipeline, self.ports, parts.hooks,
                parts.pipeline_context.questions,
            )  # fmt: skip
        return parts

    def build_workdir(self) -> Workdir:
        """The directories of arguments and settings."""
        more = self.configuration.directories()[0]
        added = list_directories(self._options.add_dirs)
        roots, spellings = resolve_working_directories(
            self._options.root, (*added, *more), self.data_home
        )
        return Workdir(
            roots,
            home=self._find_users_home(),
            spellings=spellings,
            free_to_read=(str(self.results.directory),),
            own_places=self.configuration.own_places,
            announce=lambda old, new: notify_directory_change(self.pipeline_context, old, new),
        )

    def _find_users_home(self) -> str:
        """The home directory of commands, so that `~` means the same everywhere."""
        named = self.configuration.settings.env.get("HOME", "")
        return named if named.startswith("/") else get_user_home()

    def build_session_context(self) -> SessionContext:
        """The context with its permissions and undo record."""
        emit = self.recorder.emit
        options, mode = self._options, self.history.mode
        permissions = build_permission_state(
            self.configuration,
            options.permission_mode,
            {"allow": options.allow, "ask": options.ask, "deny": options.deny},
            mode if mode not in {"plan", "bypassPermissions"} else None,
        )
        permissions.never_prompt = options.never_prompt
        permissions.announce = lambda mode: emit(ModeChanged(mode=mode))
        self.tracker = ChangeTracker(
            self.data_home, self.log_id, self.workdir, self.ledger, self.configuration
        )
        return SessionContext(
            session_id=self.log_id,
            data_home=self.data_home,
            session_directory=self.directory,
            configuration=self.configuration,
            workdir=self.workdir,
            permissions=permissions,
            policy=CurrentPolicy(
                permissions, self.workdir, is_closed=self._options.profile is not None
            ),
            files=self.tracker.files,
            results=self.results,
            checkpoints=self.tracker,
            emit=emit,
            pipeline_context=lambda: self.pipeline_context,
            is_busy=lambda: self.pipeline.is_busy,
            recovered=self.recovery.by_commands,
        )

    def build_policy(self) -> Callable[[], Policy]:
        """The current mode and rules."""
        return self.session_context.policy

    def build_ports(self) -> PortRegistry:
        """The default ports."""
        ports = build_default_ports(
            self.session_context, self.tracker, self.ledger, self.edits, self._options.on_question
        )
        ports[ToolCaller] = self.caller
        return ports

    def build_services(self) -> SessionServices:
        """The session's services."""
        self.session_services = SessionServices(
            self.session_context,
            self.history,
            self._options.mcp_servers,
            is_strict=self._options.strict_mcp,
        )
        return self.session_services

    def build_hooks(self) -> Hooks:
        """The hooks of settings and arguments, and the reloader of both."""
        self.reloader = SettingsReloader(
            self.configuration,
            self.session_context.permissions,
            self.workdir,
            root=self._options.root,
            added=self._options.add_dirs,
            ports=self.ports,
            emit=self.recorder.emit,
        )
        register_permission_changes(self.ports, self.session_context, self.reloader)
        self.session_hooks = SessionHooks(
            self._options.hooks,
            self.configuration,
            emit=self.recorder.emit,
            keep=self.results.keep,
        )
        return self.session_hooks.hooks

    def build_catalog(self) -> Catalog:
        """The selected built-in tools and own tools."""
        policy = self.policy
        catalog = build_catalog(
            self._options.tools, self.ports, lambda: build_hidden_check(policy())
        )
        if catalog.own_tools or self._options.provide:
            from handaxe.app.services.own_tool_ports import bind_provided_objects

            emit, saved = self.recorder.emit, self.history.states
            bind_provided_objects(catalog.own_tools, self._options.provide, self.ports, emit, saved)
        catalog.edit_tool = choose_edit_tool(self.configuration.settings.edit)
        self.tracker.stand_ins = catalog.stand_ins
        return catalog

    def build_pipeline_context(self) -> PipelineContext:
        """The pipeline context of the session."""
        context = PipelineContext(
            session_id=self.log_id,
            catalog=self.catalog,
            ports=self.ports,
            workdir=self.workdir,
            files=self.tracker.files,
            policy=self.policy,
            hooks=self.hooks,
            emit=self.recorder.emit,
            results=self.results,
            redactor=self.configuration.redactor,
            deferral=self.deferral,
            checkpoints=self.tracker,
            commands=make_command_probes(self.ports),
            transcript_path=str(self.log),
        )
        options = self._options
        if options.on_elicit is not None:
            connect_forms(context, self.session_context.permissions, options.on_elicit)
        if options.on_ask or options.classifier or self.history.questions.requests:
            connect_permission_prompts(
                context,
                self.session_context.permissions,
                options.on_ask,
                options.classifier,
                self.configuration,
                in_parallel=options.ask_in_parallel,
            )
        return context


def _apply_profile(options: SessionOptions, project: str) -> SessionOptions:
    """The arguments with the profile and variables of the session applied."""
    from handaxe.config.profiles import join_given

    given = join_given(options.settings, options.env, options.profile, project)
    sources, trusted = options.setting_sources, options.trusted
    if options.profile is not None:
        sources, trusted = () if sources is None else sources, bool(trusted)
    return msgspec.structs.replace(
        options, settings=given, setting_sources=sources, trusted=trusted
    )
