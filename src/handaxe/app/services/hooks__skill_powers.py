"""The hooks of a skill, as far as they may run."""

from typing import TYPE_CHECKING

from handaxe.config.project import Configuration
from handaxe.contract.ports.skills import SkillInfo
from handaxe.hooks.config__hook_conditions import find_bad_conditions

if TYPE_CHECKING:
    from handaxe.hooks.config import HookConfig


def read_skill_hooks(skill: SkillInfo, configuration: Configuration) -> "HookConfig":
    """The hooks of a skill, if they may run; the problems say what is wrong with them."""
    from handaxe.hooks.config import HookConfig, read_hooks

    settings = configuration.settings
    hooks = skill.powers.grant(configuration.gate).hooks
    if not hooks or settings.disable_all_hooks or settings.allow_managed_hooks_only:
        return HookConfig()
    is_projects = skill.powers.is_projects
    book = read_hooks(hooks, source=skill.path, is_projects=is_projects, skill=skill.path)
    told = (f"{skill.path}: {text}" for text in (*book.problems, *find_bad_conditions(book)))
    return HookConfig(book.placed, tuple(told))
