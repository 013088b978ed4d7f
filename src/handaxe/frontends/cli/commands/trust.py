"""`handaxe trust [DIR]`: let the settings files of a folder also allow, not only forbid."""

import argparse
import sys
import time

import msgspec

from handaxe.app.agent_kinds import (
    approval_name,
    inline_servers,
    powers_digest,
    project_agents,
)
from handaxe.app.configuration import Configuration
from handaxe.app.skill_powers import project_skills, skill_approval
from handaxe.app.working_directories import project_at
from handaxe.frontends.cli.exits import DONE, FAILED
from handaxe.frontends.cli.opening import plain
from handaxe.frontends.cli.wire import write_json
from handaxe.settings.mcp_servers import read_definitions
from handaxe.settings.narrowing import FROM_THE_PROJECT
from handaxe.storage.home import data_home
from handaxe.storage.trust import TrustRecord


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR", help="default: here")
    parser.add_argument("--revoke", action="store_true", help="trust the folder no longer")
    parser.add_argument("--list", action="store_true", help="list the trusted folders")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    record = TrustRecord(data_home())
    if arguments.list:
        _list(record, as_json=arguments.json)
        return DONE
    folder = project_at(arguments.directory, may_be_gone=arguments.revoke)
    if arguments.revoke:
        if record.revoke(folder):
            print(f"{plain(folder)} is no longer trusted.", file=sys.stderr)
            return DONE
        print(f"{plain(folder)} was not trusted.", file=sys.stderr)
        return FAILED
    configuration = Configuration(folder, home=data_home(), trusted=True)
    trusted = record.trust(folder, hooks=configuration.hooks_digest)
    servers = [s for s in read_definitions(folder).found if s.scope == "project"]
    agents = project_agents(folder)
    approved = {server.name: server.digest for server in servers}
    approved |= {approval_name(kind): powers_digest(kind) for kind in agents}
    skills = project_skills(folder)
    approved |= dict(skill_approval(skill) for skill in skills)
    if approved:
        record.approve_servers(folder, approved)
    if arguments.json:
        write_json(trusted)
    else:
        told = [f"  {one.name}: {msgspec.json.encode(one.raw).decode()}" for one in servers]
        started = "\nIts MCP servers may start:\n" + "\n".join(map(plain, told)) if told else ""
        powers = [
            f"  {kind.name}: {msgspec.json.encode([kind.hooks, inline_servers(kind)]).decode()}"
            for kind in agents
        ]
        if powers:
            started += "\nIts agents may start programs:\n" + "\n".join(map(plain, powers))
        brought = [f"  {one.name}: {msgspec.json.encode(one.hooks).decode()}" for one in skills]
        if brought:
            started += "\nIts skills may start programs:\n" + "\n".join(map(plain, brought))
        effect = f"{_effect(configuration)}{started}"
        print(f"{plain(folder)} is trusted.{effect}", file=sys.stderr)
    return DONE


def _effect(configuration: Configuration) -> str:
    """What the folder's own files say now, so that trust is not given blindly."""
    lines = [
        f"  {entry.name} = {msgspec.json.encode(entry.value).decode()}  ({entry.origin})"
        for entries in configuration.merged.entries.values()
        for entry in entries
        if entry.origin.source in FROM_THE_PROJECT and entry.kind != "unused"
    ]
    if not lines:
        return " Its settings files say nothing yet."
    return "\nIts settings files now say:\n" + "\n".join(plain(line) for line in lines)


def _list(record: TrustRecord, *, as_json: bool) -> None:
    folders = record.folders()
    if as_json:
        write_json(folders)
        return
    if not folders:
        print("No folder is trusted yet.", file=sys.stderr)
    for folder in folders:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.at))
        print(f"{day}  {plain(folder.path)}{'  with hooks' if folder.hooks else ''}")
