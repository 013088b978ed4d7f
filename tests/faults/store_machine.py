"""Two sessions and a person at work in one project, with kills, a small budget and a wrong clock.

Whatever they do in whatever order: nobody's last write is lost, and every undo restores exactly
what its calls had found, or changes nothing and says why.
"""

import os
import shutil
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.faults.checked_store import PRUNES_BY_CALL, CheckedStore, expand
from tests.faults.undo_model import choose, find_changes, look_at, predict
from tests.undo.undoable import UNDO, shift_clock

from handaxe.storage.home import generate_session_id
from handaxe.storage.sessions import fork_session, has_session
from handaxe.undo.prune import prune

OTHERS_DURING_COMMANDS = True
"""Whether others write while a command runs: what they wrote is not the command's to undo."""
UNDO_GOES_ON = True
"""Whether an undo that was killed halfway is finished by the next one."""

WHO = st.sampled_from("AB")
FILES = ["a", "b", "big", "d/a", "d/e/a", "f/a"]
NAMES = st.sampled_from([*FILES, "h", "l"])
TEXTS = st.sampled_from(["", "one\n", "one\ntwo\n", "one\r\n", "BIG", "BIGGER"])
MODES = st.sampled_from(["600", "644", "755", "444"])
KILLS = st.integers(20, 110)
DAY_S = 24 * 60 * 60
CLOCKS = st.sampled_from([-40 * DAY_S, -3600, 0, 90, DAY_S + 60, 40 * DAY_S])
ROOM_FOR_ONE = 400_000
"""More than any one call here can replace."""
BUDGETS = st.sampled_from([0, 60_000, 150_000, ROOM_FOR_ONE, 1 << 30])


@st.composite
def commands(draw: st.DrawFn) -> str:
    """A command that changes something, if its words alone tell what or not."""
    one, other = draw(NAMES), draw(NAMES)
    text = draw(
        st.sampled_from(
            [
                f"echo one >> {one}",
                f"rm -f {one} {other}",
                f"mv -f {one} {other}",
                f"cp {one} {other}",
                f"ln -f {one} h",
                f"ln -sfn {one} l",
                f"chmod {draw(MODES)} {one}",
                f"sed -i s/one/uno/ {one}",
                f"printf %70000d 1 > {one}",
                "rm -rf d",
                "mkdir -p d/e f/g",
                "mv -T d f",
                "chmod 700 d",
            ]
        )
    )
    return draw(st.sampled_from([text, f"sh -c '{text}'"]))


