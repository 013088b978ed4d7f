"""Modules that the command line loads when they are first used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe.frontends.cli.lazy_imports import SELDOM_USED

WATCH_A_READ = """
import sys
sys.argv[1:] = ["call", "Read", "file_path=a.txt"]
from handaxe.__main__ import main
assert main() == 0
from handaxe.frontends.cli.lazy_imports import SELDOM_USED, _LazyModule
imported = [name for name in sorted(SELDOM_USED) if name in sys.modules]
print("imported:", *imported)
print("used:", *[name for name in imported if type(sys.modules[name]) is not _LazyModule])
assert not {"_ssl", "ast", "dis"} & set(sys.modules)
"""

PUT_OFF = """
import sys
from types import ModuleType
from handaxe.frontends.cli import lazy_imports
from handaxe.frontends.cli.lazy_imports import SELDOM_USED, _LazyModule, enable_lazy_imports
"""


def python(code: str, place: Path) -> str:
    environment = {**os.environ, "HOME": str(place), "HANDAXE_HOME": str(place / "data")}
    paths = [str(place), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_read_imports_most_of_them_and_uses_none(tmp_path: Path):
    (tmp_path / "a.txt").write_text("hi\n")
    imported, used = python(WATCH_A_READ, tmp_path).splitlines()[-2:]
    assert {"inspect", "msgspec.inspect", "ssl"} <= set(imported.split())
    assert used == "used:"


@pytest.mark.parametrize("name", sorted(SELDOM_USED))
def test_a_module_that_is_used_is_as_if_it_had_been_loaded_at_once(name: str, tmp_path: Path):
    look = f"""
module = sys.modules[{name!r}]
print(sorted(vars(module)), type(module), module.__loader__ is module.__spec__.loader)
print(type(module.__loader__).__name__, module.__file__, sorted(dir(module)))
"""
    put_off = (
        f"enable_lazy_imports()\nimport {name}\nassert type(sys.modules[{name!r}]) is _LazyModule"
    )
    late = python(f"{PUT_OFF}{put_off}\n{look}", tmp_path)
    assert late == python(f"import sys, {name}\n{look}", tmp_path)


def with_module(code: str, place: Path, text: str) -> str:
    """Run code in a process where `slow` is seldom used, and holds this text."""
    (place / "slow.py").write_text(text)
    begin = "lazy_imports.SELDOM_USED |= {'slow'}\nenable_lazy_imports()\nimport slow\n"
    return python(PUT_OFF + begin + code, place)


def test_importing_again_is_no_use(tmp_path: Path):
    text = "raise SystemExit('loaded')"
    with_module("import slow\nimport slow as other\nassert slow is other", tmp_path, text)


def test_threads_that_use_it_at_once_load_it_once_and_see_it_whole(tmp_path: Path):
    code = """
import threading
begin, seen = threading.Barrier(8), []
def use():
    begin.wait()
    seen.append(slow.LAST)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert seen == [1] * 8, seen
"""
    text = "print('once')\nimport time\ntime.sleep(0.05)\nLAST = 1\n"
    assert with_module(code, tmp_path, text) == "once\n"


def test_a_module_may_use_itself_while_it_is_loaded(tmp_path: Path):
    text = "import sys\nA = 1\nimport slow\nB = slow.A + sys.modules[__name__].A\n"
    assert with_module("print(slow.B)", tmp_path, text) == "2\n"


def test_what_is_set_before_the_first_use_stays(tmp_path: Path):
    assert with_module("slow.A = 2\nprint(slow.A, slow.B)", tmp_path, "A = B = 1") == "2 1\n"


def test_a_module_that_cannot_be_loaded_says_so_to_everybody_who_uses_it(tmp_path: Path):
    code = """
for _ in range(2):
    try:
        slow.A
    except ImportError as error:
        print(error)
"""
    assert with_module(code, tmp_path, "raise ImportError('no')") == "no\nno\n"


def test_a_missing_name_is_an_attribute_error(tmp_path: Path):
    code = """
try:
    slow.missing
except AttributeError as error:
    print(error)
assert type(slow) is ModuleType
"""
    said = with_module(code, tmp_path, "A = 1")
    assert said == "module 'slow' has no attribute 'missing'\n"


def test_putting_them_off_twice_is_putting_them_off_once(tmp_path: Path):
    code = "enable_lazy_imports()\nprint(sys.meta_path.count(lazy_imports._LazyFinder))"
    assert with_module(code, tmp_path, "A = 1") == "1\n"


def test_tls_works_where_asyncio_was_imported_without_it(tmp_path: Path):
    code = """
enable_lazy_imports()
import asyncio
assert "_ssl" not in sys.modules
async def main():
    import socket, ssl
    ours, theirs = socket.socketpair()
    context = ssl.create_default_context()
    theirs.sendall(b"this is no TLS at all")
    try:
        await asyncio.open_connection(sock=ours, ssl=context, server_hostname="example.org")
    except ssl.SSLError as error:
        print(error.reason)
asyncio.run(main())
"""
    assert python(PUT_OFF + code, tmp_path).strip()
