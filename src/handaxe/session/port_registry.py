"""The ports and state objects of a session, by type; what few calls need is made when asked for."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

Offered = Mapping[type[Any] | str, Any]
"""An offer by its type; or, by the full name of a type that need not be loaded yet, its maker."""


class PortRegistry(MutableMapping[type[Any], Any]):
    """The objects that tools can use. Checking for one neither creates nor loads it."""

    def __init__(self, offered: Offered) -> None:
        self._made: dict[type[Any], Any] = {}
        self._makers: dict[str, Callable[[], Any]] = {}
        self.add(offered)

    def add(self, offered: Offered) -> None:
        """Offer this too, in place of what there was of the same types."""
        for port, offer in offered.items():
            if isinstance(port, str):
                self._made = {
                    made: kept for made, kept in self._made.items() if get_full_name(made) != port
                }
                self._makers[port] = offer
            else:
                self[port] = offer

    def __getitem__(self, port: type[Any]) -> Any:  # noqa: ANN401 - of the port's type
        try:
            return self._made[port]
        except KeyError:
            make = self._makers.get(get_full_name(port))
            if make is None:
                raise
        self[port] = make()
        return self._made[port]

    def __setitem__(self, port: type[Any], offer: object) -> None:
        self._makers.pop(get_full_name(port), None)
        self._made[port] = offer

    def __delitem__(self, port: type[Any]) -> None:
        if self._makers.pop(get_full_name(port), None) is None:
            del self._made[port]

    def __contains__(self, port: object) -> bool:
        return isinstance(port, type) and (
            port in self._made or get_full_name(port) in self._makers
        )

    def has_name(self, full_name: str) -> bool:
        """Whether a type with this full name is offered; it need not be loaded."""
        return full_name in self._makers or any(
            get_full_name(port) == full_name for port in self._made
        )

    def __iter__(self) -> Iterator[type[Any]]:
        """Every type; listing them loads them."""
        waiting: list[type[Any]] = []
        for name in self._makers:
            module, _, attribute = name.rpartition(".")
            waiting.append(getattr(import_module(module), attribute))
        return iter([*self._made, *waiting])

    def __len__(self) -> int:
        return len(self._made) + len(self._makers)


def get_full_name(port: type[Any]) -> str:
    """The name that a type is offered by before it is loaded."""
    return f"{port.__module__}.{port.__qualname__}"