class StoreMachine(CheckedStore, RuleBasedStateMachine):
    """The steps, which hypothesis puts in an order."""

    most_kills = 1
    """A kill costs as much as ten other steps."""

    # What sessions do

    @rule(who=WHO, name=NAMES, text=TEXTS, reads=st.booleans())
    def write(self, who: str, name: str, text: str, reads: bool) -> None:
        self.change(who, name, "Write", file_path=name, content=expand(text), reads=reads)

    @rule(who=WHO, name=NAMES, reads=st.sampled_from([True, True, False]))
    def edit(self, who: str, name: str, reads: bool) -> None:
        words = {"old_string": "one", "new_string": "one more", "replace_all": True}
        self.change(who, name, "Edit", file_path=name, **words, reads=reads)

    @rule(who=WHO, text=TEXTS)
    def edit_notebook(self, who: str, text: str) -> None:
        words = {
            "notebook_path": "n.ipynb",
            "cell_id": "c",
            "new_source": f"{text}# {generate_session_id()}",
        }
        self.change(who, "n.ipynb", "NotebookEdit", **words, reads=True)

    @rule(who=WHO, name=st.sampled_from(FILES), other=st.sampled_from(FILES), moves=st.booleans())
    def patch(self, who: str, name: str, other: str, moves: bool) -> None:
        moving = f"*** Move to: {other}\n" if moves and other != name else ""
        text = (
            f"*** Begin Patch\n*** Update File: {name}\n{moving}@@\n-one\n+one patched\n"
            "*** Add File: p/new\n+patched\n*** End Patch\n"
        )
        before = look_at(self.root)
        result = self.call(who, "ApplyPatch", input=text)
        self.check_paths(before, {name, other, "p/new"}, result)
        after = look_at(self.root)
        for path in find_changes(before, after) & set(after):
            self.seen[self.ids[who], path] = {after[path].content}
        self.note(who, result, before)

    @rule(who=WHO, command=commands())
    def command(self, who: str, command: str) -> None:
        before = look_at(self.root)
        result = self.call(who, "Bash", command=command, description="Change something")
        self.note(who, result, before)

    if OTHERS_DURING_COMMANDS:

        @rule(who=WHO, name=st.sampled_from(FILES), other=st.sampled_from(FILES), text=TEXTS)
        def command_while_others_write(self, who: str, name: str, other: str, text: str) -> None:
            """A command writes, then others write, then it writes again and ends."""
            before = look_at(self.root)
            for each in ("A", "B"):
                self.session(each)
            result, own, between = self.do(self.meet(who, name, other, text))
            paths = find_changes(before, own) | find_changes(between, look_at(self.root))
            self.note(who, result, before, paths - find_changes(own, between))

    # What a person does

    @rule(name=NAMES, text=TEXTS, in_place=st.booleans(), is_sly=st.booleans())
    def person_saves(self, name: str, text: str, in_place: bool, is_sly: bool) -> None:
        self.save(name, text, in_place=in_place, is_sly=is_sly)

    @rule(name=NAMES, other=NAMES, kind=st.sampled_from(["delete", "link", "name", "move", "mode"]))
    def person_changes(self, name: str, other: str, kind: str) -> None:
        path, to = self.root / name, self.root / other
        if not os.path.lexists(path) or not to.parent.is_dir():
            return
        if kind == "delete":
            path.unlink()
        elif kind == "mode" and not path.is_symlink():
            path.chmod(0o640)
        elif kind == "move":
            path.rename(to)
        elif kind in {"link", "name"} and path != to and not path.is_symlink():
            to.unlink(missing_ok=True)
            if kind == "link":
                to.symlink_to(path)
            else:
                to.hardlink_to(path)

    @rule(kind=st.sampled_from(["make", "remove", "fill"]))
    def person_changes_directories(self, kind: str) -> None:
        if kind == "make":
            (self.root / "d/e").mkdir(parents=True, exist_ok=True)
        elif kind == "remove":
            shutil.rmtree(self.root / "d", ignore_errors=True)
        elif (self.root / "f").is_dir():
            (self.root / "f/theirs").write_text("one\n")

    # Undo

    @rule(who=WHO, force=st.sampled_from([False, False, True]))
    def undo(self, who: str, force: bool) -> None:
        # Force takes back also what others wrote while a command ran.
        was_met = any(change.is_mixed for change in self.changes_of(who))
        self.put_back(who, force=force and not was_met)

    @rule(who=WHO)
    def redo(self, who: str) -> None:
        undos = {change.call_id for change in self.changes_of(who) if change.undoes}
        if any(0 < len(undos & {*one.undoes}) < len(one.undoes) for one in self.changes_of(who)):
            # What took back calls and undos alike is neither an undo nor a redo.
            return
        self.put_back(who, redo=True)

    @rule(who=WHO, number=st.integers(0, 20), only=st.booleans())
    def undo_by_id(self, who: str, number: int, only: bool) -> None:
        listed = [change for change in self.changes_of(who) if change.is_listed and change.paths]
        if listed:
            self.put_back(who, call_id=listed[number % len(listed)].call_id, only=only)

    @rule(who=WHO)
    def undo_from_the_shell(self, who: str) -> None:
        if any(change.is_listed and not change.is_pruned for change in self.changes_of(who)):
            self.put_back(who, from_shell=True)

    # Kills

    @precondition(lambda self: self.kills < self.most_kills)
    @rule(who=WHO, name=NAMES, text=TEXTS, command=st.none() | commands(), at=KILLS)
    def kill_a_call(self, who: str, name: str, text: str, command: str | None, at: int) -> None:
        """A session's process is killed while it writes a file or runs a command."""
        path = str(self.root / name)
        self.learn(who, os.path.relpath(os.path.realpath(path), self.root), look_at(self.root))
        calls: list[tuple[str, dict[str, Any]]] = [
            ("Read", {"file_path": path, "limit": 50}),
            ("Write", {"file_path": path, "content": expand(text)}),
        ]
        if command is not None:
            calls[1:] = [("Bash", {"command": command, "description": "Change something"})]
        self.kill(who, calls, at)

    if UNDO_GOES_ON:
        # Forty days later whoever closes the session drops what was to be undone.
        @precondition(lambda self: self.kills < self.most_kills and self.clock_s <= 2 * DAY_S)
        @rule(who=WHO, at=KILLS, again=st.none() | KILLS)
        def kill_an_undo(self, who: str, at: int, again: int | None) -> None:
            """Killed halfway, and perhaps killed again: the next undo finishes it."""
            self.close(who)
            targets = choose(self.changes_of(who), None, only=False, redo=False)
            before = look_at(self.root)
            if not targets or any(change.is_cut_off for change in targets):
                return
            prediction = predict(before, targets)
            if prediction.may_refuse:
                return
            for number in (at, again):
                if number is not None and not self.is_undone(who, targets[-1]):
                    self.run_in_process(who, [(UNDO, {})], number)
                    self.check_halfway(before, prediction)
            self.finish_undo(who, before, targets, prediction)

    # Sessions, budget, clock

    @rule(who=WHO)
    def resume(self, who: str) -> None:
        self.close(who)
        self.check_history(who)

    @rule(who=WHO)
    def fork(self, who: str) -> None:
        """Go on in a copy, which has changed nothing yet; the original keeps what it did."""
        self.close(who)
        if not has_session(self.home, self.ids[who]):
            return
        fork_id = generate_session_id()
        fork_session(self.home, self.ids[who], fork_id)
        for (knowing, path), contents in list(self.seen.items()):
            if knowing == self.ids[who]:
                self.seen[fork_id, path] = set(contents)
        self.ids[who], self.changes[fork_id] = fork_id, []
        self.check_history(who)

    @rule(budget=BUDGETS)
    def collect_garbage(self, budget: int) -> None:
        newest = self.find_newest()
        prune(self.home, max_bytes=budget, retention_days=30)
        self.take_pruned(may_prune=budget < 1 << 30 or self.was_clock_moved)
        if PRUNES_BY_CALL and budget >= ROOM_FOR_ONE and not self.was_clock_moved:
            assert newest is None or not newest.is_pruned

    @rule(by=CLOCKS)
    def set_clock(self, by: int) -> None:
        self.clock_s = by
        self.was_clock_moved = True
        shift_clock(by)
