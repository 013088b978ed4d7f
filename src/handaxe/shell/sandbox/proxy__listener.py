"""The first program inside a sandbox with listed hosts: gives the proxy a door, then steps aside.

It listens inside the sandbox's own network and hands the listening socket out, so the proxy can
answer there without anything of ours staying inside, and without a Unix socket to connect to.
"""

PORT = 47_128

SOURCE = """
import _socket as s, os, sys
out = s.socket(fileno=int(sys.argv[1]))
door = s.socket(s.AF_INET, s.SOCK_STREAM)
door.setsockopt(s.SOL_SOCKET, s.SO_REUSEADDR, 1)
door.bind(("127.0.0.1", int(sys.argv[2])))
door.listen(128)
out.sendmsg([b"x"], [(s.SOL_SOCKET, s.SCM_RIGHTS, door.fileno().to_bytes(4, sys.byteorder))])
out.close()
door.close()
import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def wrap_with_listener(argv: list[str], descriptor: int, interpreter: str) -> list[str]:
    """The command with the listener before it."""
    return [interpreter, "-I", "-S", "-c", SOURCE, str(descriptor), str(PORT), *argv]


def build_proxy_environment(*, reaches_local: bool) -> dict[str, str]:
    """What makes programs use the proxy."""
    web, any_kind = f"http://127.0.0.1:{PORT}", f"socks5h://127.0.0.1:{PORT}"
    spared = "" if reaches_local else "localhost,127.0.0.1,::1"
    lower = {
        "http_proxy": web,
        "https_proxy": web,
        "ftp_proxy": web,
        "all_proxy": any_kind,
        "no_proxy": spared,
    }
    upper = {name.upper(): value for name, value in lower.items()}
    return {**lower, **upper, "NODE_USE_ENV_PROXY": "1"}
