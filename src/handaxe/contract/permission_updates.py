"""Changes of permissions that hooks, callbacks and programs request with an approval."""

from typing import Literal

import msgspec

Destination = Literal["session", "cliArg", "localSettings", "projectSettings", "userSettings"]
Kind = Literal[
    "addRules", "replaceRules", "removeRules", "setMode", "addDirectories", "removeDirectories"
]


class ChangedRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule in two parts."""

    tool_name: str
    rule_content: str | None = None

    @property
    def text(self) -> str:
        """The rule as settings spell it."""
        return f"{self.tool_name}({self.rule_content})" if self.rule_content else self.tool_name


class PermissionChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, and how long it is meant to hold."""

    type: Kind
    rules: tuple[ChangedRule, ...] = ()
    behavior: Literal["allow", "ask", "deny"] | None = None
    mode: str | None = None
    directories: tuple[str, ...] = ()
    destination: Destination = "session"
    """`session` and `cliArg` end with the session, the others are stored in files."""

    def __post_init__(self) -> None:
        """Refuse what lacks the half that makes it a change."""
        if self.type.endswith("Rules") and self.behavior is None:
            raise ValueError(f"`{self.type}` needs a `behavior`: allow, ask or deny")
        if any(not rule.tool_name for rule in self.rules):
            raise ValueError("a rule needs a `toolName`")
        if self.type == "setMode" and self.mode is None:
            raise ValueError("`setMode` needs a `mode`")
        if self.type.endswith("Directories") and not all(self.directories):
            raise ValueError("a directory needs a name")
