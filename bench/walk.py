"""Which modules one tool call passes: `scripts/walk [Read|Write|Edit|Grep|Bash]`, by default Edit.

Makes the call in a throw-away project, in a session that has made a few like it, and prints every
module where the call first enters it, indented below the module that called it. Calls from a package
below `app` up into `app` are listed at the end.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from instructions_cases import CALLS, WARM_UP, make_input, prepare

import handaxe

_SOURCE = f"{Path(handaxe.__file__).parent}{os.sep}"
_ABOVE = ("app", "frontends", "adapters", "testing", "__init__")


class Walk:
    """The modules that are entered while it is open, and who enters them."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        """Every module with how deep it stands below the first."""
        self.upward: Counter[str] = Counter()
        self._is_open = False

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Take in one event of the interpreter."""
        if not self._is_open or event != "call":
            return
        module = _find_module(frame)
        if module is None:
            return
        caller = _find_caller(frame)
        self.order.setdefault(module, self.order.get(caller or "", -1) + 1)
        if caller and _package(module) == "app" and _package(caller) not in _ABOVE:
            self.upward[f"{caller} -> {module}.{frame.f_code.co_name}"] += 1

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Take note until the end of the block."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False


def _find_module(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(_SOURCE):
        return None
    name = path.removeprefix(_SOURCE).removesuffix(".py").replace(os.sep, ".")
    return name.removesuffix(".__init__")


def _find_caller(frame: FrameType) -> str | None:
    above = frame.f_back
    while above is not None:
        if (module := _find_module(above)) is not None:
            return module
        above = above.f_back
    return None


def _package(module: str) -> str:
    return module.partition(".")[0]


async def take(walk: Walk, case: str, root: Path) -> None:
    """Make some calls, and walk along with the last."""
    async with handaxe.Session(root, permission_mode="bypassPermissions") as session:
        await session.call("Read", file_path="a.txt")
        for number in range(1, WARM_UP + 1):
            await session.call(*make_input(case, number))
        with walk.opened():
            result = await session.call(*make_input(case, WARM_UP + 1))
        assert result.ok, result.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", nargs="?", default="Edit", choices=CALLS[1:])
    case = parser.parse_args().tool
    walk = Walk()
    with tempfile.TemporaryDirectory(prefix="handaxe-walk-") as made:
        os.environ |= {"HOME": made, "HANDAXE_HOME": f"{made}/data"}
        root = Path(made, "project")
        prepare(root)
        threading.setprofile(walk.note)
        sys.setprofile(walk.note)
        asyncio.run(take(walk, case, root))
        sys.setprofile(None)
    for module, depth in walk.order.items():
        print(f"{'  ' * depth}{module}")
    print(f"\n{case} passes {len(walk.order)} modules.")
    print(f"Calls up into app: {sum(walk.upward.values())}")
    for call, count in walk.upward.most_common():
        print(f"  {count} x {call}")


if __name__ == "__main__":
    main()
