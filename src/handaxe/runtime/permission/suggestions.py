"""Rules that would have allowed a call, as the ecosystem writes changes of permissions."""

from collections.abc import Iterable
from typing import Any

from handaxe.contract.decision import RuleProposal


def suggestions(proposals: Iterable[RuleProposal]) -> list[dict[str, Any]]:
    """One change for each rule, for the session alone."""
    return [
        {
            "type": "addRules",
            "rules": [_rule_json(proposal.rule)],
            "behavior": "allow",
            "destination": "session",
        }
        for proposal in proposals
    ]


def _rule_json(rule: str) -> dict[str, str]:
    tool, parenthesis, content = rule.partition("(")
    return {"toolName": tool, "ruleContent": content[:-1]} if parenthesis else {"toolName": tool}
