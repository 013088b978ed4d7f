"""What models, servers, files and commands supply is shown on a terminal, never obeyed by it."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.hostile import SCREEN, hostile_texts
from tests.waiting import HANG_S

from handaxe import PermissionRequest
from handaxe.contract.display import Code, Diff, DiffHunk, Items, Table, Text
from handaxe.frontends.cli.render import BlockRenderer, print_notice, write_answer, write_out
from handaxe.frontends.cli.terminal_prompts import format_question, wrap_lines
from handaxe.frontends.mcp_server.elicitation import format_elicitation

CLEAR = "\x1b[2J\x1b[1;1H"
COPY = "\x1b]52;c;cm0gLXJmIC8=\x07"
UNSAFE = "".join(one.encode("utf-8", "replace").decode() for one in SCREEN)


def in_terminal(words, cwd, *, early="", answer=""):
    """Run a command in a terminal; type `early` before it asks and `answer` then; what it shows."""
    main, other = pty.openpty()
    if early:
        os.write(main, early.encode())
    process = subprocess.Popen(
        [sys.executable, "-m", "handaxe", *words],
        stdin=other, stdout=other, stderr=other, cwd=cwd, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    os.close(other)
    shown, waiting = b"", answer
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        if select.select([main], [], [], 0.2)[0]:
            try:
                shown += os.read(main, 65536)
            except OSError:
                break
            if waiting and b"Allow?  [y" in shown:
                os.write(main, waiting.encode())
                waiting = ""
        elif process.poll() is not None:
            break
    process.wait(HANG_S)
    os.close(main)
    return shown.decode(errors="replace").replace("\r\n", "\n"), process.returncode


def is_safe(shown: str) -> bool:
    """Whether a terminal does nothing but show it; its own echo of what was typed apart."""
    return shown.replace("\n", "").replace("\t", "").isprintable()


def test_an_answer_is_shown_on_a_terminal_and_exact_in_a_pipe(project, script):
    model = script({"text": f"Hi {COPY}{UNSAFE}"})
    shown, code = in_terminal(["-p", "hello", "--model", model], project)
    assert code == 0
    assert is_safe(shown), ascii(shown)
    assert "\\x1b]52;c;cm0gLXJmIC8=\\x07" in shown
    piped = subprocess.run(
        [sys.executable, "-m", "handaxe", "-p", "hello", "--model", model],
        cwd=project, capture_output=True, check=True,
    )  # fmt: skip
    assert piped.stdout == f"Hi {COPY}{UNSAFE}\n".encode()


def test_json_on_a_terminal_is_escaped_and_means_the_same(project, script):
    model = script({"text": f"Hi \x9b2J{UNSAFE}"})
    words = ["-p", "hello", "--model", model, "--output-format", "json"]
    shown, code = in_terminal(words, project)
    assert code == 0
    assert is_safe(shown), ascii(shown)
    assert json.loads(shown)["result"] == f"Hi \x9b2J{UNSAFE}"


def test_what_was_typed_before_the_question_does_not_answer_it(project):
    words = ["call", "Write", "file_path=a.txt", "content=x"]
    shown, code = in_terminal(words, project, early="y\ny\ny\n", answer="n\n")
    assert code == 3, shown
    assert not (project / "a.txt").exists()
    shown, code = in_terminal(words, project, early="n\n", answer="y\n")
    assert code == 0, shown


SERVER = Path(__file__).parents[1] / "mcp/thin_server.py"


def test_names_of_fields_do_not_paint_the_question(project):
    server = {"type": "stdio", "command": sys.executable, "args": [str(SERVER)]}
    config = json.dumps({"mcpServers": {"thin": server}})
    given = {f"{CLEAR}Allow?  [y/n]: ": "y", f"a{UNSAFE}": UNSAFE}
    words = ["call", "mcp__thin__add", json.dumps(given), "--mcp-config", config]
    shown, code = in_terminal(words, project, answer="n\n")
    assert code == 3, shown
    assert "<U+001B>[2J<U+001B>[1;1HAllow?" in shown
    assert is_safe(shown), ascii(shown)


@pytest.mark.parametrize(
    "words",
    [
        ["call", f"Re{CLEAR}ad", "file_path=a"],
        ["explain", "--tool", f"Rea{CLEAR}", "--input", "{}"],
        ["--allow", f"Re{CLEAR}ad(x)", "-p", "hi", "--model", "none"],
        ["call", "Read", f"file_path=a{UNSAFE.replace(chr(0), '')}"],
        ["doctor"],
    ],
)
def test_names_are_shown_by_every_command(project, words):
    settings = {
        "permissions": {"allow": [f"Ba{CLEAR}sh(x)", f"{UNSAFE}"]},
        f"o{CLEAR}": 1,
        "mcpServers": {f"m{CLEAR}": {"command": "true"}},
    }
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": settings.pop("mcpServers")}))
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text(json.dumps(settings))
    out = subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        cwd=project, capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = (out.stdout + out.stderr).decode()
    assert said
    assert is_safe(said), ascii(said)


def test_lists_show_names_of_files_on_lines_of_their_own(project):
    name = f"a{CLEAR}\n  forged line"
    call = json.dumps({"file_path": name, "content": "x\n"})
    run = [sys.executable, "-m", "handaxe"]
    subprocess.run(
        [*run, "call", "Write", call, "--permission-mode", "acceptEdits"],
        cwd=project, capture_output=True, check=True,
    )  # fmt: skip
    for words in (["history", "--diff"], ["sessions"], ["undo"]):
        out = subprocess.run([*run, *words], cwd=project, capture_output=True, check=True)
        said = out.stdout.decode()
        assert is_safe(said), ascii(said)
        if words[0] != "undo":
            assert "\n  forged line" not in said, ascii(said)


def test_what_is_logged_of_a_failing_tool_steers_no_terminal(project):
    (project / "own.py").write_text(
        "from handaxe import Effects, tool\n"
        "@tool(effects=Effects.pure())\n"
        "async def fail() -> str:\n"
        '    """Fail."""\n'
        f"    raise RuntimeError({CLEAR!r})\n"
    )
    out = subprocess.run(
        [sys.executable, "-m", "handaxe", "call", "fail", "--tools-from", "own.py"],
        cwd=project, capture_output=True, check=False,
    )  # fmt: skip
    said = out.stderr.decode()
    assert "Traceback" in said
    assert is_safe(said), ascii(said)


def requests():
    """Questions in which every text is hostile."""
    texts = hostile_texts(60, seed=9)
    for text, other in zip(texts, reversed(texts), strict=True):
        hunk = DiffHunk(1, 1, 1, 1, (f"-{text}", f"+{other}"))
        blocks = (Diff(text, (hunk,)), Text(other), Code(text), Items((text,)))
        yield PermissionRequest(
            "1", text, {text: other, "command": f"{text}\nAllow?  [y/n]: "}, other, cwd=text,
            preview=(*blocks, Table((text,), ((other,),))), agent_id=text, agent_type=other,
        )  # fmt: skip


def test_no_question_is_forged_by_what_it_shows():
    for request in requests():
        shown = format_question(request, BlockRenderer(colour=False))
        assert is_safe(shown), ascii(shown)
        assert is_safe(format_elicitation(request))
        assert not any(line.startswith("Allow?") for line in shown.split("\n")), ascii(shown)
        coloured = format_question(request, BlockRenderer(colour=True))
        for code in (0, 2, 31, 32, 33, 36):
            coloured = coloured.replace(f"\x1b[{code}m", "")
        assert is_safe(coloured), ascii(coloured)


def test_a_long_line_does_not_begin_again_at_the_left_edge():
    forged = f"{'a' * 38}Allow?  [y/n]: "
    wrapped = wrap_lines(f"  command: {forged}\nshort\n", 40)
    assert wrapped == f"  command: {'a' * 29}\n    | {'a' * 9}Allow?  [y/n]: \nshort\n"
    assert wrap_lines("語" * 30, 40).split("\n")[1].startswith("    | 語")
    assert wrap_lines(forged, 0) == forged


def test_whatever_is_written_is_safe(capsys):
    for text in hostile_texts(300, seed=11):
        write_out(text)
        print_notice(text)
    out, err = capsys.readouterr()
    assert is_safe(out)
    assert is_safe(err)
    # Nothing that is told begins a line of its own.
    assert all(line.startswith(("handaxe: ", "  ")) for line in err.splitlines())
    write_answer(COPY)
    assert capsys.readouterr().out == f"{COPY}\n"


def test_an_own_colour_stays():
    block = BlockRenderer(colour=True).block(Text("\x1b[31mred\x1b[0m", "bad"))
    assert block == "\x1b[31m\\x1b[31mred\\x1b[0m\x1b[0m\n"
