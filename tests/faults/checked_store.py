"""The real store with the model beside it: what every step does, and what has to hold after it."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.faults.undo_model import (
    ABSENT,
    Change,
    Prediction,
    Tree,
    choose,
    find_changes,
    find_differences,
    find_leftovers,
    find_undone,
    look_at,
    predict,
)
from tests.undo.undoable import NOTEBOOK, in_a_process, open_session, shift_clock

from handaxe import Session, ToolResult
from handaxe.app.undo_commands import find_past_sessions
from handaxe.contract.ports.undo import ChangedCall, UndoRequest
from handaxe.undo.journal_files.ended_calls import read_pruned_calls
from handaxe.undo.journal_files.records import list_journal_files

PRUNES_BY_CALL = True
"""Whether a budget drops the oldest calls only, and lists them also when it dropped all."""
LEAVES_NOTHING = True
"""Whether a session that starts puts away what a killed one left in the project."""
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def expand(text: str) -> str:
    """A text, large where that is its name."""
    return {"BIG": "one\n" + "x" * 70_000, "BIGGER": "one\n" + "y" * 90_000}.get(text, text)


class CheckedStore:
    """Two sessions in one project, and what they may expect of it."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="machine-", dir=IN_MEMORY))
        self.root, self.home = self.place / "project", self.place / "home"
        (self.root / "d").mkdir(parents=True)
        for name, text in {"a": "one\n", "big": "BIG", "d/a": "one\nand d\n"}.items():
            (self.root / name).write_text(expand(text))
        (self.root / "n.ipynb").write_text(NOTEBOOK)
        self.runner = asyncio.Runner()
        self.clock_s = 0.0
        self.was_clock_moved = False
        self.kills = 0
        self.ids = {"A": "first", "B": "second"}
        self.open: dict[str, Session] = {}
        self.changes: dict[str, list[Change]] = {"first": [], "second": []}
        self.seen: dict[tuple[str, str], set[bytes]] = {}
        """The contents that a session knows of a path."""

    def teardown(self) -> None:
        try:
            for session in self.open.values():
                self.do(session.close())
        finally:
            shift_clock(0)
            self.runner.close()
            for folder, _, _ in os.walk(self.root):
                os.chmod(folder, 0o700)
            shutil.rmtree(self.place)

    def session(self, who: str) -> Session:
        if who not in self.open:
            session = open_session(self.root, self.home, self.ids[who])
            self.open[who] = self.do(session.__aenter__())
            if LEAVES_NOTHING:
                assert not find_leftovers(self.root)
        return self.open[who]

    def close(self, who: str) -> None:
        if who in self.open:
            self.do(self.open.pop(who).close())
            self.take_pruned(may_prune=self.was_clock_moved)

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    def changes_of(self, who: str) -> list[Change]:
        return self.changes[self.ids[who]]

    def call(self, who: str, tool: str, **words: Any) -> ToolResult:
        for key in ("file_path", "notebook_path"):
            if key in words:
                words[key] = str(self.root / words[key])
        result = self.do(self.session(who).call(tool, **words))
        assert result.code not in {"internal.error", "permission.asked"}, result.text
        return result

    def change(self, who: str, name: str, tool: str, *, reads: bool, **words: Any) -> None:
        """Change one file; who has not seen what is there is refused."""
        before = look_at(self.root)
        real = os.path.relpath(os.path.realpath(self.root / name), self.root)
        there = before.get(real, ABSENT)
        if reads and there.kind == "file":
            assert (result := self.call(who, "Read", file_path=name, limit=50)).ok, result.text
            self.seen[self.ids[who], real] = {there.content}
        result = self.call(who, tool, **words)
        self.check_paths(before, {real}, result)
        if result.ok and there.kind == "file":
            assert there.content in self.seen.get((self.ids[who], real), ()), "an update was lost"
        if not result.ok and reads:
            assert result.code in self.expected_refusals(tool, real, there), result.text
        after = look_at(self.root)
        if result.ok:
            self.seen[self.ids[who], real] = {after[real].content}
        self.note(who, result, before)

    def expected_refusals(self, tool: str, real: str, there: Any) -> set[str]:
        """Why a change may be refused although the file was read a moment ago."""
        if there.kind != "file":
            refusals = {"file.not_found", "file.is_directory", "file.outside", "file.link"}
            # A link that leads to itself is no path at all.
            return refusals | {"file.bad_path"} if there.kind == "link" else refusals
        if tool == "Edit" and b"one" not in (self.root / real).read_bytes():
            return {"edit.no_match"}
        return set() if there.mode & 0o200 else {"file.read_only"}

    def check_paths(self, before: Tree, allowed: Iterable[str], result: ToolResult) -> None:
        """A call changes what it names, and nothing if it fails."""
        changed = find_changes(before, look_at(self.root))
        real = {os.path.relpath(os.path.realpath(self.root / path), self.root) for path in allowed}
        paths = {*allowed, *real}
        names = {name for path in paths for name in before.get(path, ABSENT).names}
        above = {str(parent) for path in paths for parent in Path(path).parents}
        assert changed <= paths | names | above, (changed, result.text)
        assert result.ok or not changed, (changed, result.text)

    def learn(self, who: str, path: str, tree: Tree) -> None:
        if path in tree:
            self.seen.setdefault((self.ids[who], path), set()).add(tree[path].content)

    def note(
        self, who: str, result: ToolResult, before: Tree, paths: set[str] | None = None
    ) -> None:
        """Put a call that changed something on the model's record."""
        after = look_at(self.root)
        paths = find_changes(before, after) if paths is None else paths
        if before == after:
            self.check_history(who)
            return
        self.changes_of(who).append(Change(result.id, "Call", before, after, paths))
        self.settle_listing(who)
        self.check_history(who)

    def settle_listing(self, who: str) -> None:
        """See whether the last change is listed.

        Where only empty directories or second names differ, the record may see it either way.
        """
        change = self.changes_of(who)[-1]
        change.is_listed = change.has_contents
        if change.before != change.after and not change.is_listed:
            listed = {call.call_id for call in self.session(who).history()}
            change.is_listed = change.call_id in listed

    def check_history(self, who: str) -> None:
        """The history lists every call that changed something, and which of them stand."""
        history = self.session(who).history()
        listed = [change for change in self.changes_of(who) if change.is_listed]
        assert [call.call_id for call in history] == [change.call_id for change in listed]
        gone = find_undone(self.changes_of(who))
        for call, change in zip(history, listed, strict=True):
            assert call.pruned == change.is_pruned
            # A first attempt shares the fate of the undo that finished it, and a command that wrote
            # nothing itself has nothing that could stand.
            is_told = change.paths and not call.pruned and not change.is_first_attempt
            assert not is_told or call.undone == (call.call_id in gone), call

    def list_calls(self, session_id: str) -> list[ChangedCall]:
        """What anybody can see of the changes of a session, whether it is open or not."""
        if PRUNES_BY_CALL or list_journal_files(self.home / "sessions" / session_id):
            [past] = find_past_sessions(self.home, root=self.root, session_id=session_id)
            return past.calls()
        return read_pruned_calls(self.home / "sessions" / session_id)

    def find_newest(self) -> Change | None:
        """The change that was made last and can still be undone."""
        known = {one.call_id: one for changes in self.changes.values() for one in changes}
        sessions = [
            id_ for id_, changes in self.changes.items() if any(one.is_listed for one in changes)
        ]
        calls = [call for id_ in sessions for call in self.list_calls(id_) if not call.pruned]
        newest = max(calls, key=lambda call: call.at, default=None)
        return newest and known[newest.call_id]

    def take_pruned(self, *, may_prune: bool) -> None:
        """Take over what was pruned: the oldest of each session, and nothing without a reason."""
        for session_id, changes in self.changes.items():
            listed = [change for change in changes if change.is_listed]
            if not listed:
                continue
            calls = self.list_calls(session_id)
            assert [call.call_id for call in calls] == [change.call_id for change in listed]
            flags = [call.pruned for call in calls]
            assert flags == sorted(flags, reverse=True), flags
            for call, change in zip(calls, listed, strict=True):
                assert call.pruned >= change.is_pruned
                assert may_prune or call.pruned == change.is_pruned
                change.is_pruned = call.pruned

    def put_back(self, who: str, *, from_shell: bool = False, **wanted: Any) -> None:
        before = look_at(self.root)
        changes = self.changes_of(who)
        call_id = wanted.get("call_id")
        if any(change.call_id == call_id and change.is_pruned for change in changes):
            result = self.do(self.session(who).undo(**wanted))
            self.check_refusal(result, before, {"undo.pruned"})
            return
        targets = choose(
            changes, call_id, only=wanted.get("only", False), redo=wanted.get("redo", False)
        )
        if from_shell:
            [past] = find_past_sessions(self.home, root=self.root, session_id=self.ids[who])
            result = self.do(past.undo(UndoRequest(**wanted)))
        else:
            result = self.do(self.session(who).undo(**wanted))
        self.check_undo(who, result, before, targets, force=wanted.get("force", False))
        self.check_history(who)

    def check_undo(
        self, who: str, result: ToolResult, before: Tree, targets: list[Change], *, force: bool
    ) -> None:
        if not targets:
            self.check_refusal(result, before, {"undo.nothing", "undo.pruned"})
            return
        prediction = predict(before, targets, force=force)
        if any(change.is_cut_off for change in targets) and self.was_clock_moved:
            prediction.open_paths.add("(written late)")
            prediction.is_exact = False
        cut_off = {change.call_id for change in self.changes_of(who) if change.is_cut_off}
        if any(cut_off.intersection(change.undoes) for change in targets):
            # An empty directory that a killed call had made need not come back by a redo.
            tree = prediction.tree
            prediction.is_exact = False
            prediction.spare |= {path for path, thing in tree.items() if thing.kind == "directory"}
        after = look_at(self.root)
        if not result.ok:
            assert prediction.may_refuse, (result.text, targets)
            self.check_refusal(result, before, {"undo.conflict"})
            return
        assert prediction.may_succeed, (prediction.conflicts, result.text)
        assert not (wrong := find_differences(prediction, after)), (wrong, result.text)
        ids = tuple(change.call_id for change in targets)
        paths = find_changes(before, after)
        self.changes_of(who).append(Change(result.id, "Undo", before, after, paths, ids))
        self.settle_listing(who)
        for path in paths:
            self.learn(who, path, after)

    def check_refusal(self, result: ToolResult, before: Tree, codes: set[str]) -> None:
        assert not result.ok, result.text
        assert result.code in codes, result.text
        assert look_at(self.root) == before

    def kill(self, who: str, calls: list[tuple[str, dict[str, Any]]], at: int) -> None:
        """Make calls in a process that is killed; the session goes on afterwards."""
        self.close(who)
        before = look_at(self.root)
        self.run_in_process(who, calls, at)
        after = look_at(self.root)
        known = {change.call_id for change in self.changes_of(who)}
        new = [call for call in self.session(who).history() if call.call_id not in known]
        paths = find_changes(before, after)
        if Change("", "", before, after, paths).has_contents:
            assert len(new) == 1, (paths, new)
        for call in new:
            change = Change(call.call_id, call.tool, before, after, paths)
            change.is_cut_off, change.is_pruned = call.cut_off, call.pruned
            self.changes_of(who).append(change)
        self.take_pruned(may_prune=self.was_clock_moved)
        for path in paths:
            self.learn(who, path, before)
            self.learn(who, path, after)

    def is_undone(self, who: str, change: Change) -> bool:
        calls = self.list_calls(self.ids[who])
        return any(call.call_id == change.call_id and call.undone for call in calls)

    def check_halfway(self, before: Tree, prediction: Prediction) -> None:
        """Every file is as it was, or as it is to be, and whole."""
        for path, there in look_at(self.root).items():
            allowed = {before.get(path, ABSENT)[:2], prediction.tree.get(path, ABSENT)[:2]}
            assert there.kind == "directory" or there[:2] in allowed, (path, there)

    def finish_undo(
        self, who: str, before: Tree, targets: list[Change], prediction: Prediction
    ) -> None:
        changes = self.changes_of(who)
        known = {change.call_id for change in changes}
        if not self.is_undone(who, targets[-1]):
            result = self.do(self.session(who).undo())
            assert result.ok, result.text
        after = look_at(self.root)
        assert not (wrong := find_differences(prediction, after)), wrong
        ids = tuple(change.call_id for change in targets)
        attempts = [call for call in self.session(who).history() if call.call_id not in known]
        for call in attempts:
            # Together they are one undo, and the last of them stands for all.
            is_last = call is attempts[-1]
            paths = find_changes(before, after) if is_last else set()
            undo = Change(call.call_id, "Undo", before, after, paths, ids)
            undo.is_first_attempt, undo.is_pruned = not is_last, call.pruned
            changes.append(undo)
        if not attempts:
            # There was nothing to put back, but it counts.
            changes.append(Change("an undo", "Undo", before, after, set(), ids, is_listed=False))
        for path in find_changes(before, after):
            self.learn(who, path, after)
        self.take_pruned(may_prune=self.was_clock_moved)
        self.check_history(who)

    def run_in_process(self, who: str, calls: list[tuple[str, dict[str, Any]]], at: int) -> bool:
        self.kills += 1
        lived = in_a_process(
            self.root, self.home, calls, at, session_id=self.ids[who], clock_s=self.clock_s
        )
        while self.is_anybody_at_work():
            time.sleep(0.001)
        return lived

    def is_anybody_at_work(self) -> bool:
        """Whether a process of a killed session still stands in the project."""
        for process in Path("/proc").glob("[0-9]*/cwd"):
            try:
                if os.readlink(process).startswith(str(self.root)):
                    return True
            except OSError:
                continue
        return False

    def save(self, name: str, text: str, *, in_place: bool, is_sly: bool = False) -> None:
        """Save as editors do; slyly: with the time and, if it can be, the size it had before."""
        path = self.root / name
        if not path.parent.is_dir() or (path.is_symlink() and not path.exists()):
            return
        had = path.stat() if path.exists() else None
        content = expand(text).encode()
        if had and is_sly and had.st_size:
            content = path.read_bytes().replace(b"one", b"eno").replace(b"x" * 10, b"z" * 10)
        real = Path(os.path.realpath(path))
        target = real if in_place else real.with_name(".saving")
        target.write_bytes(content)
        if had and is_sly:
            os.utime(target, ns=(had.st_atime_ns, had.st_mtime_ns))
        target.rename(real)

    async def meet(
        self, who: str, name: str, other: str, text: str
    ) -> tuple[ToolResult, Tree, Tree]:
        gate = self.place / "gate"
        gate.unlink(missing_ok=True)
        os.mkfifo(gate)
        command = f"sh -c 'mkdir -p d; echo mine >> {name}; cat {gate}; echo mine > m'"
        running = asyncio.ensure_future(self.session(who).call("Bash", command=command))
        while True:
            try:
                writer = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError:
                assert not running.done(), (await running).text
                await asyncio.sleep(0.001)
        own = look_at(self.root)
        # Nothing tells two apart who write one file while the command runs.
        if os.path.realpath(self.root / other) != os.path.realpath(self.root / name):
            self.save(other, text, in_place=False)
        partner = self.session("B" if who == "A" else "A")
        theirs = self.root / "theirs"
        if not theirs.exists():
            result = await partner.call("Write", file_path=str(theirs), content=expand(text))
            assert result.ok, result.text
            met = look_at(self.root)
            without = {path: thing for path, thing in met.items() if path != "theirs"}
            self.changes[partner.id].append(Change(result.id, "Write", without, met, {"theirs"}))
        between = look_at(self.root)
        os.close(writer)
        return await running, own, between
