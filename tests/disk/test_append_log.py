import errno
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import pytest
from crowd import append_many
from hypothesis import given
from hypothesis import strategies as st

from handaxe.disk.append_log import LineLog, LogFailed, LogFull, LogRecord, format_line, scan
from handaxe.disk.append_log_records import parse_line


def _write(path: Path, payloads: list[bytes]) -> list[int]:
    log = LineLog(path)
    offsets = [log.append(payload) for payload in payloads]
    log.sync()
    log.close()
    return offsets


def test_records_come_back_in_order_with_offset_and_number(place: Path):
    payloads = [b"{}", b'{"a":"\xc3\xbc"}', b"[1,2]"]
    offsets = _write(place / "log", payloads)

    whole = scan(place / "log")

    assert list(whole) == [
        LogRecord(offset, number, payload)
        for number, (offset, payload) in enumerate(zip(offsets, payloads, strict=True), 1)
    ]
    assert whole.is_whole


def test_a_line_is_json_with_number_checksum_and_event(place: Path):
    _write(place / "log", [b'{"kind":"x"}'])

    line = (place / "log").read_bytes()

    assert line == b'{"seq":1,"crc":"eb88d662","event":{"kind":"x"}}\n'
    assert msgspec.json.decode(line)["event"] == {"kind": "x"}


def test_a_log_is_made_by_the_first_append_and_for_its_owner_only(place: Path):
    log = LineLog(place / "log")
    log.sync()
    log.close()
    assert os.listdir(place) == []

    log.append(b"1")
    log.close()
    assert (place / "log").stat().st_mode & 0o777 == 0o600


def test_a_record_is_read_back_at_its_offset(place: Path):
    log = LineLog(place / "log")
    payloads = [b'"%b"' % (b"x" * size) for size in (0, 10, 5000, 10_000_000)]
    offsets = [log.append(payload) for payload in payloads]

    assert [log.read_at(offset) for offset in offsets] == payloads
    for nonsense in (offsets[1] + 1, offsets[-1] + 20_000_000):
        with pytest.raises(LogFailed):
            log.read_at(nonsense)
    log.close()


def test_several_records_are_written_at_once(place: Path):
    log = LineLog(place / "log")
    offsets = [log.append(b"1"), *log.extend([b"22", b"333"]), *log.extend([]), log.append(b"4")]

    assert [log.read_at(offset) for offset in offsets] == [b"1", b"22", b"333", b"4"]
    with pytest.raises(ValueError, match="one line"):
        log.extend([b"5", b"6\n"])
    log.close()
    whole = scan(place / "log")
    assert [record.seq for record in whole] == [1, 2, 3, 4]
    assert whole.is_whole


@pytest.mark.parametrize("payload", [b"", b'{"a":\n1}'])
def test_a_payload_of_no_or_many_lines_is_refused(place: Path, payload: bytes):
    with pytest.raises(ValueError, match="one line"):
        LineLog(place / "log").append(payload)


def test_a_log_goes_on_where_it_ended(place: Path):
    _write(place / "log", [b"1", b"2"])
    _write(place / "log", [b"3"])

    assert [(record.seq, record.payload) for record in scan(place / "log")] == [
        (1, b"1"),
        (2, b"2"),
        (3, b"3"),
    ]


def test_a_log_that_rests_is_made_durable_all_the_same_and_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[int] = []
    monkeypatch.setattr(
        "handaxe.disk.append_log.sync_content", lambda fd: synced.append(os.fstat(fd).st_ino)
    )
    log = LineLog(place / "log")
    log.append(b"1")
    log.close()
    log.sync()
    log.sync()

    assert synced == [(place / "log").stat().st_ino]


