"""What a session remembers beside files and permissions: lists, loaded tools, how to answer."""

import re
from collections.abc import Mapping
from typing import Any

from handaxe.app.companions import Companion, Surroundings
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.skills import Skills
from handaxe.contract.ports.task_list import TaskList
from handaxe.host.skills import DiskSkills
from handaxe.session.brevity import Brevity
from handaxe.session.identity import SessionIdentity
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.session.loaded_tools import LoadedTools
from handaxe.session.todos import Todos
from handaxe.session.wakeups import Wakeups
from handaxe.storage.sessions import History
from handaxe.storage.task_lists import DiskTaskList

_LIST_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}")


class Memory(Companion):
    """State objects of one session, as tools ask for them."""

    def __init__(self, around: Surroundings, history: History) -> None:
        self.todos = Todos(around.emit)
        self.brevity = Brevity(around.emit)
        self.loaded = LoadedTools(around.emit)
        self.wakeups = Wakeups()
        self.invoked_skills = InvokedSkills()
        workdir = around.workdir
        self.skills = DiskSkills(workdir.home, lambda: (workdir.current, *workdir.roots))
        self.identity = SessionIdentity(around.session_id, workdir.root)
        shared = around.configuration.settings.task_list
        if shared is not None and not _LIST_NAME.fullmatch(shared):
            raise SetupError(f"{shared!r} is no name for a task list: use letters, digits, . _ -")
        name = shared or around.session_id
        self.tasks = DiskTaskList(around.data_home / "tasks" / name)
        if history.todos is not None:
            self.todos.replay(history.todos)
        if history.brief is not None:
            self.brevity.replay(history.brief)
        self.loaded.replay(history.loaded_tools)

    def for_agent(self, around: Surroundings) -> "Memory":
        """A sub-agent has lists of its own; tasks are shared, by their place on disk."""
        return Memory(around, History())

    @property
    def offers(self) -> Mapping[type[Any], Any]:
        """The state objects by type."""
        return {
            Todos: self.todos,
            Brevity: self.brevity,
            LoadedTools: self.loaded,
            Wakeups: self.wakeups,
            TaskList: self.tasks,
            Skills: self.skills,
            InvokedSkills: self.invoked_skills,
            SessionIdentity: self.identity,
        }
