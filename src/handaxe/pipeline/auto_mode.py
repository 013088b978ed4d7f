"""Auto mode: which calls a classifier may decide, and what it gets about them.

It answers only default questions. Rules, protected paths, paths outside the working directories,
and irreversible effects always need the user.
"""

import logging
import re

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Ask, Decision, Deny, PermissionRequest
from handaxe.contract.permission_subjects import CommandSubject
from handaxe.permission.classifier import LimitedClassifier, ModelClassifier
from handaxe.permission.decide import PermissionQuery, Policy
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall
from handaxe.rules.grammar import parse_rule
from handaxe.rules.rule_index import RuleIndex
from handaxe.rules.tool_families import is_foreign
from handaxe.text.paths import is_inside, normalize

NO_CLASSIFIER = (
    "auto mode has no classifier, so it asks like default mode. Set "
    "`permissions.classifier` to `model`, or give the session a `classifier`."
)
_log = logging.getLogger("handaxe.asking")
_BETWEEN = re.compile(r"""[\s'"=:,;|&<>()@{}\[\]\\]+""")
_FREE_PATHS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


async def ask_classifier(
    question: PermissionRequest,
    decision: Ask,
    query: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    context: PipelineContext,
) -> Allow | Deny | None:
    """The classifier's answer for a call that needs approval; None leaves it to the user."""
    classifier = find_classifier(context)
    if classifier is None:
        return None
    if not await _is_within_limits(decision, query, parsed, ctx, context, classifier):
        return None
    try:
        text = parsed.tool.classifier_text(parsed.args)
    except Exception as error:  # noqa: BLE001 - a tool's own method may raise anything
        _log.warning("%s.classifier_text failed", parsed.tool.name, exc_info=error)
        return None
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - own tools
        _log.warning("%s.classifier_text gave no text", parsed.tool.name)
        return None
    remarks = tuple(context.remarks)
    return await classifier(
        msgspec.structs.replace(question, remarks=remarks, classifier_text=text)
    )


def find_classifier(context: PipelineContext) -> LimitedClassifier | None:
    """The host's classifier, or the session's model if the settings choose it."""
    if context.classifier is not None:
        return context.classifier
    ask = context.ask_model
    if ask is None or context.ports[Settings].permissions.classifier is None:
        return None
    if context.model_classifier is None:
        context.model_classifier = LimitedClassifier(
            ModelClassifier(ask, lambda: context.workdir.roots),
            limit_s=lambda: context.ports[Settings].permissions.classifier_timeout_s,
            is_model=True,
        )
    return context.model_classifier


def find_auto_mode_problems(context: PipelineContext) -> tuple[str, ...]:
    """Problems of auto mode that the user should know."""
    classifier = find_classifier(context)
    if classifier is None:
        return (NO_CLASSIFIER,)
    return (classifier.problem,) if classifier.problem else ()


async def _is_within_limits(
    decision: Ask,
    query: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    context: PipelineContext,
    classifier: LimitedClassifier,
) -> bool:
    """Whether the call stays inside the working directories and can be undone.

    A host's classifier also gets tools with unknown effects, because the host knows its tools. The
    session's model gets only calls that provably stay inside.
    """
    policy = context.policy()
    if query.command is not None:
        return await _is_command_within(decision, query, parsed, ctx, context, classifier)
    if query.external and not query.read_only:
        return False
    if not all(policy.is_inside(p.path) and policy.is_inside(p.real) for p in query.paths):
        return False
    if not classifier.is_model:
        return True
    if query.hosts or query.external or not query.paths or is_foreign(query.tool):
        return False
    is_write = all(path.access == "write" for path in query.paths)
    is_known = query.confined and not parsed.effects.is_destructive
    return is_write and is_known and await _can_undo([p.real for p in query.paths], parsed, context)


async def _can_undo(paths: list[str], parsed: ParsedCall, context: PipelineContext) -> bool:
    if context.checkpoints is None:
        return False
    return not await context.checkpoints.find_loss(parsed.effects, paths)


async def _is_command_within(
    decision: Ask,
    query: PermissionQuery,
    parsed: ParsedCall,
    ctx: ToolContext,
    context: PipelineContext,
    classifier: LimitedClassifier,
) -> bool:
    """Whether only the program needs approval, so an allow rule for commands would settle it."""
    if any(part.verdict == "ask" and part.cause != "program" for part in decision.parts):
        return False
    if not isinstance(await _decide_under_rule(query, parsed, ctx, context), Allow):
        return False
    from handaxe.permission.shell_commands import Machine, analyze_command

    policy = context.policy()
    facts = analyze_command(query, policy, Machine(cwd=ctx.cwd))
    if facts.changes_directory or not is_named_inside(facts.text, policy):
        return False
    if not classifier.is_model:
        return True
    subject = next(s for s in parsed.subjects if isinstance(s, CommandSubject))
    is_final = any(loss.irreversible for part in facts.parts for loss in part.losses)
    if is_final or subject.unconfined or is_foreign(query.tool):
        return False
    return await _can_undo(list(context.workdir.roots), parsed, context)


async def _decide_under_rule(
    query: PermissionQuery, parsed: ParsedCall, ctx: ToolContext, context: PipelineContext
) -> Decision:
    """The decision if an allow rule covered every command."""
    from handaxe.pipeline.command_decision import decide_shell_call

    policy = context.policy()
    rule = parse_rule(query.tool, "allow", source="session")
    book = RuleIndex((*policy.rules, rule), policy.book.anchors)
    allowing = policy.change_rules(book)
    supposed = msgspec.structs.replace(context, policy=lambda: allowing)
    return await decide_shell_call(query, parsed, ctx, supposed)


def is_named_inside(command: str, policy: Policy) -> bool:
    """Whether every path in a command's text is in the working directories.

    Values that the shell computes, such as variables, count as outside. Paths inside options or
    quoted programs count too.
    """
    if "$" in command or "`" in command:
        return False
    for token in _BETWEEN.split(command):
        path = token
        if token.startswith(("-", "+")):
            starts = [at for at in map(token.find, "/~") if at > 0]
            path = token[min(starts) :] if starts else ""
        if path.startswith("~") or ".." in path.split("/"):
            return False
        if path.startswith("/") and path not in _FREE_PATHS:
            place = normalize(path)
            if not any(is_inside(place, root) for root in policy.roots):
                return False
    return True
