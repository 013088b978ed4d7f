"""Descriptors that carry a few bytes to a program that is about to start."""

import os
import tempfile


def open_content_fd(content: bytes) -> int:
    """A descriptor from which a program reads this content; the caller closes it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("handaxe", os.MFD_CLOEXEC)
    else:
        descriptor, path = tempfile.mkstemp()
        os.unlink(path)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