def test_a_torn_tail_is_cut_off_kept_aside_and_reported(place: Path):
    _write(place / "log", [b"1", b"2"])
    size = (place / "log").stat().st_size
    for number in (1, 2):
        with (place / "log").open("ab") as file:
            file.write(b'{"seq":3,"crc"')
        torn = scan(place / "log")
        assert len(list(torn)) == 1 + number
        assert torn.torn_bytes == 14
        assert [damage.reason for damage in torn.damages] == ["the line is not finished"]

        log = LineLog(place / "log")
        log.append(b'"next"')
        log.close()

        assert [(cut.size_bytes, cut.kept_at) for cut in log.cuts] == [
            (14, f"{place}/log.torn-{number}")
        ]
        assert (place / f"log.torn-{number}").read_bytes() == b'{"seq":3,"crc"'
    whole = scan(place / "log")
    assert [record.seq for record in whole] == [1, 2, 3, 4]
    assert whole.is_whole
    assert list(scan(place / "log"))[2].offset == size


def test_damaged_lines_are_skipped_and_reported_with_their_numbers(place: Path):
    offsets = _write(place / "log", [b"%d" % number for number in range(6)])
    data = bytearray((place / "log").read_bytes())
    data[offsets[1] + 30 : offsets[1] + 31] = b"\xff"
    data[offsets[3]] = ord("x")
    (place / "log").write_bytes(data)

    damaged = scan(place / "log")

    assert [record.seq for record in damaged] == [1, 3, 5, 6]
    assert [(damage.line_number, damage.offset) for damage in damaged.damages] == [
        (2, offsets[1]),
        (4, offsets[3]),
    ]


def test_lost_and_doubled_records_are_reported(place: Path):
    lines = [format_line(number, b"1") for number in (1, 2, 3, 4)]

    def damages(*kept: int) -> list[str]:
        (place / "log").write_bytes(b"".join(lines[number] for number in kept))
        log = scan(place / "log")
        list(log)
        return [damage.reason for damage in log.damages]

    assert damages(0, 1, 2, 3) == []
    assert damages(0, 2, 3) == ["record 2 was expected here, not 3"]
    assert damages(1, 2) == ["record 1 was expected here, not 2"]
    assert damages(0, 0, 1) == ["record 2 was expected here, not 1"]


def test_a_payload_that_is_not_json_is_damage(place: Path):
    (place / "log").write_bytes(format_line(1, b"{oops}") + format_line(2, b"{}"))

    log = scan(place / "log")

    assert [record.seq for record in log] == [2]
    assert [damage.reason for damage in log.damages] == ["the payload is not JSON"]


def test_appending_after_damage_continues_the_numbers(place: Path):
    _write(place / "log", [b"1", b"2"])
    with (place / "log").open("ab") as file:
        file.write(b"garbage\n" * 2)
    _write(place / "log", [b"5"])

    log = scan(place / "log")

    assert [record.seq for record in log] == [1, 2, 5]
    assert log.damage_count == 2


PAYLOADS = st.lists(
    st.binary(max_size=60).map(lambda raw: msgspec.json.encode(raw.hex())), max_size=6
)


@given(PAYLOADS, st.data())
def test_a_log_cut_at_any_byte_gives_its_whole_records(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], data: st.DataObject
):
    lines = [format_line(number, payload) for number, payload in enumerate(payloads, 1)]
    whole = b"".join(lines)
    path = tmp_path_factory.getbasetemp() / "cut"
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])

    log = scan(path)
    found = [record.payload for record in log]

    expected = 0
    while sum(map(len, lines[: expected + 1])) <= cut and expected < len(lines):
        expected += 1
    assert found == payloads[:expected]
    assert log.torn_bytes == cut - sum(map(len, lines[:expected]))
    assert log.is_whole == (not log.torn_bytes)


def test_a_log_cut_at_every_byte_gives_its_whole_records_and_can_be_appended_to(place: Path):
    lines = [format_line(number, b'{"n":%d}' % number) for number in (1, 2, 3)]
    whole = b"".join(lines)
    path = place / "log"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        assert [record.seq for record in scan(path)] == list(range(1, kept + 1))
        _write(path, [b'"next"'])
        after = scan(path)
        assert [record.seq for record in after] == list(range(1, kept + 2))
        assert after.is_whole


