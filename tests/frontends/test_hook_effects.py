"""Hooks through `handaxe -p`: real programs, a scripted model, what they are told and what counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe.storage.home import find_data_home

pytestmark = pytest.mark.proves("HK-1")

TELL = f"{sys.executable} -c \"import sys; open('heard.jsonl','a').write(sys.stdin.read()+'\\n')\""
BASH = {"call": [{"tool": "Bash", "input": {"command": "echo secret-123"}}]}


def says(answer: dict | None = None, **specific) -> str:
    said = answer or {"hookSpecificOutput": specific}
    return f"printf %s '{json.dumps(said)}'"


def hooked(*commands: str, matcher: str = "", **more) -> list[dict]:
    hooks = [{"type": "command", "command": command, **more} for command in commands]
    return [{"matcher": matcher, "hooks": hooks}]


def heard(project: Path) -> list[dict]:
    return [json.loads(line) for line in (project / "heard.jsonl").read_text().splitlines()]


@pytest.fixture
def run(project: Path):
    def go(*words: str, code: int = 0, hooks: dict | None = None, env: dict | None = None):
        given = ["--settings", json.dumps({"hooks": hooks})] if hooks is not None else []
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", *words, *given], stdin=subprocess.DEVNULL,
            capture_output=True, cwd=project, timeout=60, check=False, text=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        assert out.returncode == code, (out.stdout, out.stderr)
        return out

    return go


def test_a_result_in_the_tools_own_shape_stands_in_for_all_of_it(project, script, run):
    instead = {"stdout": "[redacted]", "stderr": "", "interrupted": False}
    hooks = {"PostToolUse": hooked(says(hookEventName="PostToolUse", updatedToolOutput=instead))}
    model = script(BASH, {"text": "{{last.text}}"})
    out = run("-p", "go", "--model", model, "--allowedTools", "Bash", "--output-format",
              "stream-json", hooks=hooks)  # fmt: skip
    result = next(json.loads(line) for line in out.stdout.splitlines() if '"tool_result"' in line)
    assert result["message"]["content"][0]["content"] == "[redacted]"
    assert result["tool_use_result"] == instead
    assert "secret-123\\n" not in json.dumps(result)


@pytest.mark.parametrize("instead", [{"stdout": 7}, {"colour": "red"}, [1], {}, 5])
def test_a_result_of_another_shape_is_passed_over_and_told(project, script, run, instead):
    hooks = {"PostToolUse": hooked(says(hookEventName="PostToolUse", updatedToolOutput=instead))}
    model = script(BASH, {"expect": ["/secret-123/", "/another shape/"], "text": "Seen."})
    run("-p", "go", "--model", model, "--allowedTools", "Bash", hooks=hooks)


def test_a_hook_reads_what_a_tool_gave_by_the_names_of_the_ecosystem(project, script, run):
    hooks = {"PostToolUse": hooked(TELL)}
    run("-p", "go", "--model", script(BASH, {"text": "x"}), "--allowedTools", "Bash", hooks=hooks)
    response = heard(project)[0]["tool_response"]
    assert response["stdout"].strip() == "secret-123"
    assert response["interrupted"] is False
    assert "secret-123" in response["text"]


def test_words_for_the_person_are_passed_on(project, script, run):
    hooks = {
        "PreToolUse": hooked(says({"systemMessage": "Careful."})),
        "Stop": hooked(says({"systemMessage": "That was it."})),
        "Notification": hooked(says({"systemMessage": "Never shown."})),
    }
    words = ("-p", "go", "--model", script(BASH, {"text": "x"}), "--allowedTools", "Bash")
    assert run(*words, hooks=hooks).stderr == "handaxe: Careful.\nhandaxe: That was it.\n"
    lines = run(*words, "--output-format", "stream-json", hooks=hooks).stdout.splitlines()
    told = [json.loads(line) for line in lines if '"informational"' in line]
    assert [message["content"] for message in told] == ["Careful.", "That was it."]


def test_effort_prompt_and_type_of_agent_are_told(project, script, run):
    tell = 'printf "$CLAUDE_EFFORT" > effort; ' + TELL
    hooks = {"Stop": hooked(tell), "SessionStart": hooked(TELL)}
    kind = json.dumps({"reviewer": {"description": "Reviews.", "prompt": "Review."}})
    run("-p", "go", "--effort", "high", "--agent", "reviewer", "--agents", kind, "--model",
        script({"text": "x"}), hooks=hooks)  # fmt: skip
    start, stop = heard(project)
    assert start["agent_type"] == stop["agent_type"] == "reviewer"
    assert "agent_id" not in stop
    assert stop["effort"] == {"level": "high"}
    assert (project / "effort").read_text() == "high"
    assert (stop["session_crons"], stop["background_tasks"]) == ([], [])
    assert "prompt_id" not in start
    assert len(stop["prompt_id"]) == 36


def test_a_question_comes_with_the_rules_that_would_settle_it(project, script, run):
    model = script({"call": [{"tool": "Bash", "input": {"command": "make all"}}]}, {"text": "x"})
    run("-p", "go", "--model", model, code=3, hooks={"PermissionRequest": hooked(TELL)})
    asked = heard(project)[0]
    assert "tool_use_id" not in asked
    rule = asked["permission_suggestions"][0]
    assert (rule["type"], rule["behavior"]) == ("addRules", "allow")
    assert rule["rules"][0]["toolName"] == "Bash"


def test_instructions_are_told_of_with_the_reason(project, script, run):
    (project / "CLAUDE.md").write_text("Be kind.\n")
    (project / "sub").mkdir()
    (project / "sub" / "CLAUDE.md").write_text("Be brief.\n")
    (project / "sub" / "a.py").write_text("x = 1\n")
    rules = project / ".claude" / "rules"
    rules.mkdir(parents=True)
    (rules / "python.md").write_text('---\npaths: "**/*.py"\n---\nUse types.\n')
    read = {"call": [{"tool": "Read", "input": {"file_path": "sub/a.py"}}]}
    run("-p", "go", "--model", script(read, {"text": "x"}),
        hooks={"InstructionsLoaded": hooked(TELL)})  # fmt: skip
    told = {event["file_path"].removeprefix(f"{project}/"): event for event in heard(project)}
    reasons = {path: event["load_reason"] for path, event in told.items()}
    assert reasons == {
        "CLAUDE.md": "session_start",
        "sub/CLAUDE.md": "nested_traversal",
        ".claude/rules/python.md": "path_glob_match",
    }
    assert told[".claude/rules/python.md"]["globs"] == ["**/*.py"]
    assert told["sub/CLAUDE.md"]["trigger_file_path"] == str(project / "sub" / "a.py")


@pytest.mark.parametrize(
    ("env", "own", "ended"),
    [({}, {}, False), ({}, {"timeout": 30}, True),
     ({"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000"}, {}, True)],
)  # fmt: skip
def test_hooks_at_the_end_have_little_time_unless_told_otherwise(
    project, script, run, env, own, ended
):
    hooks = {"SessionEnd": hooked("sleep 2.5; touch ended", **own)}
    run("-p", "go", "--model", script({"text": "x"}), hooks=hooks, env=env)
    assert (project / "ended").exists() == ended


def test_an_answer_is_shown_as_a_hook_wants_it_and_kept_as_it_is(project, script, run):
    show = says(hookEventName="MessageDisplay", displayContent="No secrets here.")
    hooks = {"MessageDisplay": hooked(show, TELL)}
    turns = ({"text": "The key is 123."}, {"expect": "/./", "text": "Bye."})
    out = run("-p", "go", "--model", script(*turns), "--output-format", "stream-json", hooks=hooks)
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    said = next(line for line in lines if line["type"] == "assistant")
    assert said["message"]["content"] == [{"type": "text", "text": "No secrets here."}]
    assert lines[-1]["result"] == "No secrets here."
    event = heard(project)[0]
    assert (event["delta"], event["index"], event["final"]) == ("The key is 123.", 0, True)
    assert {"turn_id", "message_id"} <= event.keys()
    assert run("-p", "go", "--model", script(*turns), hooks=hooks).stdout == "No secrets here.\n"
    assert run("-p", "go", "--model", script(*turns)).stdout == "The key is 123.\n"


def skill(project: Path, *lines: str) -> None:
    directory = project / ".claude" / "skills" / "careful"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text("\n".join(("---", *lines, "---", "Be careful.")))


def test_hooks_of_a_skill_count_from_its_use_on_and_once_if_they_say_so(project, script, run):
    for at, line in (("twice", ""), ("once", "\n          once: true")):
        (project / at).mkdir()
        where = project / at
        skill(
            where, "description: Be careful.", "hooks:", "  PreToolUse:", "    - matcher: Bash",
            f"      hooks:\n        - type: command\n          command: echo x >> ran{line}",
        )  # fmt: skip
        subprocess.run([sys.executable, "-m", "handaxe", "trust", str(where)], check=True)
        use = {"call": [{"tool": "Skill", "input": {"skill": "careful"}}]}
        model = script(BASH, use, BASH, BASH, {"text": "x"})
        out = subprocess.run(
            [sys.executable, "-m", "handaxe", "-p", "go", "--model", model, "--allowedTools",
             "Bash,Skill"],
            stdin=subprocess.DEVNULL, capture_output=True, cwd=where, timeout=60, check=False,
        )  # fmt: skip
        assert out.returncode == 0, out
    assert (project / "twice" / "ran").read_text() == "x\nx\n"
    assert (project / "once" / "ran").read_text() == "x\n"


def test_hooks_of_a_skill_count_again_after_a_resume(project, script, run):
    skill(
        project, "description: Be careful.", "hooks:", "  PreToolUse:", "    - matcher: Bash",
        "      hooks:\n        - type: command\n          command: echo x >> ran",
        "        - type: command\n          command: echo y >> ran_once\n          once: true",
    )  # fmt: skip
    run("trust", str(project))
    use = {"call": [{"tool": "Skill", "input": {"skill": "careful"}}]}
    allow = ("--allowedTools", "Bash,Skill")
    end = {"text": "x"}
    words = ("--model", script(use, BASH, end, BASH, end, BASH, end), *allow)
    run("-p", "go", *words)
    for count in (2, 3):
        run("-p", "on", "--continue", *words)
        assert (project / "ran").read_text() == "x\n" * count
    assert (project / "ran_once").read_text() == "y\n"
    words = ("--model", script(BASH, end, BASH, end), *allow)
    run("-p", "anew", *words)
    run("-p", "on", "--continue", *words)
    assert (project / "ran").read_text() == "x\n" * 3


def test_a_skill_that_is_no_longer_trusted_gets_no_hooks_after_a_resume(project, script, run):
    skill(project, "description: x", "hooks:", "  PreToolUse:", "    - hooks:",
          "        - type: command", "          command: echo x >> ran")  # fmt: skip
    run("trust", str(project))
    use = {"call": [{"tool": "Skill", "input": {"skill": "careful"}}]}
    model = script(use, BASH, {"text": "x"}, BASH, {"text": "x"})
    words = ("--model", model, "--allowedTools", "Bash,Skill")
    run("-p", "go", *words)
    run("trust", str(project), "--revoke")
    out = run("-p", "on", "--continue", *words)
    assert (project / "ran").read_text() == "x\n"
    assert "this is not approved" in out.stderr


def test_hooks_of_a_projects_skill_need_a_yes(project, script, run):
    skill(project, "description: x", "hooks:", "  PreToolUse:", "    - hooks:",
          "        - type: command", "          command: touch ran")  # fmt: skip
    use = {"call": [{"tool": "Skill", "input": {"skill": "careful"}}]}
    model = script(use, {"expect": "/is not approved/", "call": BASH["call"]}, {"text": "x"})
    run("-p", "go", "--model", model, "--allowedTools", "Bash,Skill")
    assert not (project / "ran").exists()


def test_once_in_settings_means_nothing(project, script, run):
    hooks = {"PreToolUse": hooked("echo x >> ran", once=True)}
    model = script(BASH, BASH, {"text": "x"})
    run("-p", "go", "--model", model, "--allowedTools", "Bash", hooks=hooks)
    assert (project / "ran").read_text() == "x\nx\n"


def test_hooks_make_the_worktree_of_a_run_and_remove_it(project, script, run, tmp_path):
    place = tmp_path / "copy"
    make = f'printf "\\033[1mhello\\033[0m\\n"; mkdir -p {place}; echo {place}; echo'
    hooks = {"WorktreeCreate": hooked(f"{TELL}; {make}"),
             "WorktreeRemove": hooked(f"rm -r {place}; touch removed")}  # fmt: skip
    model = script({"call": [{"tool": "Bash", "input": {"command": "pwd"}}]},
                   {"expect": f"/{place}/", "text": "There."})  # fmt: skip
    out = run("-p", "go", "--worktree", "spring", "--model", model, "--allowedTools", "Bash",
              hooks=hooks)  # fmt: skip
    assert out.stdout == "There.\n"
    assert heard(project)[0]["name"] == "spring"
    assert (project / "removed").exists()
    assert not place.exists()
    broken = {"WorktreeCreate": hooked("exit 1")}
    out = run("-p", "go", "--worktree", "x", "--model", model, hooks=broken, code=2)
    assert "Cannot make a worktree here: it ended with exit code 1" in out.stderr


def test_a_program_that_wakes_the_model_is_heard_in_the_next_turn(project, script, run):
    hooks = {"PostToolUse": hooked("echo 'The build broke.' >&2; exit 2", asyncRewake=True)}
    wait = {"call": [{"tool": "Bash", "input": {"command": "sleep 1"}}]}
    out = run("-p", "go", "--model", script(BASH, wait, {"text": "x"}), "--allowedTools", "Bash",
              "--output-format", "json", hooks=hooks)  # fmt: skip
    session = json.loads(out.stdout)["session_id"]
    log = (find_data_home() / "sessions" / session / "events.jsonl").read_text()
    assert "The build broke." in log


def test_people_hear_of_hooks_that_fail_and_of_slow_ones_if_they_want_to(project, script, run):
    hooks = {"PreToolUse": hooked("sleep 1.1", "echo oops >&2; exit 1")}
    words = ("-p", "go", "--model", script(BASH, BASH, {"text": "x"}), "--allowedTools", "Bash")
    out = run(*words, hooks=hooks)
    assert out.stdout == "x\n"
    assert out.stderr.count("PreToolUse hook error: ") == 1
    assert "took" not in out.stderr
    out = run(*words, "--verbose", hooks=hooks)
    assert out.stderr.count("The PreToolUse hook 'sleep 1.1' took 1.") == 1
