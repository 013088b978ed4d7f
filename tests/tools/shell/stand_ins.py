"""Small stand-ins for direnv and mise that speak their documented protocol, for machines without.

    python stand_ins.py direnv export json | export bash | allow
    python stand_ins.py mise env --json | hook-env -s bash | config ls | trust

What is faithful: allowing is by file and content (direnv) or by file (mise), kept in the places and
said in the words of the real ones; answers are a difference to the environment that comes in, with
what an earlier directory had set taken back. What is not: no standard library of `.envrc`
beyond `PATH_add` and `watch_file`, no tools, no templates.
"""

import base64
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import msgspec

ENV = dict(os.environ)
STDLIB = """
PATH_add() { export PATH="$(cd "$1" 2>/dev/null && pwd || echo "$PWD/$1"):$PATH"; }
watch_file() { WATCHED="${WATCHED:+$WATCHED:}$PWD/$1"; }
cd "$(dirname "$1")" && . "$1" >&2
export WATCHED
exec env -0
"""
NOT_ITS_OWN = {"PWD", "OLDPWD", "SHLVL", "_", "WATCHED"}


def above(names):
    here = Path.cwd()
    for place in (here, *here.parents):
        for name in names:
            if (place / name).is_file():
                return place / name
    return None


def packed(value, dump):
    return base64.urlsafe_b64encode(zlib.compress(dump(value))).decode()


def watch(path):
    exists = os.path.exists(path)
    return {"Path": path, "Modtime": int(os.stat(path).st_mtime) if exists else 0, "Exists": exists}


def lines_for_bash(variables):
    return "".join(
        f"unset {name}\n" if value is None else f"export {name}={shlex.quote(value)}\n"
        for name, value in variables.items()
    )


def data_home(variable, usual):
    return Path(ENV.get(variable) or f"{ENV['HOME']}/{usual}")


def direnv(*words):
    file = above([".envrc"])
    allowed = None
    if file is not None:
        digest = hashlib.sha256(f"{file}\n".encode() + file.read_bytes()).hexdigest()
        allowed = data_home("XDG_DATA_HOME", ".local/share") / "direnv" / "allow" / digest
    if words == ("allow",):
        assert allowed is not None
        allowed.parent.mkdir(parents=True, exist_ok=True)
        allowed.write_text(f"{file}\n")
        return 0
    plain = dict(ENV)
    if diff := plain.pop("DIRENV_DIFF", None):
        before = json.loads(zlib.decompress(base64.urlsafe_b64decode(plain["DIRENV_WATCHES"])))
        is_same = before == [watch(one["Path"]) for one in before]
        if is_same and plain.get("DIRENV_FILE") == str(file):
            return 0
        undo = json.loads(zlib.decompress(base64.urlsafe_b64decode(diff)))
        for name in undo["n"]:
            plain.pop(name, None)
        plain.update(undo["p"])
    new, code = dict(plain), 0
    if file is not None and allowed is not None:
        watched = [str(file), str(allowed)]
        if not allowed.exists():
            sys.stderr.write(f"direnv: error {file} is blocked. Run `direnv allow` to approve it\n")
            code = 1
        else:
            ran = subprocess.run(
                ["bash", "-c", STDLIB, "bash", str(file)],
                env=plain,
                capture_output=True,
                check=False,
            )
            pairs = (line.partition("=") for line in ran.stdout.decode().split("\0") if line)
            found = {name: value for name, _, value in pairs}
            watched += filter(None, found.get("WATCHED", "").split(":"))
            new = {name: value for name, value in found.items() if name not in NOT_ITS_OWN}
            new |= {name: plain[name] for name in NOT_ITS_OWN & plain.keys()}
        watches = [watch(path) for path in watched]
        new["DIRENV_FILE"] = str(file)
        new["DIRENV_DIR"] = f"-{file.parent}"
        new["DIRENV_WATCHES"] = packed(watches, lambda value: json.dumps(value).encode())
        names = {name for name in new.keys() | plain.keys() if new.get(name) != plain.get(name)}
        difference = {
            "p": {name: plain[name] for name in names if name in plain},
            "n": {name: new[name] for name in names if name in new},
        }
        new["DIRENV_DIFF"] = packed(difference, lambda value: json.dumps(value).encode())
    changed = {name: new.get(name) for name in new.keys() | ENV.keys()}
    changed = {name: value for name, value in changed.items() if ENV.get(name) != value}
    if changed:
        sys.stdout.write({"json": json.dumps, "bash": lines_for_bash}[words[1]](changed))
    return code


def mise(*words):
    file = above(["mise.toml"])
    trusted = None
    if file is not None:
        digest = hashlib.sha256(str(file).encode()).hexdigest()
        trusted = data_home("XDG_STATE_HOME", ".local/state") / "mise" / "trusted-configs" / digest
    if words == ("trust",):
        assert trusted is not None
        trusted.parent.mkdir(parents=True, exist_ok=True)
        trusted.touch()
        return 0
    if trusted is not None and not trusted.exists() and "CI" not in ENV and ENV["MISE_YES"] != "1":
        sys.stderr.write(f"mise ERROR Config files in {file} are not trusted.\n")
        return 1
    if words == ("config", "ls"):
        return 0
    path, before = ENV["PATH"].split(":"), {"new": {}, "path": []}
    if diff := ENV.get("__MISE_DIFF"):
        raw = zlib.decompress(base64.b64decode(diff + "=" * (-len(diff) % 4)))
        before = msgspec.msgpack.decode(raw)
        path = [place for place in path if place not in before["path"]]
    given, own = {}, []
    if file is not None:
        given = tomllib.loads(file.read_text())["env"]
        own = [str(file.parent / place) for place in given.pop("_", {}).get("path", [])]
    now = {**given, "PATH": ":".join([*own, *path])}
    if words == ("env", "--json"):
        sys.stdout.write(json.dumps(now))
        return 0
    assert words == ("hook-env", "-s", "bash")
    raw = zlib.compress(msgspec.msgpack.encode({"old": {}, "new": given, "path": own}))
    noted = {"__MISE_DIFF": base64.b64encode(raw).decode().rstrip("=")}
    sys.stdout.write(lines_for_bash({**dict.fromkeys(before["new"]), **now, **noted}))
    return 0


if __name__ == "__main__":
    sys.exit({"direnv": direnv, "mise": mise}[sys.argv[1]](*sys.argv[2:]))
