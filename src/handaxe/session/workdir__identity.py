"""Who this session is, for texts that name it."""

import msgspec


class SessionIdentity(msgspec.Struct, frozen=True):
    """The session's id and the directory it was opened for."""

    session_id: str
    root: str
