"""What can go wrong with skills."""

from handaxe.contract.faults import ToolFault


class NoSkill(ToolFault):
    """There is no skill of that name."""

    code = "skill.not_found"

    def __init__(self, name: str, near: str | None, known: list[str]) -> None:
        hint = f" Did you mean {near!r}?" if near else ""
        listed = ", ".join(known[:50]) or "none"
        super().__init__(f"There is no skill {name!r}.{hint} Skills: {listed}.")


class UserOnlySkill(ToolFault):
    """Only the user may run this skill."""

    code = "skill.user_only"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Only the user can run the skill {name!r}. Tell them that /{name} would fit here, "
            "and do not imitate it."
        )


class SkillUnreadable(ToolFault):
    """The skill's file cannot be read any more."""

    code = "skill.unreadable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} cannot be read: {problem}. Go on without the skill.")


class SkillCommandFailed(ToolFault):
    """A command that stands in the skill's text did not work, so the skill is not run."""

    code = "skill.command_failed"

    def __init__(self, name: str, command: str, problem: str, *, was_refused: bool = False) -> None:
        what = "Shell command permission check failed" if was_refused else "Shell command failed"
        super().__init__(
            f'The skill {name!r} was not run. {what} for pattern "{command}": {problem}'
        )


class UnknownSetting(ToolFault):
    """There is no setting of that name."""

    code = "setting.unknown"


class BadSetting(ToolFault):
    """The value does not fit the setting."""

    code = "setting.bad_value"


class SettingNotWritten(ToolFault):
    """The settings file could not be changed; it is as it was."""

    code = "setting.not_written"
