"""Hooks as they are written down: the ecosystem's shape, and loud about mistakes."""

import pytest

from handaxe import SetupError
from handaxe.hooks.config import CallableHook, CommandHook, HttpHook, compile_matcher, read_hooks
from handaxe.hooks.event_types import EVENTS
from handaxe.hooks.service import Hooks


async def watch(event):
    return None


class Watcher:
    async def __call__(self, event):
        return None


def read(raw):
    return read_hooks(raw, source="test")


def only_problem(raw):
    book = read(raw)
    assert len(book.problems) == 1, book.problems
    return book.problems[0]


@pytest.mark.proves("HK-1")
def test_the_ecosystems_shape_is_read_as_it_is():
    book = read(
        {
            "PreToolUse": [
                {
                    "matcher": "Edit|Write",
                    "hooks": [
                        {"type": "command", "command": "./check.sh", "timeout": 5},
                        {"type": "command", "command": "jq", "args": [".tool_name"], "async": True},
                        {"type": "http", "url": "https://h.example/x", "headers": {"A": "$B"}},
                    ],
                }
            ],
            "Stop": [{"hooks": [{"type": "prompt", "prompt": "Done? $ARGUMENTS"}]}],
            "SessionStart": [
                {"hooks": [{"type": "mcp_tool", "server": "memory", "tool": "load"}]},
                {"matcher": "resume", "hooks": [{"type": "mcp_tool", "server": "s", "tool": "t"}]},
            ],
        }
    )
    assert book.problems == ()
    assert [placed.event for placed in book.placed] == [
        *["PreToolUse"] * 3,
        "Stop",
        *["SessionStart"] * 2,
    ]
    first, second, third = (placed.hook for placed in book.placed[:3])
    assert first == CommandHook(command="./check.sh", timeout=5)
    assert isinstance(second, CommandHook)
    assert (second.args, second.in_background) == ((".tool_name",), True)
    assert isinstance(third, HttpHook)


def test_a_plugins_wrapper_is_looked_through():
    raw = {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}
    assert len(read({"description": "mine", "hooks": raw}).placed) == 1


def test_python_functions_stand_alone_or_in_groups():
    book = read(
        {
            "PreToolUse": [
                watch,
                {"matcher": "Edit", "timeout": 2, "on_failure": "open", "hooks": [Watcher()]},
                {"hooks": [{"type": "callable", "call": watch, "async": True}]},
            ]
        }
    )
    assert book.problems == ()
    lone, grouped, late = (placed.hook for placed in book.placed)
    assert isinstance(lone, CallableHook)
    assert lone.name == "watch"
    assert (grouped.timeout, grouped.on_failure) == (2, "open")
    assert late.in_background


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_of_the_ecosystem_has_its_place(event):
    assert read({event: [{"matcher": "x", "hooks": [watch]}]}).problems == ()


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"PreTolUse": []}, "Did you mean 'PreToolUse'?"),
        ({"Nonsense": []}, "'Nonsense' is not a hook event."),
        ({"Stop": "x"}, "hooks.Stop: expected a list of groups"),
        ({"Stop": [3]}, "hooks.Stop[0]: expected `matcher` and `hooks`"),
        ({"Stop": [{"hooks": 3}]}, "hooks.Stop[0]: expected a list `hooks`"),
        ({"Stop": [{"hooks": [3]}]}, "hooks.Stop[0].hooks[0]: expected a hook"),
        ({"Stop": [{"hooks": [{"type": "comand"}]}]}, "Did you mean 'command'?"),
        ({"Stop": [{"hooks": [{"command": "x"}]}]}, "None is not a type of hook."),
        ({"Stop": [{"hooks": [{"type": "command"}]}]}, "`command`"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "file:///x"}]}]}, "not an http or https"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "http://a:b@x/"}]}]}, "`headers`"),
        ({"Stop": [{"hooks": [{"type": "http", "url": "http://x:y/"}]}]}, "not a valid address"),
        ({"PreToolUse": [{"matcher": "(", "hooks": []}]}, "hooks.PreToolUse[0].matcher: '('"),
        ({"PreToolUse": [{"matcher": 3, "hooks": []}]}, "3 is not a text"),
        ({"Stop": [lambda event: None]}, "is not an async function"),
        ({"Stop": [{"hooks": [{"type": "callable", "call": 3}]}]}, "3 is not an async function"),
        (
            {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]},
            "timeout",
        ),
        (
            {
                "Stop": [
                    {
                        "hooks": [
                            {
                                "type": "command",
                                "command": "x",
                                "async": True,
                                "on_failure": "closed",
                            }
                        ]
                    }
                ]
            },
            "cannot be `closed`",
        ),
        (3, "hooks: expected events"),
    ],
)
def test_a_mistake_is_named_with_its_place(raw, said):
    assert said in only_problem(raw)
    with pytest.raises(SetupError):
        Hooks(raw)