@given(PAYLOADS.filter(bool), st.data())
def test_any_flipped_byte_is_noticed_and_nothing_false_is_given(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], data: st.DataObject
):
    spoilt = bytearray(
        b"".join(format_line(number, payload) for number, payload in enumerate(payloads, 1))
    )
    place = data.draw(st.integers(0, len(spoilt) - 1))
    spoilt[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.write_bytes(spoilt)

    log = scan(path)
    found = [record.payload for record in log]

    assert not log.is_whole
    remaining = iter(payloads)
    assert all(payload in remaining for payload in found)


@given(st.binary(max_size=300))
def test_bytes_of_any_kind_never_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes):
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(raw)

    log = scan(path)

    assert list(log) == []
    assert log.is_whole == (not raw)
    parse_line(raw, 0)


def test_reading_holds_one_line_in_memory_at_most(place: Path):
    payload = b'"%b"' % (b"x" * 10_000_000)
    _write(place / "log", [payload] * 5)

    tracemalloc.start()
    try:
        assert sum(len(record.payload) for record in scan(place / "log")) == 5 * len(payload)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(payload)


def test_a_full_disk_leaves_whole_records_and_says_so(small_disk: Path):
    log = LineLog(small_disk / "log")
    payload = b'"%b"' % (b"x" * 5000)
    offsets: list[int] = []
    with pytest.raises(LogFull) as full:
        offsets.extend(log.append(payload) for _ in range(1000))
    assert full.value.errno == errno.ENOSPC
    assert full.value.reason == "could not append to the log: no space is left on the device"

    records = scan(small_disk / "log")
    assert [record.offset for record in records] == offsets
    assert records.is_whole

    os.truncate(small_disk / "log", 0)
    log.append(payload)
    assert [record.seq for record in scan(small_disk / "log")] == [1]
    log.close()


def test_links_and_special_files_are_not_written_to(place: Path):
    os.mkfifo(place / "fifo")
    (place / "link").symlink_to("target")

    for name in ("fifo", "link"):
        with pytest.raises(Exception, match=r"not a regular file|link is in the way"):
            LineLog(place / name).append(b"1")
    with pytest.raises(LogFailed):
        LineLog(place / "missing" / "log").append(b"1")


def test_processes_share_a_log_without_losing_or_mixing_records(place: Path):
    path = place / "log"
    with get_context("spawn").Pool(3) as pool:
        pool.starmap(append_many, [(str(path), who, 300) for who in range(3)])

    log = scan(path)
    numbers: dict[int, list[int]] = {}
    for record in log:
        event = msgspec.json.decode(record.payload)
        numbers.setdefault(event["from"], []).append(event["number"])

    assert log.is_whole
    assert numbers == {who: list(range(300)) for who in range(3)}


def test_threads_share_a_log_object(place: Path):
    log = LineLog(place / "log")
    with ThreadPoolExecutor(4) as pool:
        offsets = list(pool.map(log.append, [b"%d" % number for number in range(400)]))
    log.close()

    whole = scan(place / "log")
    assert sorted(record.offset for record in whole) == sorted(offsets)
    assert whole.is_whole


APPEND_FOR_EVER = """
import sys
from handaxe.disk.append_log import LineLog
log = LineLog(sys.argv[1])
print("ready", flush=True)
while True:
    log.append(b'"' + b"x" * 2000 + b'"')
"""


def test_killed_writers_leave_a_log_that_goes_on(place: Path):
    path = place / "log"
    for _ in range(5):
        writers = [
            subprocess.Popen([sys.executable, "-c", APPEND_FOR_EVER, path], stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(0.01)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
    log = LineLog(path)
    log.append(b'"the end"')
    log.close()

    whole = scan(path)
    *_, last = whole
    assert last.payload == b'"the end"'
    assert whole.is_whole
