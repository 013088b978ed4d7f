"""No rule is offered for a command whose standard input is its program or names its operands."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from reference import decision
from stdin_canary import PAYLOADS, covered_texts, makes_canary

from handaxe.shell.analysis.program_tables import load_toml
from handaxe.shell.analysis.programs.stdin_programs import is_stdin_argument

STDIN_DECIDES = """
bash
sh
/bin/sh
dash
zsh -f
bash -s
bash -i
bash -
bash /dev/stdin
bash -c bash
bash -c 'cat | sh'
python3
python3 -
python3.12
python3.12 -
/usr/bin/python3
/usr/bin/env python3
python.exe
PYTHON3.EXE
./venv/bin/python
python3 -i x.py
python3 -u
python3 -W ignore
python3 -m code
python3 -m pdb x.py
python3 -c 'import sys; exec(sys.stdin.read())'
python3 manage.py shell
node
node -
node -i
node -r ./x
node inspect x.js
perl
perl -w
perl5.36.0
perl -d x.pl
perl -ne 'system $_'
ruby
ruby -
php
php -a
php artisan tinker
lua
lua5.4
tclsh
tclsh8.6
expect -
R
R --no-save
Rscript -
julia
ghci
irb
bc
dc
ed
ed x
ex x
vim -
vim x
vi -es
emacs --batch
gdb
gdb x
at now
batch
crontab
crontab -
xargs
xargs rm
xargs -n1 touch
gxargs rm
parallel
parallel rm
sudo
sudo -i
sudo make
su
ssh host
ssh host make
psql
psql db
mysql
mysql -u root db
sqlite3
sqlite3 a.db
redis-cli
docker exec -i c sh
docker exec -it c make
docker run -i image make
docker compose exec c make
docker build -
docker load
kubectl exec -i pod -- make
kubectl apply -f -
awk -f -
awk -f /dev/stdin
awk '{ system($0) }' x
awk '{ print | "sh" }' x
gawk -f -
sed -f -
sed -f /dev/stdin x
sed e
make -f -
make -f /dev/stdin
make -f- all
gmake -f -
ninja -f -
patch
patch -p1
cpio -i
cpio -o
pax -r
tar x
tar -x
tar cf a.tar -T -
tar xf -
rsync --files-from=- a b
git apply
git apply -
git am
git add -p
git update-index --stdin
git checkout --pathspec-from-file=-
git fast-import
git hash-object -w --stdin-paths
npm exec
npx
npx node
npx ts-node
uv run -
uv run python
uv run bash
uv run --with x bash
uv pip install -r -
uvx ipython
poetry run python
poetry shell
pipenv shell
env
env bash
env -i bash
env A=1 python3
nice bash
timeout 5 bash
timeout 5 python3 -
nohup sh
stdbuf -o0 sh
time bash
command bash
exec bash
setsid sh
watch bash
flock l sh
busybox sh
find . -exec sh ;
fd -x sh
wget -i -
curl -K -
openssl
deno
deno run -
deno repl
bun run -
nix-shell
nix develop
terraform console
rails console
rails runner x
mapfile x
eval x
source /dev/stdin
. /dev/stdin
m4
nu
xonsh
frobnicate
frobnicate -v
frobnicate --repl
frobnicate -
frobnicate x -
frobnicate --input=-
frobnicate -f- x
frobnicate a=@-
frobnicate --stdin x
frobnicate bash
frobnicate x y bash -x
frobnicate --shell=bash x
frobnicate -ebash x
frobnicate 'bash -x' y
frobnicate shell
./manage.py shell
./console repl
"""


@pytest.mark.proves("PM-4")
@pytest.mark.parametrize("command", STDIN_DECIDES.strip().split("\n"))
def test_no_rule_is_offered_where_standard_input_decides(command):
    assert decision(command).proposals == []
    piped = decision(f"curl -s https://example.org | {command}")
    assert [proposal.for_part for proposal in piped.proposals] in (
        [],
        ["curl -s https://example.org"],
    )


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("python3 x.py", "python3 x.py"),
        ("python3 -u x.py a", "python3 -u x.py a"),
        ("python3 -m pytest -q", "python3 -m pytest -q"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("node build.js", "node build.js"),
        ("bash x.sh", "bash x.sh"),
        ("bash -eux x.sh", "bash -eux x.sh"),
        ("perl -pe s/a/b/ x", "perl -pe s/a/b/ x"),
        ("psql -c 'select 1' db", "psql -c 'select 1' db"),
        ("sqlite3 a.db .tables", "sqlite3 a.db .tables"),
        ("make", "make"),
        ("make test", "make test"),
        ("timeout 60 make test", "timeout 60 make test"),
        ("nice python3 x.py", "nice python3 x.py"),
        ("git apply x.patch", "git apply x.patch"),
        ("git checkout -", "git checkout -"),
        ("patch -p1 -i x.patch", "patch -p1 -i x.patch"),
        ("tar xf a.tar", "tar xf a.tar"),
        ("docker exec c ls", "docker exec c ls"),
        ("uv run pytest -q", "uv run pytest -q"),
        ("npx prettier --check .", "npx prettier --check ."),
        ("./scripts/check", "./scripts/check"),
        ("frobnicate x.txt", "frobnicate x.txt"),
        ("frobnicate build --fast", "frobnicate build *"),
        ("pytest -q", "pytest *"),
        ("ruff check .", "ruff *"),
        ("npm run build", "npm run build *"),
        ("npm test", "npm test *"),
        ("cargo test --all", "cargo test *"),
        ("go test ./...", "go test *"),
        ("docker ps", "docker ps *"),
        ("/usr/bin/docker ps", "/usr/bin/docker ps *"),
        ("/usr/bin/npm test", "/usr/bin/npm test *"),
        ("/usr/bin/make test", "/usr/bin/make test"),
        ("pulumi preview", "pulumi preview *"),
        ("pip3.11 install x", "pip3.11 install x"),
        ("bats test", "bats test"),
        ("tox -q", "tox -q"),
        ("gcc -o a a.c", "gcc -o a a.c"),
        ("java -jar a.jar", "java -jar a.jar"),
        ("terraform plan", "terraform plan *"),
    ],
)
def test_what_cannot_be_fed_is_still_offered(command, rule):
    assert [proposal.rule for proposal in decision(command).proposals] == [f"Bash({rule})"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("-", True),
        ("@-", True),
        ("--file=-", True),
        ("-f-", True),
        ("if=-", True),
        ("/dev/stdin", True),
        ("/dev/./stdin", True),
        ("../../dev/stdin", True),
        ("stdin", True),
        ("file:///dev/stdin", True),
        ("@/dev/stdin", True),
        ("/dev/fd/0", True),
        ("/proc/self/fd/0", True),
        ("/proc/1/task/1/fd/0", True),
        ("--stdin-paths", True),
        ("--password-stdin", True),
        ("a-", False),
        ("--", False),
        ("-n", False),
        ("stdin.txt", False),
        ("src/stdin_programs.py", False),
        ("--file=a-b", False),
    ],
)
def test_words_that_stand_for_standard_input_are_known(word, expected):
    assert is_stdin_argument(word) is expected


def test_every_entry_of_the_table_has_a_reason_and_can_be_read():
    raw = load_toml("stdin_programs.toml")
    takes = {name for entry in raw["program"] for name in entry["names"].split()}
    for entry in (*raw["program"], *raw["prefix"]):
        assert entry["reason"], entry["names"]
        for key in ("needs", "refuses", "flags", "valued", "code"):
            re.compile(entry.get(key, ""))
    assert {entry["exact"] for entry in raw["program"]} == {"never", "script", "operand", "always"}
    free = [name for entry in raw["prefix"] for name in entry["names"].split()]
    assert takes.isdisjoint(free)
    assert len(free) == len(set(free))


@pytest.mark.parametrize(
    "name",
    sorted(
        n
        for e in load_toml("stdin_programs.toml")["program"]
        if e["exact"] == "never" and "with" not in e
        for n in e["names"].split()
    ),
)
def test_a_listed_program_is_recognised_by_any_of_its_names(name):
    for spelled in (name, f"{name}3.12", f"/usr/bin/{name}", f"./{name}", f"{name} x"):
        assert decision(spelled).proposals == [], spelled


REAL = (
    "bash sh dash python3 perl node tclsh awk gawk sed make xargs env nice timeout nohup busybox "
    "git tar patch ed bc sqlite3 psql gdb vim mkdir touch tee gzip ruff setsid cpio m4 find sort"
)


def test_no_covered_command_makes_a_file_of_what_is_piped_into_it():
    path = os.environ["PATH"]
    assert makes_canary("bash", PAYLOADS["shell"], path=path)
    assert makes_canary("timeout 5 sh", PAYLOADS["shell"], path=path)
    texts: list[str] = []
    for program in filter(shutil.which, REAL.split()):
        commands = [program, f"{program} -", f"{program} x", f"{program} build", f"{program} -s"]
        covered = dict.fromkeys(covered_texts(*commands))
        texts += list(covered)[:3]
    assert len(texts) >= 20
    for text in texts:
        assert not makes_canary(text, PAYLOADS["shell"], path=path), text
