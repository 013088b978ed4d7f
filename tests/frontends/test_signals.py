"""Signals that an event loop hears."""

import asyncio
import os
import signal
import threading

from tests.holding import open_descriptors

from handaxe.frontends.signals import SignalListener


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_each_signal_is_one_call_on_the_loop():
    async def main(signals: SignalListener) -> list[tuple[int, bool]]:
        heard: list[tuple[int, bool]] = []
        loop = asyncio.get_running_loop()
        both = asyncio.Event()

        def note(number: int) -> None:
            heard.append((number, asyncio.get_running_loop() is loop))
            if len(heard) == 2:
                both.set()

        signals.tell(note)
        send(signal.SIGUSR1)
        send(signal.SIGUSR2)
        await both.wait()
        return heard

    with SignalListener(signal.SIGUSR1, signal.SIGUSR2) as signals:
        heard = asyncio.run(main(signals))
    assert sorted(heard) == [(signal.SIGUSR1, True), (signal.SIGUSR2, True)]


def test_a_signal_that_came_before_the_loop_is_heard_by_it():
    async def main(signals: SignalListener) -> int:
        heard = asyncio.get_running_loop().create_future()
        signals.tell(heard.set_result)
        return await heard

    with SignalListener(signal.SIGTERM) as signals:
        send(signal.SIGTERM)
        assert asyncio.run(main(signals)) == signal.SIGTERM


def test_a_waiting_loop_is_woken_by_a_signal_that_another_thread_took():
    async def main(signals: SignalListener) -> int:
        heard = asyncio.get_running_loop().create_future()
        signals.tell(heard.set_result)
        other = threading.Thread(target=lambda: signal.raise_signal(signal.SIGUSR1))
        other.start()
        number = await heard
        other.join()
        return number

    with SignalListener(signal.SIGUSR1) as signals:
        assert asyncio.run(main(signals)) == signal.SIGUSR1


def test_an_interrupt_is_heard_and_raises_nothing():
    async def main(signals: SignalListener) -> int:
        heard = asyncio.get_running_loop().create_future()
        signals.tell(heard.set_result)
        send(signal.SIGINT)
        return await heard

    with SignalListener(signal.SIGINT) as signals:
        assert asyncio.run(main(signals)) == signal.SIGINT


def test_other_signals_keep_their_handlers_and_are_not_told():
    told: list[int] = []
    former = signal.signal(signal.SIGUSR2, lambda number, _: told.append(number))
    try:

        async def main(signals: SignalListener) -> list[int]:
            heard: list[int] = []
            done = asyncio.Event()
            signals.tell(lambda number: (heard.append(number), done.set()))
            send(signal.SIGUSR2)
            send(signal.SIGUSR1)
            await done.wait()
            return heard

        with SignalListener(signal.SIGUSR1) as signals:
            assert asyncio.run(main(signals)) == [signal.SIGUSR1]
        assert told == [signal.SIGUSR2]
    finally:
        signal.signal(signal.SIGUSR2, former)


def test_at_the_end_everything_is_as_before_and_nothing_stays_open():
    def before(number: int, frame: object) -> None: ...

    former = signal.signal(signal.SIGUSR1, before)
    before_it = open_descriptors()
    woken = signal.set_wakeup_fd(-1)
    try:
        with SignalListener(signal.SIGUSR1):
            assert signal.getsignal(signal.SIGUSR1) is not before
        assert signal.getsignal(signal.SIGUSR1) is before
        assert signal.set_wakeup_fd(-1) == -1
        assert open_descriptors() <= before_it
    finally:
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGUSR1, former)
