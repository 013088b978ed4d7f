"""`handaxe permissions`: list permission rules, and revoke one."""

import argparse
import asyncio
import time

from handaxe.app.services.configuration import open_configuration
from handaxe.config.working_directories import resolve_project
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.disk.local_files import LocalFiles
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_out
from handaxe.frontends.cli.session_options import warn
from handaxe.permission.saved_rules import SavedRule, SavedRules
from handaxe.storage.home import find_data_home
from handaxe.text.escape import find_closest_name, to_visible_text


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    root = resolve_project(arguments.root)
    configuration = open_configuration(root, home=find_data_home())
    rules = SavedRules(configuration, configuration.store(LocalFiles()))
    if arguments.action == "list":
        _list(rules.listed(), as_json=arguments.json)
        warn(configuration.warnings)
        return DONE
    try:
        files = asyncio.run(revoke_rule(rules, arguments.rule))
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None
    if arguments.json:
        write_json({"rule": arguments.rule, "removed_from": files})
    for file in files:
        print_error(f"Removed {to_visible_text(arguments.rule)} from {to_visible_text(file)}.")
    return DONE


async def revoke_rule(rules: SavedRules, rule: str) -> list[str]:
    """Remove an allow rule from settings files and return the files that had it.

    Raises:
        SetupError: no file that handaxe writes has it.
    """
    files = await rules.revoke(rule)
    if files:
        return files
    allowed = [one for one in rules.listed() if one.behaviour == "allow"]
    elsewhere = [format_rule_location(one) for one in allowed if one.rule == rule]
    if elsewhere:
        raise SetupError(
            f"{rule} comes from {', '.join(elsewhere)}, which handaxe does not write. "
            "Remove it there."
        )
    near = find_closest_name(rule, [one.rule for one in allowed])
    hint = f" Did you mean {near}?" if near else " `handaxe permissions` lists the rules."
    raise SetupError(f"No settings file allows {rule}.{hint}")


def format_rule_location(rule: SavedRule) -> str:
    """The source of a rule, with its line where it has one."""
    if rule.file is None:
        return rule.source
    return rule.file if rule.line is None else f"{rule.file}:{rule.line}"


def format_rule_date(rule: SavedRule) -> str:
    """When a rule was added, if that is known."""
    if rule.at is None:
        return "by hand"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(rule.at))


def _list(rules: list[SavedRule], *, as_json: bool) -> None:
    if as_json:
        write_json(rules)
        return
    if not rules:
        print_error("No settings file has permission rules.")
    for rule in rules:
        day, location = format_rule_date(rule), format_rule_location(rule)
        line = f"{rule.behaviour:5}  {day:16}  {rule.rule}  ({location})"
        print_out(to_visible_text(line))
