"""The program that listens to one web socket and prints one line for each frame.

It connects once, to a checked address of the host, and sends only what the protocol requires. Its
last line gives the reason for its end in brackets.
"""

import contextlib
import json
import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    NegotiationError,
)
from websockets.frames import Close
from websockets.sync.client import ClientConnection, connect

from handaxe.shell.sandbox.host_allowlist import can_be_private
from handaxe.text.ip_addresses import is_public, is_unsafe_address

MAX_FRAME_BYTES = 1 << 20
CLOSE_S = 2.0
MAX_REASON_CHARS = 300
_GOOD_CODES = (1000, 1001)
_TOO_BIG, _NO_TEXT, _PING_LOST = 1009, 1007, 1011


class _Ended(Exception):
    """The watch is over; the text says why, after "[watch ended: "."""

    def __init__(self, why: str, *, is_good: bool = False) -> None:
        super().__init__(why)
        self.is_good = is_good


def main() -> NoReturn:
    """Listen until the end."""
    logging.disable()
    try:
        _listen(json.loads(sys.argv[1]))
    except _Ended as ended:
        end = ended
    except Exception as error:  # noqa: BLE001 - whatever a server brings about is told as the end
        end = _Ended(f"{type(error).__name__}: {_flatten_text(error)}")
    _print_line(f"[watch ended: {end}]")
    sys.exit(0 if end.is_good else 1)


def _listen(request: dict[str, Any]) -> NoReturn:
    deadline = time.monotonic() + request["open_s"]
    connection = _open_connection(request, _connect_first(request, deadline), deadline)
    with contextlib.closing(connection):
        wanted = request["protocols"]
        if wanted and connection.subprotocol is None:
            raise _Ended(f"the server accepted none of the subprotocols {', '.join(wanted)}")
        try:
            while True:
                _print_line(_frame(connection.recv_streaming()))
        except ConnectionClosed as closed:
            raise _describe_end(closed, request["silent_s"]) from None


def _connect_first(request: dict[str, Any], deadline: float) -> socket.socket:
    """A connection to the first address that answers; every address is checked before."""
    host, port = request["host"], request["port"]
    found = _resolve_addresses(request, deadline)
    for *_, place in found:
        _refuse_wrong_place(host, str(place[0]))
    problem = "it has no address"
    for tried, (family, kind, protocol, _, place) in enumerate(found):
        made = socket.socket(family, kind, protocol)
        try:
            # A silent address leaves time for those behind it.
            made.settimeout(max(0.001, (deadline - time.monotonic()) / (len(found) - tried)))
            made.connect(place)
        except OSError as error:
            made.close()
            problem = _describe_error(error)
        else:
            made.settimeout(None)
            return made
    raise _Ended(f"{host} port {port} cannot be reached: {problem}")


def _resolve_addresses(request: dict[str, Any], deadline: float) -> list[Any]:
    """The addresses of the host, with a shorter limit than the system's resolver."""
    host, found = request["host"], list[Any]()

    def look() -> None:
        try:
            found.extend(socket.getaddrinfo(host, request["port"], type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(max(0.001, deadline - time.monotonic()))
    if not found:
        raise _Ended(f"the address of {host} was not found within {request['open_s']:g} s")
    if isinstance(error := found[0], Exception):
        raise _Ended(f"{host} has no address: {getattr(error, 'strerror', None) or error}")
    return found


def _refuse_wrong_place(host: str, address: str) -> None:
    if is_unsafe_address(address):
        place = address if host == address else f"{host} leads to {address}, which"
        raise _Ended(f"{place} is a link-local, metadata or group address, which is never allowed")
    if not is_public(address) and not can_be_private(host, (host,)):
        raise _Ended(
            f"{host} leads to {address}, which is not a public address; to allow it, give "
            "the address itself"
        )


def _open_connection(
    request: dict[str, Any], made: socket.socket, deadline: float
) -> ClientConnection:
    is_secure = request["url"].lower().startswith("wss:")
    try:
        return connect(
            request["url"],
            sock=made,
            ssl=ssl.create_default_context() if is_secure else None,
            server_hostname=request["host"] if is_secure else None,
            subprotocols=request["protocols"] or None,
            compression=None,
            proxy=None,
            user_agent_header="handaxe",
            open_timeout=max(0.001, deadline - time.monotonic()),
            ping_interval=request["ping_s"],
            ping_timeout=request["silent_s"],
            close_timeout=CLOSE_S,
            max_size=MAX_FRAME_BYTES,
        )
    except ssl.SSLCertVerificationError as error:
        raise _Ended(f"the server's certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError as error:
        raise _Ended(f"there is no secure connection: {error.reason or error}") from None
    except InvalidStatus as refused:
        raise _Ended(_describe_refusal(refused)) from None
    except NegotiationError as error:
        raise _Ended(
            f"the server's answer does not match the request: {_flatten_text(error)}"
        ) from None
    except TimeoutError:
        raise _Ended(f"the server did not answer within {request['open_s']:g} s") from None
    except (InvalidMessage, EOFError):
        raise _Ended("the server does not support web sockets") from None
    except InvalidHandshake as error:
        raise _Ended(f"the server's answer is not a handshake: {_flatten_text(error)}") from None
    except OSError as error:
        raise _Ended(
            f"the connection broke during the handshake: {_describe_error(error)}"
        ) from None


def _describe_refusal(refused: InvalidStatus) -> str:
    response = refused.response
    said = f"the server refused with HTTP status {response.status_code}"
    reason = _flatten_text(response.reason_phrase)
    said += f" {reason}" if reason else ""
    to = response.headers.get_all("Location") if 300 <= response.status_code < 400 else []
    return f"{said}; it points to {_flatten_text(to[0])}, which is not followed" if to else said


def _frame(pieces: Iterator[str | bytes]) -> str:
    """One frame as a line; a message in parts is one frame, and empty parts are skipped."""
    texts: list[str] = []
    size, is_text = 0, True
    for piece in pieces:
        if isinstance(piece, str):
            texts += [piece] if piece else []
        else:
            is_text = False
            size += len(piece)
    if not is_text:
        return f"[binary frame, {size} bytes]"
    text = "".join(texts)
    # A line is a frame, so what would end the line is written as a model would write it.
    line = text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\r")
    return line if line.strip() else "[empty frame]"


def _describe_end(closed: ConnectionClosed, silent_s: float) -> _Ended:
    said, sent = closed.rcvd, closed.sent
    if said is not None and (sent is None or closed.rcvd_then_sent):
        return _Ended(
            f"the server closed the connection: {_close(said)}", is_good=said.code in _GOOD_CODES
        )
    if sent is None:
        return _Ended("the connection was lost")
    if sent.code == _TOO_BIG:
        return _Ended("a frame is larger than 1 MiB")
    if sent.code == _NO_TEXT:
        return _Ended("a text frame is not valid UTF-8")
    if sent.code == _PING_LOST:
        return _Ended(f"the server answered no ping for {silent_s:g} s")
    return _Ended(f"the server violated the protocol: {_close(sent)}")


def _close(close: Close) -> str:
    reason = _flatten_text(close.reason)
    return f"code {close.code}, {reason}" if reason else f"code {close.code}"


def _describe_error(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no address answered in time"
    return (error.strerror or str(error)).lower()


def _flatten_text(text: object) -> str:
    """A foreign text on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= MAX_REASON_CHARS else f"{line[:MAX_REASON_CHARS]}..."


def _print_line(line: str) -> None:
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()
