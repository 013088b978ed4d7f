"""Signals for an event loop, from before it runs until it is closed.

`loop.add_signal_handler` needs a running loop and imports `inspect`, a twentieth of the start of a
server or an agent.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Self


def list_ending_signals() -> tuple[int, ...]:
    """The signals that end a process; SIGHUP unless it is ignored."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT, *(() if is_ignored else (signal.SIGHUP,)))


@contextmanager
def handle_hangup(heard: Callable[[], object]) -> Generator[list[int]]:
    """Report SIGHUP inside the block instead of ending; yields the signal if it came.

    An ignored SIGHUP stays ignored; outside the main thread nothing is reported.
    """
    came: list[int] = []

    def hear(number: int, _frame: object) -> None:
        came.append(number)
        heard()

    former = None
    if signal.SIGHUP in list_ending_signals():
        with suppress(ValueError):
            former = signal.signal(signal.SIGHUP, hear)
    try:
        yield came
    finally:
        if former is not None:
            signal.signal(signal.SIGHUP, former)


class SignalListener:
    """Holds signals inside the block and reports them to a running loop.

    Only for the main thread.
    """

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def __enter__(self) -> Self:
        self._ear, self._mouth = os.pipe()
        for end in (self._ear, self._mouth):
            os.set_blocking(end, False)
        # Python writes the number of each signal there, also while a loop waits.
        self._former_mouth = signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        self._former = {number: signal.signal(number, _ignore_signal) for number in self._numbers}
        for number in self._numbers:
            signal.siginterrupt(number, False)  # noqa: FBT003 - it has no name
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._former.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
        signal.set_wakeup_fd(self._former_mouth)
        os.close(self._ear)
        os.close(self._mouth)

    def tell(self, heard: Callable[[int], object]) -> None:
        """Let the running loop call this for each signal, earlier ones included."""

        def listen() -> None:
            for number in os.read(self._ear, 4096):
                if number in self._former:
                    heard(number)

        asyncio.get_running_loop().add_reader(self._ear, listen)


def _ignore_signal(_signal: int, _frame: object) -> None:
    """Do nothing: Python reports only signals that have a handler."""
