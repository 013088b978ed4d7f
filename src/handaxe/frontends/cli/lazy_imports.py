"""Lazy imports of rarely used modules of the standard library and msgspec.

asyncio imports TLS and msgspec an inspector of types; loading both takes a seventh of the time of a
small command. A lazy module looks like any other to its importers.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object

SELDOM_USED = frozenset({
    "asyncio.sslproto", "asyncio.staggered", "copy", "inspect", "ipaddress", "json",
    "msgspec.inspect", "msgspec.msgpack", "msgspec.toml", "msgspec.yaml", "random", "shlex", "ssl",
    "textwrap", "tokenize",
})  # fmt: skip
"""Modules that asyncio, msgspec and tools import, and few commands use."""


def enable_lazy_imports() -> None:
    """Import these modules lazily from now on."""
    if _LazyFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LazyFinder)


class _LazyFinder:
    """Finds rarely used modules as usual, with a lazy loader."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in SELDOM_USED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = spec.loader_state = _LazyLoader(spec, spec.loader)
        return spec


class _LazyLoader(Loader):
    """A loader that runs when the module is first used."""

    def __init__(self, spec: ModuleSpec, loader: Loader) -> None:
        self._spec = spec
        self._loader = loader
        self._lock = RLock()
        self._is_loading = False

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _LazyModule

    def load(self, module: ModuleType) -> None:
        """Load the module once; a recursive call returns at once."""
        with self._lock:
            if self._is_loading or type(module) is not _LazyModule:
                return
            self._is_loading = True
            try:
                self._loader.exec_module(module)
                object.__setattr__(module, "__class__", ModuleType)
                self._spec.loader = module.__loader__ = self._loader
            finally:
                self._is_loading = False


class _LazyModule(ModuleType):
    """A module that was not used yet."""

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module holds
        # An import statement reads `__spec__` of a module that is already imported.
        if name != "__spec__":
            _load_module(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        _load_module(self)
        ModuleType.__setattr__(self, name, value)


def _load_module(module: _LazyModule) -> None:
    assert module.__spec__ is not None
    postponed: _LazyLoader = module.__spec__.loader_state
    postponed.load(module)
