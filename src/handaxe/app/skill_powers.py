"""What skills start beside their text: hooks, and who has approved them."""

from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from handaxe.app.agent_kinds import is_users_own
from handaxe.app.configuration import Configuration
from handaxe.app.hook_conditions import bad_conditions
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.skills import SkillInfo

if TYPE_CHECKING:
    from handaxe.runtime.hooks.config import HookBook


def skill_book(skill: SkillInfo, configuration: Configuration) -> "HookBook":
    """The hooks of a skill, if they may run; the problems say why not."""
    from handaxe.runtime.hooks.config import HookBook, read_hooks

    settings = configuration.settings
    if settings.disable_all_hooks or settings.allow_managed_hooks_only:
        return HookBook()
    is_own = is_users_own(Path(skill.path))
    if not is_own and not _is_approved(skill, configuration):
        told = (
            f"{skill.path}: its `hooks` start programs, and nobody has approved them. If you "
            f"trust the project, run `handaxe trust {quote(configuration.root)}`."
        )
        return HookBook(problems=(told,))
    book = read_hooks(skill.hooks, source=skill.path, is_projects=not is_own, skill=skill.path)
    told = (f"{skill.path}: {text}" for text in (*book.problems, *bad_conditions(book)))
    return HookBook(book.placed, tuple(told))


def project_skills(root: str) -> tuple[SkillInfo, ...]:
    """The skills of a project that would start programs, for whoever trusts it."""
    from handaxe.host.skill_places import SkillPlaces
    from handaxe.host.skills import DiskSkills

    found = DiskSkills(SkillPlaces(directories=lambda: (root,), root=root)).all()
    return tuple(one for one in found if one.hooks and not is_users_own(Path(one.path)))


def skill_approval(skill: SkillInfo) -> tuple[str, str]:
    """Under which name a skill's hooks are approved, and what they are known by."""
    plain = msgspec.json.encode(skill.hooks, order="deterministic", enc_hook=repr)
    return f"skill:{skill.name}", sha256(plain).hexdigest()


def _is_approved(skill: SkillInfo, configuration: Configuration) -> bool:
    if configuration.trusts_servers:
        return True
    name, digest = skill_approval(skill)
    try:
        return configuration.trust.servers(configuration.root).get(name) == digest
    except SetupError:
        return False
