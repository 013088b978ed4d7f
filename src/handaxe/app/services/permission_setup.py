"""The permission mode and rules at the start of a session, and its prompts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from handaxe.config.project import FILE_SOURCES, Configuration
from handaxe.config.reload import find_mode_problem, refuse_mode
from handaxe.config.trust import MODE
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.permission import Classifier, PermissionChanges
from handaxe.contract.ports.settings_store import SettingsStore
from handaxe.permission.prompts import OnAsk, PermissionBroker, put_off
from handaxe.permission.saved_rules import SavedRules
from handaxe.pipeline.context import PipelineContext
from handaxe.rules.grammar import split_rules
from handaxe.rules.modes import list_mode_names, parse_mode
from handaxe.session.permission_state import PermissionState, RuleBehaviour, SourcedRule

if TYPE_CHECKING:
    from handaxe.contract.ports.questions import OnElicit


def build_permission_state(
    configuration: Configuration,
    mode: str | None,
    rules: Mapping[RuleBehaviour, str | Sequence[str]],
    resumed_mode: str | None,
) -> PermissionState:
    """Mode and rules from arguments first, then what a resumed session had, then settings."""
    set_mode = configuration.merged.entries.get(MODE)
    default = set_mode[0].value if set_mode else None
    is_given = set_mode is not None and set_mode[0].origin.file is None
    wanted: object = mode
    if mode is None:
        wanted = (default if is_given else None) or resumed_mode or default or "default"
    chosen = parse_mode(wanted) if isinstance(wanted, str) else None
    if chosen is None:
        names = ", ".join(list_mode_names())
        raise SetupError(f"{wanted!r} is not a permission mode. Modes: {names}.")
    refuse_mode(configuration, chosen)
    texts = configuration.rules("flags")
    only_managed = configuration.settings.allow_managed_permission_rules_only
    for behaviour, given in rules.items():
        if only_managed and behaviour == "allow":
            continue
        listed = split_rules(given) if isinstance(given, str) else _validate_rules(behaviour, given)
        texts += [SourcedRule(text, behaviour, "flags") for text in listed]
    for source in FILE_SOURCES:
        texts += configuration.rules(source)
    state = PermissionState(mode=chosen, rules=texts)
    state.may_grant = lambda: not configuration.settings.allow_managed_permission_rules_only
    state.may_files_grant = lambda: not configuration.unknown_files
    state.may_enter = lambda mode: find_mode_problem(configuration, mode) is None
    return state


def _validate_rules(behaviour: str, given: object) -> Sequence[str]:
    rules = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
    wrong = [rule for rule in rules if not isinstance(rule, str)]
    if wrong:
        raise SetupError(f"`{behaviour}` must be strings with rules; got {wrong[0]!r}.")
    return cast("list[str]", rules)


def connect_forms(context: PipelineContext, state: PermissionState, on_elicit: "OnElicit") -> None:
    """Let the host show forms of tools and servers."""
    if not callable(on_elicit):
        raise SetupError(
            f"`on_elicit` must be an async function taking an ElicitationForm; got {on_elicit!r}."
        )
    from handaxe.permission.user_questions import HostForms

    context.forms = HostForms(on_elicit, lambda: not state.never_prompt)


def connect_permission_prompts(
    context: PipelineContext,
    state: PermissionState,
    on_ask: OnAsk | None,
    classifier: Classifier | None,
    configuration: Configuration,
    *,
    in_parallel: bool = False,
) -> None:
    """Let the host answer permission questions, now or later."""
    if on_ask is not None and not callable(on_ask):
        raise SetupError(
            f"`on_ask` must be an async function taking a PermissionRequest; got {on_ask!r}."
        )
    keeper = partial(SavedRules, configuration, context.ports[SettingsStore])
    context.asker = PermissionBroker(
        on_ask,
        state,
        keeper,
        lambda: configuration.settings.agents.question_deadline_s,
        lambda: context.ports.get(PermissionChanges),
        in_parallel=in_parallel,
    )
    if classifier is not None:
        if not callable(classifier):
            raise SetupError(
                "`classifier` must be an async function taking a PermissionRequest; "
                f"got {classifier!r}."
            )
        from handaxe.permission.classifier import LimitedClassifier

        options = configuration.settings.permissions
        context.classifier = LimitedClassifier(
            classifier, limit_s=lambda: options.classifier_timeout_s
        )


def put_questions_off(
    context: PipelineContext, state: PermissionState, configuration: Configuration
) -> None:
    """Let every question wait for a later answer, unless a callback answers it."""
    if context.asker is None:
        connect_permission_prompts(context, state, put_off, None, configuration)
    elif isinstance(context.asker, PermissionBroker):
        context.asker.put_off()
