"""`handaxe config`: show settings with their origins, and change single ones."""

import argparse
import asyncio
from typing import Any, cast

import msgspec

from handaxe.app.services.configuration import open_configuration
from handaxe.config.file_edit import parse_value
from handaxe.config.keys import split_key
from handaxe.config.project import Configuration
from handaxe.config.settings_paths import SCOPES
from handaxe.config.working_directories import resolve_project
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.ports.settings_store import Scope, SettingOrigin, SettingsStore, SettingValue
from handaxe.disk.local_files import LocalFiles
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import write_json
from handaxe.frontends.cli.render import print_error, print_out
from handaxe.frontends.cli.session_options import read_settings_option, warn
from handaxe.storage.home import find_data_home
from handaxe.text.escape import to_visible_text

ACTIONS = ("list", "get", "set", "unset", "path")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS)
    parser.add_argument("key", nargs="?", metavar="KEY", help="such as read.line_format")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="JSON, or a plain text")
    parser.add_argument(
        "--scope", choices=SCOPES, help="the file to change, or to name (default: user)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--root", default=".", metavar="DIR", help="the project (default: here)")
    parser.add_argument("--settings", metavar="FILE|JSON", help="settings for this run")
    parser.add_argument("--setting-sources", metavar="LIST", help="which settings files are read")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    _refuse_surplus(arguments)
    root = resolve_project(arguments.root)
    configuration = open_configuration(
        root,
        home=find_data_home(),
        given=read_settings_option(arguments.settings),
        sources=arguments.setting_sources,
    )
    store = configuration.store(LocalFiles())
    try:
        return _ACTIONS[arguments.action](arguments, configuration, store)
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None


def _list(arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore) -> int:
    found = store.listed()
    if arguments.json:
        write_json(
            {
                "settings": [_to_json(setting) for setting in found],
                "warnings": list(configuration.warnings),
                "trusted": configuration.is_trusted,
            }
        )
        return DONE
    for setting in found:
        for line in _format_lines(setting):
            print_out(to_visible_text(line))
    if not found:
        print_error("Nothing is set; everything has its default.")
    warn((*configuration.warnings, *configuration.directories()[1]))
    return DONE


def _get(arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore) -> int:
    setting = store.find(_require_key(arguments))
    if arguments.json:
        write_json(_to_json(setting))
    else:
        print_out(to_visible_text(_encode_value(setting.value), lines=True))
        for origin in dict.fromkeys(setting.origins) or (SettingOrigin("default"),):
            print_error(f"  {to_visible_text(_format_origin(origin))}")
    warn(configuration.warnings)
    return DONE


def _set(arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore) -> int:
    key = _require_key(arguments)
    if arguments.value is None:
        raise SetupError(f"`handaxe config set {key}` needs a value; `unset` removes it.")
    return _change(arguments, configuration, store, parse_value(split_key(key), arguments.value))


def _remove_value(
    arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore
) -> int:
    return _change(arguments, configuration, store, None)


def _change(
    arguments: argparse.Namespace,
    configuration: Configuration,
    store: SettingsStore,
    value: object,
) -> int:
    key = _require_key(arguments)
    scope = cast("Scope", arguments.scope or "user")
    known = set(configuration.warnings)
    setting = asyncio.run(store.change(key, value, scope))
    file = store.find_file(scope)
    if arguments.json:
        write_json({**_to_json(setting), "written": file})
    else:
        verb = "is set" if value is not None else "is taken out"
        print_error(f"`{to_visible_text(key)}` {verb} in {to_visible_text(file)}.")
        _warn_if_overridden(setting, value, file)
    warn(told for told in configuration.warnings if told not in known)
    return DONE


def _warn_if_overridden(setting: SettingValue, value: object, file: str) -> None:
    if not setting.is_used:
        print_error("handaxe knows this key but does not use it.")
    elif value is not None and all(origin.file != file for origin in setting.origins):
        stronger = ", ".join(_format_origin(origin) for origin in dict.fromkeys(setting.origins))
        print_error(f"It does not count: {to_visible_text(stronger or 'see the warning')}.")


def _print_paths(
    arguments: argparse.Namespace, configuration: Configuration, store: SettingsStore
) -> int:
    if arguments.scope is not None:
        print_out(store.find_file(arguments.scope))
        return DONE
    rows: list[dict[str, Any]] = [
        {"path": file.path, "source": file.source, "exists": file.exists, "broken": file.is_broken}
        for file in configuration.files
    ]
    if arguments.json:
        write_json(rows)
        return DONE
    for row in rows:
        state = "broken" if row["broken"] else "read" if row["exists"] else "missing"
        print_out(f"{row['source']:8} {state:8} {to_visible_text(row['path'])}")
    return DONE


_ACTIONS = {"list": _list, "get": _get, "set": _set, "unset": _remove_value, "path": _print_paths}


def _refuse_surplus(arguments: argparse.Namespace) -> None:
    """Words that would not count: whoever wrote them meant another action."""
    if arguments.key is not None and arguments.action in ("list", "path"):
        raise SetupError(
            f"`handaxe config {arguments.action}` takes no name; "
            f"`handaxe config get {arguments.key}` shows one setting."
        )
    if arguments.value is not None and arguments.action != "set":
        raise SetupError(f"`handaxe config {arguments.action}` takes no value; `set` does.")


def _require_key(arguments: argparse.Namespace) -> str:
    if arguments.key is None:
        raise SetupError(f"`handaxe config {arguments.action}` needs the name of a setting.")
    return arguments.key


def _format_lines(setting: SettingValue) -> list[str]:
    note = "" if setting.is_used else "  (known, not used here)"
    items = _get_items(setting.value)
    if not items or len(items) != len(setting.origins):
        value, origin = _encode_value(setting.value), _format_origin(setting.origins[0])
        return [f"{setting.key} = {value}  ({origin}){note}"]
    return [
        f"{setting.key} += {_encode_value(item)}  ({_format_origin(origin)}){note}"
        for item, origin in zip(items, setting.origins, strict=True)
    ]


def _get_items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _format_origin(origin: SettingOrigin) -> str:
    if origin.file is None:
        return origin.source
    return origin.file if origin.line is None else f"{origin.file}:{origin.line}"


def _to_json(setting: SettingValue) -> dict[str, Any]:
    return msgspec.to_builtins(setting)


def _encode_value(value: object) -> str:
    return msgspec.json.encode(value).decode()
