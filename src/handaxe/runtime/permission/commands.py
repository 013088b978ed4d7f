"""The verdict on a shell command under a session's rules.

`handaxe.shell` reads commands and knows no path rules; `decide` knows path rules and reads no
commands. Here each gets the other's word.
"""

from handaxe.contract.subjects import Access
from handaxe.runtime.permission.decide import JudgedPath, Request, decide
from handaxe.runtime.permission.policy import Policy
from handaxe.runtime.permission.rules import Rule
from handaxe.shell import PathVerdict, SecondOpinion, ShellDecision, ShellRules
from handaxe.shell import Rule as ShellRule
from handaxe.shell import decide as decide_shell


def decide_command(
    command: str,
    policy: Policy,
    *,
    cwd: str | None = None,
    git_clean: bool = True,
    second_opinion: SecondOpinion | None = None,
) -> ShellDecision:
    """What the rules say of a bash command, part by part; pure, and never raises."""
    rules = policy.book.command_rules("Bash")

    def path_verdict(path: str, access: Access) -> PathVerdict:
        tool = "Read" if access == "read" else "Edit"
        judged = JudgedPath(path=path, real=path, access=access)
        request = Request(tool=tool, read_only=access == "read", paths=(judged,))
        word = decide(request, policy)
        return PathVerdict(word.verdict, word.reason, word.rule, word.source)

    return decide_shell(
        command,
        rules=ShellRules(
            allow=_for_shell(rules["allow"]),
            ask=_for_shell(rules["ask"]),
            deny=_for_shell(rules["deny"]),
        ),
        path_verdict=path_verdict,
        mode=policy.mode,
        cwd=cwd or policy.cwd,
        home=policy.home,
        working_dirs=policy.roots,
        git_clean=git_clean,
        probes=_literal_paths(policy),
        second_opinion=second_opinion,
    )


def _for_shell(rules: tuple[Rule, ...]) -> tuple[ShellRule, ...]:
    return tuple(
        ShellRule("" if rule.is_whole_tool else rule.specifier or "", rule.origin) for rule in rules
    )


def _literal_paths(policy: Policy) -> tuple[str, ...]:
    """Paths that file rules spell out, so that a glob in a command can be held against them."""
    found: list[str] = []
    for rule in policy.rules:
        pattern = rule.specifier or ""
        if rule.behaviour == "allow" or rule.tool not in {"Read", "Edit"}:
            continue
        if not pattern or any(sign in pattern for sign in "*?[{"):
            continue
        if pattern.startswith("//"):
            found.append(pattern[1:])
        elif pattern.startswith("~/"):
            found.append(policy.home + pattern[1:])
        else:
            found.append(f"{policy.project_root}/{pattern.removeprefix('./').lstrip('/')}")
    return tuple(found)
