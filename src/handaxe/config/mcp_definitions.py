"""Definitions of MCP servers: where they stand, which one of a name counts, what they say.

A wrong entry is named and left out; the entries beside it count. Nothing is started here, and who
may start is not decided here.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NewType, cast

import msgspec

from handaxe.config.settings_paths import MANAGED_SERVERS, PROJECT_SERVERS
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.settings_store import Scope
from handaxe.contract.trust_gate import TrustRequest
from handaxe.disk.errors import DiskFault
from handaxe.disk.versions import read_regular
from handaxe.storage.home import MANAGED_DIRECTORIES, get_shared_servers_file

# RFC 6749, 3.3: no blanks, quotes, backslashes or control characters.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class OAuthConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How to log in where a server's own words do not suffice."""

    client_id: str | None = None
    """A client that was registered by hand, or the address of a client's metadata document."""
    callback_port: int | None = None
    auth_server_metadata_url: str | None = None
    scopes: str | tuple[str, ...] = ()

    @property
    def scope(self) -> str | None:
        """The scopes to request, in the protocol's form, or None to let the server choose."""
        words = self.scopes.split() if isinstance(self.scopes, str) else self.scopes
        return " ".join(words) or None


def check_oauth(oauth: OAuthConfig) -> None:
    """Refuse what cannot work, with `ValueError`."""
    port = oauth.callback_port
    if port is not None and not 0 < port < 65_536:
        raise ValueError(f"`oauth.callbackPort` must be a port, not {port}")
    if oauth.client_id == "":
        raise ValueError("`oauth.clientId` is empty")
    address = oauth.auth_server_metadata_url
    if address is not None and not re.match(r"https?://[^/]", address):
        raise ValueError(
            f"`oauth.authServerMetadataUrl` must be an http or https address, not {address!r}"
        )
    for word in (oauth.scope or "").split(" "):
        if word and not _SCOPE.fullmatch(word):
            raise ValueError(f"`oauth.scopes` holds {word!r}, which is not a scope")


ServerScope = Literal["managed", "flags", "local", "project", "user"]
"""Where a definition stands, highest first: the whole entry of the highest one counts."""

HEADERS_HELPER = "headersHelper"
MAX_BYTES = 8 << 20
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"
_KINDS = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}


class StdioConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is spoken to over its standard input and output."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


class RemoteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is there already, at an address."""

    kind: Literal["http", "sse"] = "http"
    url: str
    headers: dict[str, str] = {}
    headers_helper: str | None = None
    """A shell command that prints more headers as JSON."""
    oauth: OAuthConfig = OAuthConfig()

    @property
    def has_login(self) -> bool:
        """Whether a login authenticates requests; headers that do so already win over one."""
        names = {name.lower() for name in self.headers}
        return self.headers_helper is None and "authorization" not in names


class HostConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A server that the host program brings along: a function that opens its two streams."""

    open: Callable[[], Any]


class ServerDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One server."""

    name: str
    scope: ServerScope
    file: str | None = None
    config: StdioConfig | RemoteConfig | HostConfig
    raw: dict[str, Any] = {}
    """As it was written, before variables were filled in."""
    timeout_s: float | None = None
    """How long one call may take."""
    always_load: bool = False

    @property
    def digest(self) -> str:
        """The identity of this definition. Variables count by name, not by value."""
        plain = msgspec.json.encode(self.raw, order="deterministic", enc_hook=repr)
        return sha256(self.name.encode() + b"\0" + plain).hexdigest()

    @property
    def login_key(self) -> str:
        """The key of a login. Another address, even through a variable, is another login."""
        url = self.config.url if isinstance(self.config, RemoteConfig) else ""
        return sha256(f"{self.digest}\0{url}".encode()).hexdigest()

    @property
    def reach_digest(self) -> str:
        """The digest that an approval of its tools is bound to, with variables replaced."""
        config = self.config
        reached: list[str | None] = [self.digest]
        if isinstance(config, StdioConfig):
            # The same words of two projects may mean two programs.
            reached += [self.file if self.scope == "project" else None, config.command]
            reached += config.args
        elif isinstance(config, RemoteConfig):
            reached.append(config.url)
        return sha256(msgspec.json.encode(reached)).hexdigest()

    @property
    def shown(self) -> dict[str, Any]:
        """How it is reached, as it was written, without what may hold secrets."""
        config = self.config
        if isinstance(config, StdioConfig):
            args: list[Any] = self.raw.get("args") or []
            return {"type": "stdio", "command": self.raw.get("command"), "args": args}
        if isinstance(config, RemoteConfig):
            return {"type": config.kind, "url": str(self.raw.get("url")).partition("?")[0]}
        return {"type": "sdk", "name": self.name}


ApprovedServer = NewType("ApprovedServer", ServerDefinition)
"""An approved server; only such a server is started."""


class ServerDefinitions(msgspec.Struct):
    """All that was found, highest scope first, and what is wrong with the rest."""

    found: list[ServerDefinition] = []
    problems: list[str] = []
    """Entries and files that do not count."""
    unset: list[str] = []
    """Variables that entries name and that are not set."""
    is_exclusive: bool = False
    """Whether only managed definitions count."""


def read_definitions(
    root: str,
    *,
    given: Sequence[str | Mapping[str, Any]] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    sources: Sequence[Scope] = ("user", "project", "local"),
    is_strict: bool = False,
    environment: Mapping[str, str] | None = None,
) -> ServerDefinitions:
    """Every server there is for a project, highest scope first.

    `given` are files, JSON texts or tables of the caller's own; with `is_strict` nothing else
    counts. A mistake in them is a `SetupError`.
    """
    all_found = ServerDefinitions()
    reader = _Reader(all_found, os.environ if environment is None else environment)
    for directory in MANAGED_DIRECTORIES:
        if reader.file(f"{directory}/{MANAGED_SERVERS}", "managed"):
            all_found.is_exclusive = True
    if all_found.is_exclusive:
        return all_found
    for one in given:
        before = len(all_found.problems)
        reader.given(one)
        if wrong := all_found.problems[before:]:
            listed = "\n".join(f"  {problem}" for problem in wrong)
            raise SetupError(f"The MCP servers of this session are wrong:\n{listed}")
    if is_strict:
        return all_found
    shared = reader.load(get_shared_servers_file()) if {"user", "local"} & set(sources) else None
    if shared is not None and "local" in sources:
        reader.table(_find_local_servers(shared, root), "local", get_shared_servers_file())
    if "project" in sources:
        reader.file(f"{root}/{PROJECT_SERVERS}", "project")
    if shared is not None and "user" in sources:
        reader.table(shared.get("mcpServers"), "user", get_shared_servers_file())
    reader.table(settings or None, "user", None)
    return all_found


def find_entry_problem(name: str, entry: object) -> str | None:
    """The problem of one entry of `mcpServers`, or None."""
    try:
        _Reader(ServerDefinitions(), os.environ).read_entry(name, entry, "flags", None)
    except ValueError as error:
        return f"{error}."
    return None


class _Reader:
    def __init__(self, into: ServerDefinitions, environment: Mapping[str, str]) -> None:
        self._into = into
        self._environment = environment

    def file(self, path: str, scope: ServerScope) -> bool:
        """Read the servers of a file and return whether the file exists."""
        data = self.load(path)
        if data is not None:
            self.table(data.get("mcpServers", {}), scope, path)
        return data is not None

    def given(self, one: str | Mapping[str, Any]) -> None:
        """Read what a caller handed over: a path, a JSON text, or a table of servers."""
        if isinstance(one, Mapping):
            self.table(one.get("mcpServers", one), "flags", None)
            return
        if not isinstance(cast("object", one), str):
            self._complain(None, f"{one!r} is not a table of servers or a file")
            return
        if not one.lstrip().startswith("{"):
            if not self.file(os.path.abspath(os.path.expanduser(one)), "flags"):  # noqa: PTH111
                self._complain(None, f"{one} is not there")
            return
        import json

        try:
            data: Any = json.loads(one)
        except ValueError as error:
            self._complain(None, f"the value is not JSON: {error}")
            return
        self.table(cast("dict[str, Any]", data).get("mcpServers", data), "flags", None)

    def load(self, path: str) -> dict[str, Any] | None:
        """A file's JSON object; None if there is no file, or no such object in it."""
        try:
            os.stat(path)
            data = read_regular(os.path.realpath(path), max_bytes=MAX_BYTES)[0]
            value: object = msgspec.json.decode(data)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._complain(path, f"it is not JSON: {error}")
        except (DiskFault, OSError) as error:
            self._complain(path, f"it cannot be read ({error})")
        else:
            if isinstance(value, dict):
                return cast("dict[str, Any]", value)
            self._complain(path, "an object is expected")
        return None

    def table(self, servers: object, scope: ServerScope, file: str | None) -> None:
        """Read `{name: definition}`."""
        if servers is None:
            return
        if not isinstance(servers, Mapping):
            self._complain(file, "`mcpServers` must be an object")
            return
        for name, entry in cast("Mapping[str, object]", servers).items():
            try:
                definition = self.read_entry(name, entry, scope, file)
            except ValueError as error:
                self._complain(file, f"the MCP server {name!r} is left out: {error}")
            else:
                self._into.found.append(definition)

    def read_entry(
        self, name: str, entry: object, scope: ServerScope, file: str | None
    ) -> ServerDefinition:
        """The definition of one entry; ValueError says what is wrong with it."""
        if not name or len(name) > 100 or not name.isprintable():
            raise ValueError("its name must be 1 to 100 printable characters")
        if callable(entry):
            return ServerDefinition(name=name, scope=scope, config=HostConfig(open=entry))
        if not isinstance(entry, Mapping):
            raise ValueError("an object is expected")  # noqa: TRY004 - every mistake is told alike
        raw = dict(cast("Mapping[str, Any]", entry))
        filled = self._filled(raw, f"{_format_place(file)}: the MCP server {name!r}")
        timeout = raw.get("timeout")
        if timeout is not None and not (_is_number(timeout) and timeout > 0):
            raise ValueError(f"`timeout` must be milliseconds, not {timeout!r}")
        return ServerDefinition(
            name=name,
            scope=scope,
            file=file,
            config=_parse_config(filled),
            raw=raw,
            timeout_s=timeout / 1000 if timeout is not None else None,
            always_load=raw.get("alwaysLoad") is True,
        )

    def _filled(self, raw: Mapping[str, Any], place: str) -> dict[str, Any]:
        """The entry with its variables replaced; references to unset ones stay."""
        missing: dict[str, None] = {}

        def value_of(found: re.Match[str]) -> str:
            value = self._environment.get(found[1])
            if value is None and found.lastindex == 1:
                missing[found[1]] = None
                return found[0]
            return found[2] if value is None else value

        def fill(value: Any) -> Any:  # noqa: ANN401 - any JSON value
            if isinstance(value, str):
                return re.sub(_VARIABLE, value_of, value)
            if isinstance(value, list):
                return [fill(item) for item in cast("list[Any]", value)]
            if isinstance(value, dict):
                return {key: fill(item) for key, item in cast("dict[str, Any]", value).items()}
            return value

        # A shell fills in the variables of its command by itself.
        filled = {k: v if k == HEADERS_HELPER else fill(v) for k, v in raw.items()}
        for variable in missing:
            told = f"{place} names the variable {variable}, which is not set and has no default."
            self._into.unset.append(told)
        return filled

    def _complain(self, file: str | None, text: str) -> None:
        self._into.problems.append(f"{_format_place(file)}: {text}.")


