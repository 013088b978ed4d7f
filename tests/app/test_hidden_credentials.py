"""The credentials and histories of a user stay hidden from confined commands, tried for real."""

from pathlib import Path

import pytest

from handaxe import Session
from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.sandbox.backend import find_backend
from handaxe.shell.sandbox.readable_paths import find_credentials, load_credentials

CANARY = "CANARY"
USUAL = """
.pgpass .my.cnf .config/rclone/rclone.conf .m2/settings.xml .gradle/gradle.properties
.composer/auth.json .config/composer/auth.json .cache/huggingface/token
.config/containers/auth.json .config/sops/age/keys.txt .s3cfg .boto .bash_history .zsh_history
.python_history .node_repl_history .psql_history .mysql_history .local/share/fish/fish_history
.ssh/id_ed25519 .aws/credentials .netrc .npmrc .pypirc .docker/config.json .kube/config
.git-credentials .config/gh/hosts.yml .cargo/credentials.toml .vault-token .viminfo .lesshst
"""
"""What people found readable, whatever the list says."""


def test_the_list_gives_a_reason_for_each():
    listed = load_credentials()
    assert len(listed.home) >= 60
    assert len({place.path for place in listed.home}) == len(listed.home)
    assert all(one.reason for one in (*listed.home, *listed.pattern, *listed.variable))
    assert not any(place.path.startswith(("/", "~")) for place in listed.home)


def test_variables_lead_to_more_of_them(tmp_path):
    home = str(tmp_path)
    (tmp_path / ".other_history").touch()
    found = find_credentials(
        home,
        {
            "XDG_CONFIG_HOME": "/x",
            "KUBECONFIG": "/k/one:/k/two",
            "HISTFILE": "/dev/null",
            "CURL_HOME": home,
            "PGPASSFILE": "/project/pass",
        },
        ("/project",),
    )
    assert {"/x/gh", "/k/one", "/k/two", f"{home}/.other_history"} <= set(found)
    assert not {"/dev/null", home, "/project/pass"} & set(found)


@pytest.fixture(scope="module")
def home():
    """A home with all of them, once: many directories take a while."""
    # Not below /tmp, which commands do not see: that would prove nothing.
    with TempDirectory("sandbox", "/var/tmp") as scratch:
        home = Path(scratch.path)
        files = {home / name for name in USUAL.split()}
        for place in load_credentials().home[::3]:
            inside = [file for file in files if file.is_relative_to(home / place.path)]
            files.add(home / place.path / "in" if inside else home / place.path)
        files = {file for file in files if not any(file in one.parents for one in files)}
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{CANARY} {file}\n")
        (home / "note").write_text("READABLE\n")
        yield home


@pytest.mark.proves("SH-7")
@pytest.mark.skipif(find_backend().name == "none", reason="nothing can be confined here")
@pytest.mark.parametrize("means", [{}, {"bwrapPath": "/bin/false"}], ids=["strong", "weak"])
async def test_no_command_reads_a_credential_or_history(project, home, monkeypatch, means):
    monkeypatch.setenv("HOME", str(home))
    settings = {"enabled": True, "autoAllowBashIfSandboxed": False, **means}
    async with Session(project, settings={"sandbox": settings}, allow=["Bash"]) as session:
        result = await session.call(
            "Bash", command=f"grep -rs . {home} | grep -E 'CANARY|READABLE'"
        )
    assert "READABLE" in result.text
    assert CANARY not in result.text
