"""Signals that an event loop hears, from before it runs until it is closed.

`loop.add_signal_handler` does the same in a running loop, and on the way loads `inspect`; that is a
twentieth of the time until a server or an agent is at work.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Self


def list_ending_signals() -> tuple[int, ...]:
    """The signals that ask a process to end; the loss of its terminal counts unless ignored."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT, *(() if is_ignored else (signal.SIGHUP,)))


@contextmanager
def handle_hangup(heard: Callable[[], object]) -> Generator[list[int]]:
    """Inside the block the loss of the terminal ends nothing, but is told; the signal, if it came.

    Where it is ignored it stays so, and outside the main thread nobody hears signals.
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
    """Inside the block these signals end nothing; a loop that runs there can be told of them.

    For the main thread only, as everything about signals.
    """

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def __enter__(self) -> Self:
        self._ear, self._mouth = os.pipe()
        for end in (self._ear, self._mouth):
            os.set_blocking(end, False)
        # Python writes the number of every signal there, also while a loop waits for something.
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
        """Have this called by the running loop for each signal, those that came already too."""

        def listen() -> None:
            for number in os.read(self._ear, 4096):
                if number in self._former:
                    heard(number)

        asyncio.get_running_loop().add_reader(self._ear, listen)


def _ignore_signal(_signal: int, _frame: object) -> None:
    """A signal is reported only where it has a handler."""
