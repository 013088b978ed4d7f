"""Commands that need the way to more rights than their user has.

Where the user is not root, the kernel lets programs be traced only if none of them can gain rights
any more. Whatever may want to is not traced then.
"""

import re

_GAINING = (
    "at", "batch", "bwrap", "buildah", "chsh", "chfn", "crontab", "doas", "fusermount",
    "fusermount3", "gpasswd", "mount", "newgidmap", "newgrp", "newuidmap", "passwd", "ping",
    "pkexec", "podman", "run0", "runuser", "sg", "singularity", "apptainer", "su", "sudo",
    "sudoedit", "umount",
)  # fmt: skip
_NAMED = re.compile(rf"(?<![\w.-])(?:{'|'.join(_GAINING)})(?![\w.-])")


def can_be_restricted(command: str) -> bool:
    """Whether no word of a command names a program that is there to gain rights."""
    return _NAMED.search(command) is None
