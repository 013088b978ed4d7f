"""What real bash finds for random globs is what the rules were held against."""

import random
import subprocess

from handaxe.permission.decide import JudgedPath
from handaxe.permission.policy import make_policy
from handaxe.permission.shell_commands import decide_command, decide_path
from handaxe.rules.grammar import parse_rule
from handaxe.shell.analysis import analyze

FILES = [
    ".env",
    ".env.local",
    "a.txt",
    "ab.pem",
    "a.pem.txt",
    "key.pem",
    "secret/x",
    "secret/.k",
    "secret/sub/y",
    "src/a.py",
    "src/.env",
    "src/key.pem",
    "src/secret/x",
    "src/.hidden/a.pem",
    "secrets/x",
    "sub/secret",
    "se/cret/x",
    ".secret/x",
    "x/y/z/.env",
]
RULES = [
    ("Read(secret/**)",),
    ("Read(/secret/**)",),
    ("Read(.env)", "Read(*.pem)"),
    ("Read(src/**/x)",),
    ("Read(s?cret)",),
    ("Read([a-k]*.pem)", "Read(.*)"),
    ("Read(**/secret/*)",),
]
PIECES = ["*", "?", "s", "se", "cret", "secret", ".", "e", "env", ".pem", "x", "a", "[a-z]", "src",
          "[!b]", "[s]", "[^.]", "key", "sub", "/", "/", "*/", "[[:alpha:]]", ".e*", "?ecret"]  # fmt: skip


def _globs(count):
    rng = random.Random(11)
    made = ["".join(rng.choices(PIECES, k=rng.randint(1, 6))) for _ in range(count)]
    return [glob for glob in dict.fromkeys(made) if not glob.startswith("/")]


def test_no_allowed_command_names_a_closed_file(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    globs = _globs(700)
    script = "shopt -s nullglob\n" + "".join(f"printf '%s\\t' {g}; echo\n" for g in globs)
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = [line.split("\t")[:-1] for line in ran.stdout.split("\n")]
    named = denied = 0
    for rules in RULES:
        parsed = [parse_rule(text, "deny") for text in rules] + [parse_rule("Bash", "allow")]
        policy = make_policy(parsed, roots=[str(tmp_path)], home="/home/dev")
        for glob, names in zip(globs, found, strict=False):
            closed = [name for name in names if _is_closed(f"{tmp_path}/{name}", policy)]
            named += len(names)
            denied += bool(closed)
            verdict = decide_command(
                analyze(f"cat {glob}", policy.cwd, policy.home), policy
            ).verdict
            assert not closed or verdict != "allow", (rules, glob, closed)
    assert named > 300
    assert denied > 100


def _is_closed(path, policy):
    path = path.rstrip("/").replace("//", "/").replace("/./", "/")
    judged = JudgedPath(path=path, real=path, access="read")
    return decide_path(judged, policy).verdict == "deny"