def _parse_config(entry: dict[str, Any]) -> StdioConfig | RemoteConfig:
    kind = entry.get("type", "stdio")
    if kind == "stdio":
        if "command" not in entry and "url" in entry:
            raise ValueError('it has a `url` and no `type`; add "type": "http"')
        return _convert_config(
            StdioConfig, {"command": entry.get("command"), **_select_fields(entry, StdioConfig)}
        )
    if kind in _KINDS:
        fields = {
            **_select_fields(entry, RemoteConfig),
            "kind": _KINDS[kind],
            "url": entry.get("url"),
        }
        fields["headers_helper"] = entry.get(HEADERS_HELPER)
        config = _convert_config(RemoteConfig, fields)
        if not re.match(r"https?://[^/]", config.url):
            raise ValueError(f"`url` must be an http or https address, not {config.url!r}")
        check_oauth(config.oauth)
        return config
    if kind == "ws":
        raise ValueError("web sockets are not supported; use http")
    if kind == "sdk":
        raise ValueError("a server of the host program can only be given by the host program")
    raise ValueError(f"`type` must be stdio, http or sse, not {kind!r}")


def _select_fields(entry: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    wanted = kind.__struct_fields__
    return {key: value for key, value in entry.items() if key in wanted and value is not None}


def _convert_config(kind: type[Any], fields: dict[str, Any]) -> Any:  # noqa: ANN401 - the kind itself
    for key in {"env", "headers"} & fields.keys():
        # Variables are texts, but people write "PORT": 80.
        if isinstance(fields[key], dict):
            table = cast("dict[str, Any]", fields[key])
            fields[key] = {n: str(v) if _is_number(v) else v for n, v in table.items()}
    try:
        config = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("$.", "")) from None
    if "\0" in repr(config) or "\\x00" in repr(config):
        raise ValueError("it holds a NUL character")
    if getattr(config, "command", "x") == "":
        raise ValueError("`command` is empty")
    return config


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format_place(file: str | None) -> str:
    return file or "the session's arguments"


def _find_local_servers(shared: dict[str, Any], root: str) -> object:
    projects = shared.get("projects")
    if not isinstance(projects, dict):
        return None
    entry = cast("dict[str, Any]", projects).get(root)
    return cast("dict[str, Any]", entry).get("mcpServers") if isinstance(entry, dict) else None


def make_server_request(server: ServerDefinition, root: str) -> TrustRequest[bool]:
    """The request of `.mcp.json` to start a server; variables count by name, not by value."""
    file = server.file or ""
    return TrustRequest(
        wanted=True,
        nothing=False,
        key=f"server:{server.name}",
        shown=server.raw,
        file=file,
        root=root,
    )
