"""What confined commands may read without a question: verdicts, and what explain says of them."""

import msgspec
import pytest

from handaxe import Session
from handaxe.app.explain import explain_in_session
from handaxe.app.services import session_shell
from handaxe.app.session import get_parts
from handaxe.contract.faults.shell import CannotStart
from handaxe.contract.ports.shell import ConfinementLevel, Confiner, Shell
from handaxe.contract.readable_files import ReadableFiles
from handaxe.shell.exec.shfmt import find_cross_check


class RefusingShell(Shell):
    """Starts nothing, so that any command may be sent to it."""

    async def start(self, command):
        raise CannotStart(f"{command.command!r} is only judged here")


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch):
    monkeypatch.setattr(session_shell, "open_local_shell", lambda *_: RefusingShell())


class Sandbox(Confiner):
    """Says what confined commands can read; here only the word counts."""

    def __init__(self, files):
        self._files = files

    @property
    def level(self):
        return ConfinementLevel(means="bubblewrap", network="off", files="roots")

    def is_confining(self, command, *, unconfined=False):
        return not unconfined

    def get_readable_files(self):
        return self._files

    def confine(self, argv, **_):
        raise NotImplementedError


async def verdict(session, command):
    return (await session.call("Bash", command=command)).decision


HIDING = ReadableFiles(shown=("/usr", "/etc", "/proc"), hidden=("/", "/etc/shadow"))
VERDICTS = [
    # command, without a sandbox, with one, with one that leaves files out
    ("cat a", "allow", "allow", "allow"),
    ("cat < a", "allow", "allow", "allow"),
    ("ls -la && wc -l a", "allow", "allow", "allow"),
    ("cat /etc/hosts", "ask", "ask", "ask"),
    ("cat < /etc/hosts", "ask", "ask", "ask"),
    ("make && cat /etc/hosts", "ask", "ask", "ask"),
    ("sh -c 'cat /etc/hosts'", "ask", "ask", "ask"),
    ("cd /etc && cat hosts", "ask", "ask", "ask"),
    ("cp /etc/hosts b", "ask", "ask", "ask"),
    ("cat /proc/self/environ", "ask", "ask", "ask"),
    ("cat to_hosts", "ask", "ask", "ask"),
    ("cat < to_hosts", "ask", "ask", "ask"),
    ("cp to_hosts b", "ask", "ask", "ask"),
    ("cat .env", "ask", "ask", "ask"),
    ("cat /etc/shadow", "ask", "allow", "ask"),
    ("cat ~/notes", "ask", "allow", "ask"),
    ("cat ../other/x", "ask", "allow", "ask"),
    ("cat < ../other/x", "ask", "allow", "ask"),
    ("cat to_other", "ask", "allow", "ask"),
    ("make", "ask", "allow", "ask"),
    ("python3 x.py", "ask", "allow", "ask"),
    ("python3 -c 'open(\"/etc/hosts\")'", "ask", "allow", "ask"),
    ('cat "$f"', "ask", "allow", "ask"),
    ("xargs cat < a", "ask", "allow", "ask"),
    ("echo x > b", "ask", "allow", "ask"),
    ("cp a b", "ask", "allow", "ask"),
    ("echo x > /etc/hosts", "ask", "ask", "ask"),
    ("echo x > .git/config", "ask", "ask", "ask"),
    ("cat secret/key", "deny", "deny", "deny"),
]


@pytest.mark.proves("PM-3", "SH-7")
@pytest.mark.parametrize(("command", "without", "inside", "networked"), VERDICTS)
async def test_a_sandbox_answers_only_for_what_it_keeps_a_command_from(
    command, without, inside, networked, project, tmp_path
):
    for name in ("a", ".env"):
        (project / name).write_text("x\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x").write_text("x\n")
    (project / "to_hosts").symlink_to("/etc/hosts")
    (project / "to_other").symlink_to(tmp_path / "other/x")
    # A deny rule makes every file that is not known a question.
    denied = ["Read(/secret/**)"] if "secret/" in command else []
    files = msgspec.structs.replace(HIDING, shown=(*HIDING.shown, str(project)))
    for wanted, confiner in ((without, None), (inside, Sandbox(files)), (networked, Sandbox(None))):
        settings = {"sandbox": {"enabled": confiner is not None}}
        async with Session(project, settings=settings, deny=denied) as session:
            if confiner is not None:
                get_parts(session).pipeline_context.ports[Confiner] = confiner
            found = (await verdict(session, command)).verdict
            told = await explain_in_session(
                "Bash",
                {"command": command},
                get_parts(session).pipeline_context,
                find_cross_check(),
            )
        assert (found, told["verdict"]) == (wanted, wanted), (command, confiner)


@pytest.mark.parametrize(
    ("rules", "command"),
    [
        (["Bash(cat:*)"], "cat /etc/hosts"),
        (["Bash"], "cat /etc/hosts; make"),
        (["Read(//etc/**)"], "cat /etc/hosts"),
        (["Read(//etc/**)"], "cat < /etc/hosts && make"),
    ],
)
async def test_what_rules_allow_a_sandbox_does_not_ask_about(rules, command, project):
    settings = {"sandbox": {"enabled": True}}
    async with Session(project, settings=settings, allow=rules) as session:
        get_parts(session).pipeline_context.ports[Confiner] = Sandbox(HIDING)
        assert (await verdict(session, command)).verdict == "allow"


@pytest.mark.parametrize(
    ("path", "is_readable"),
    [
        ("/usr/bin/env", True),
        ("/etc/shadow", False),
        ("/etc/shadow-", True),
        ("/etcetera", False),
        ("/", False),
        ("/home/me/x", False),
    ],
)
def test_the_more_specific_place_says_what_can_be_read(path, is_readable):
    assert HIDING.can_read(path) is is_readable
    assert ReadableFiles().can_read(path)
