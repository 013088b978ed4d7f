"""What a folder's files want, shown to a person who says whether they may."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from handaxe.config.project import Configuration
from handaxe.config.trust_store import TrustedFolder, TrustRecord
from handaxe.contract.trust_gate import TrustRequest
from handaxe.frontends.cli.render import print_error, write_error
from handaxe.frontends.cli.tty_input import discard_typed_input
from handaxe.text.escape import to_visible_text


def ask_for_trust(configuration: Configuration) -> None:
    """At a terminal: ask about what is not approved yet; without a yes it does not count."""
    if "project" not in configuration.sources or not configuration.find_pending_requests():
        return
    record, wishes = configuration.trust, configuration.find_requests()
    write_error(describe_requests(record, configuration.root, wishes))
    if confirm_trust():
        trust_folder(record, configuration.root, wishes)
    else:
        print_error("These files may only forbid. `handaxe trust` asks again.")


def confirm_trust() -> bool:
    """Ask, and read a line from the terminal that was typed after the question."""
    discard_typed_input()
    write_error("Trust these files? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def trust_folder(
    record: TrustRecord, folder: str, wishes: Sequence[TrustRequest[Any]]
) -> TrustedFolder:
    """Note that the files of a folder may do what was shown."""
    return record.trust(folder, {wish.key: wish.note for wish in wishes})


def describe_requests(record: TrustRecord, folder: str, wishes: Sequence[TrustRequest[Any]]) -> str:
    """What the folder's files want to do, and how that differs from what was trusted."""
    approved: Mapping[str, str] = record.approved(folder)
    if not wishes and not approved:
        return f"The files of {to_visible_text(folder)} want nothing yet.\n"
    lines = [f"The files of {to_visible_text(folder)} want:"]
    is_known = record.find(folder) is not None
    for wish in wishes:
        earlier = approved.get(wish.key)
        mark = "=" if earlier == wish.note else "+" if earlier is None else "~"
        was = f"  (was {earlier})" if mark == "~" else ""
        name = wish.key.removesuffix(f"={wish.note}")
        lines.append(f"  {mark if is_known else ' '} {name} = {wish.note}{was}  ({wish.file})")
    gone = approved.keys() - {wish.key for wish in wishes}
    lines += [f"  - {key} = {approved[key]}" for key in sorted(gone)]
    return "".join(f"{to_visible_text(line)}\n" for line in lines)
