"""What goes wrong with the record of a call, as the fault that stops the call."""

from collections.abc import Generator
from contextlib import contextmanager

from handaxe.contract.faults.undo import NotRecorded
from handaxe.disk.errors import DiskFault, describe_os_error


@contextmanager
def convert_disk_errors() -> Generator[None]:
    """Turn what the disk refuses inside into `NotRecorded`."""
    try:
        yield
    except OSError as error:
        raise NotRecorded(describe_os_error(error)) from error
    except DiskFault as fault:
        raise NotRecorded(str(fault)) from fault
