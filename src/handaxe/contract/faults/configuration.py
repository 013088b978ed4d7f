"""Faults of skills and settings."""

from handaxe.contract.faults import TemplateFault, ToolFault


class NoSkill(ToolFault):
    """No skill has this name."""

    code = "skill.not_found"

    def __init__(self, name: str, near: str | None, known: list[str]) -> None:
        hint = f" Did you mean {near!r}?" if near else ""
        listed = ", ".join(known[:50]) or "none"
        super().__init__(f"There is no skill {name!r}.{hint} Skills: {listed}.")


class UserOnlySkill(
    TemplateFault,
    code="skill.user_only",
    sentence=(
        "Only the user can run the skill {name!r}. Suggest /{name} to them, and do not imitate it."
    ),
):
    """Only the user can run this skill."""


class SkillUnreadable(
    TemplateFault,
    code="skill.unreadable",
    sentence="{path} cannot be read: {problem}. Continue without the skill.",
):
    """The file of the skill cannot be read any more."""


class SkillCommandFailed(ToolFault):
    """A command in the text of the skill failed, so the skill does not run."""

    code = "skill.command_failed"

    def __init__(self, name: str, command: str, problem: str, *, was_refused: bool = False) -> None:
        what = "Shell command permission check failed" if was_refused else "Shell command failed"
        super().__init__(
            f'The skill {name!r} was not run. {what} for pattern "{command}": {problem}'
        )


class UnknownSetting(ToolFault):
    """No setting has this name."""

    code = "setting.unknown"


class BadSetting(ToolFault):
    """The value does not fit the setting."""

    code = "setting.bad_value"


class SettingNotWritten(ToolFault):
    """The settings file could not be written and is unchanged."""

    code = "setting.not_written"
