"""What other processes do in these tests; they find it by its module name."""

import resource

from handaxe.disk.append_log import LineLog
from handaxe.disk.atomic import DiskWriteFailed, VersionChanged, read_regular, replace


def count_up(path: str, times: int) -> int:
    """Add one to a number in a file, again and again; gives how often somebody was faster."""
    beaten = 0
    while times:
        data, version = read_regular(path)
        try:
            replace(path, [b"%d" % (int(data) + 1)], expect=version)
        except VersionChanged:
            beaten += 1
        else:
            times -= 1
    return beaten


def append_many(path: str, who: int, count: int) -> None:
    """Append numbered records."""
    log = LineLog(path)
    for number in range(count):
        log.append(b'{"from":%d,"number":%d}' % (who, number))


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))


def write_too_much(path: str) -> tuple[str, int | None]:
    try:
        replace(path, [bytes(10_000)], expect=None)
    except DiskWriteFailed as failure:
        return failure.reason, failure.errno
    return "it was written", None