def test_a_mistake_disables_nothing_beside_it():
    good = {"type": "command", "command": "x"}
    book = read({"Nope": [], "Stop": [3, {"matcher": "", "hooks": [{"type": "?"}, good]}]})
    assert len(book.problems) == 3
    assert [placed.hook for placed in book.placed] == [CommandHook(command="x")]


def test_an_unknown_key_is_named_and_the_guard_stays():
    book = read({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timout": 3}]}]})
    assert "Did you mean 'timeout'?" in book.problems[0]
    assert len(book.placed) == 1


def test_a_key_in_the_log_shows_no_query():
    book = read({"Stop": [{"hooks": [{"type": "http", "url": "https://h/x?key=secret"}]}]})
    assert book.placed[0].hook.name == "https://h/x"


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("text", "fitting", "others"),
    [
        (None, ["Edit", "mcp__a__b", ""], []),
        ("", ["Edit"], []),
        ("*", ["Edit"], []),
        ("Edit", ["Edit"], ["MultiEdit", "Edi", "edit", "Edit "]),
        ("Edit|Write", ["Edit", "Write"], ["NotebookEdit", "Edit|Write"]),
        ("Edit, Write", ["Edit", "Write"], ["Read"]),
        ("Edit | Write", ["Edit", "Write"], ["Read"]),
        ("mcp__memory", [], ["mcp__memory__load", "mcp__memory_x"]),
        ("mcp__memory__.*", ["mcp__memory__load"], ["mcp__other__load"]),
        ("mcp__.*__write.*", ["mcp__a__write_file"], ["mcp__a__read"]),
        ("mcp__brave-search__find", ["mcp__brave-search__find"], ["mcp__brave-search__fin"]),
        ("Notebook.*", ["NotebookEdit", "ANotebookX"], ["Edit"]),
        ("^Edit$", ["Edit"], ["MultiEdit", "Editor"]),
        ("(?<kind>Ed|Wr)it", ["Edit", "Write"], ["Read"]),
        ("|", [], ["", "Edit"]),
    ],
)
def test_matchers_are_names_or_patterns(text, fitting, others):
    fits = compile_matcher(text)
    assert [name for name in fitting if not fits((name,))] == []
    assert [name for name in others if fits((name,))] == []


def test_names_of_files_and_errors_are_lists_only_without_other_signs():
    assert compile_matcher("rate_limit|overloaded", literal=True)(("overloaded",))
    assert not compile_matcher("rate_limit", literal=True)(("rate_limit_of_old",))
    fits = compile_matcher(".env|a-b.txt", literal=True)
    assert fits((".env",))
    assert fits(("a-b.txt",))
    assert fits((".env.local",))
    assert not compile_matcher("a, b", literal=True)(("a",))
    assert compile_matcher("*.csv|b", literal=True)(("*.csv",))


def test_an_if_beside_calls_of_tools_keeps_a_hook_from_running():
    book = read({"Stop": [{"hooks": [{"type": "command", "command": "x", "if": "Bash(git *)"}]}]})
    assert book.placed == ()
    assert "only for tool calls" in book.problems[0]


@pytest.mark.parametrize("kind", ["prompt", "agent"])
@pytest.mark.parametrize("event", EVENTS)
def test_a_model_is_asked_where_there_is_something_to_say_yes_or_no_to(event, kind):
    book = read({event: [{"hooks": [{"type": kind, "prompt": "ok?"}]}]})
    if event in ASKED:
        assert (len(book.placed), book.problems) == (1, ())
    else:
        assert book.placed == ()
        assert f"a model cannot decide at {event}" in book.problems[0]


ASKED = {
    "PermissionDenied", "PermissionRequest", "PostToolBatch", "PostToolUse", "PostToolUseFailure",
    "PreToolUse", "Stop", "SubagentStop", "TaskCompleted", "TaskCreated", "TeammateIdle",
    "UserPromptExpansion", "UserPromptSubmit",
}  # fmt: skip


def test_going_on_after_a_no_is_for_prompts_only():
    entry = {"type": "agent", "prompt": "ok?", "continueOnBlock": True}
    assert "'continueOnBlock' is unknown" in only_problem({"Stop": [{"hooks": [entry]}]})
