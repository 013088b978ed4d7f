"""Telling a command that is one program from one that could move the shell."""

import pytest

from handaxe.shell.exec.bash_binary import is_plain_program

PLAIN = [
    "ls", "ls -la src", " git status ", "/usr/bin/env X=1 true", "grep -rn 'a b; cd /' .",
    'git commit -m "a message (no more)"', "ls *.py ~/x", "./script --x=1,2", "python3 -c 'cd()'",
    "g++ -o x x.cc", "pytest -q tests/a.py::test_b",
]  # fmt: skip
NOT_PLAIN = [
    "", " ", "cd /usr", "cd", ". x", "source x", "eval ls", "exec ls", "command cd /", "builtin cd /",
    "pushd /", "ls; cd /usr", "ls && cd /usr", "ls & cd /usr", "ls | cat", "ls\ncd /usr",
    "ls $(cd /)", "ls `cd /`", "echo x", "A=1 ls", "X=1", "! ls", "time ls", "{ cd /usr; }", "(ls)",
    "'cd' /usr", "\\cd /usr", '"cd" /usr', "c''d /usr", 'ls "$(x)"', 'ls "a\\"b"', "ls 'a\nb'",
    "ls <x", "ls >x", "ls 2>&1", "ls #x", "ls {a,b}", "[ -f x ]", "[[ x ]]", "$x", "ls $x", "if x",
    "coproc ls", "set -x", "trap x EXIT", "ls 'unterminated", "ls\tx", "ls\r", "ünï",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_one_program_with_its_arguments_is_plain(text):
    assert is_plain_program(text)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_everything_else_is_not(text):
    assert not is_plain_program(text)


async def test_every_word_that_bash_does_itself_is_known(bench):
    said = await bench.said("compgen -b; compgen -k")
    for word in said.split():
        assert not is_plain_program(word), word


@pytest.mark.proves("SH-1")
async def test_a_plain_program_takes_the_place_of_the_shell_and_inherits_nothing(bench):
    running = await bench.run("ls /proc/self/fd")
    assert running.output(100).head.split() == ["0", "1", "2", "3"]
    assert running.end.cwd == str(bench.directory)
    link = bench.directory / "link"
    link.symlink_to("/usr")
    assert (await bench.run("env pwd", cwd=str(link))).output(100).head == "/usr\n"
    assert (await bench.run("env true", cwd=str(link))).end.cwd == "/usr"
    assert (await bench.run("nosuchprogram --x")).end.exit_code == 127
