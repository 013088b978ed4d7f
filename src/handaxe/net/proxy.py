"""The proxy that the environment names for a host."""

from collections.abc import Mapping

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


def find_proxy(scheme: str, host: str, port: int | None, env: Mapping[str, str]) -> str | None:
    """The proxy's own address, or None; this machine is always reached directly."""
    host = host.lower()
    if host in _LOOPBACK or _is_exempt(host, port, env):
        return None
    named = _read_variable(env, f"{scheme}_proxy") or _read_variable(env, "all_proxy")
    if not named:
        return None
    return named if "://" in named else f"http://{named}"


def _read_variable(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _is_exempt(host: str, port: int | None, env: Mapping[str, str]) -> bool:
    for raw in _read_variable(env, "no_proxy").lower().split(","):
        entry = raw.strip()
        if entry == "*":
            return True
        name, _, only_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if only_port and only_port != str(port or ""):
            continue
        bare = name.lstrip("*").lstrip(".")
        if bare and (host == bare or host.endswith(f".{bare}")):
            return True
    return False
