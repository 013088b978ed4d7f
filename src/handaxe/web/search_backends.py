"""The back ends of WebSearch: each turns a query into hits, in the format its service documents."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from handaxe.config.settings import WebOptions
from handaxe.contract.faults.web import SearchFailed
from handaxe.contract.ports.web import SearchHit, WebSearcher
from handaxe.web.json_request import RequestFailed, request_json

MAX_HITS = 10
BRAVE_URL = "https://api.search.brave.com"
TAVILY_URL = "https://api.tavily.com"
ANTHROPIC_URL = "https://api.anthropic.com"
_ANTHROPIC_TOOL = "web_search_20250305"
_ANTHROPIC_MODEL = "claude-haiku-4-5"
_KEYS = {
    "brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    "tavily": ("TAVILY_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
}
_DATES = ("date", "publishedDate", "published_date", "page_age")


def list_key_variables(backend: str) -> tuple[str, ...]:
    """The variables that may hold the key of a back end; none where it needs no key."""
    return _KEYS.get(backend, ())


def find_setup_problem(options: WebOptions, env: Mapping[str, str] = os.environ) -> str | None:
    """The steps to enable WebSearch, or None if it is enabled."""
    backend = options.search
    if backend is None:
        return (
            "Set `web.search` in your settings to searxng, brave, tavily, anthropic or mcp; see "
            "the guide to the web tools."
        )
    if backend == "searxng" and not options.search_url:
        return "Set `web.search_url` to the address of your SearXNG server."
    if backend == "mcp" and not options.search_tool:
        return "Set `web.search_tool` to the MCP tool that searches, such as mcp__search__web."
    names = list_key_variables(backend)
    key = _read_key(backend, env)
    if names and not key:
        return f"Set the variable {' or '.join(names)} to your key."
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        return f"The variable {' or '.join(names)} holds characters that no key has: set it again."
    return None


def _read_key(backend: str, env: Mapping[str, str]) -> str:
    return next(
        filter(None, (env.get(name, "").strip() for name in list_key_variables(backend))), ""
    )


class HttpSearcher(WebSearcher):
    """A service that is asked over HTTP."""

    def __init__(
        self, options: Callable[[], WebOptions], env: Mapping[str, str] = os.environ
    ) -> None:
        self._options = options
        self._env = env

    @property
    def name(self) -> str:
        """The name of the service, as the setting has it."""
        return self._options().search or "none"

    async def search(
        self, query: str, allowed: Sequence[str], blocked: Sequence[str]
    ) -> list[SearchHit]:
        """The pages that were found, the best first."""
        options = self._options()
        problem = find_setup_problem(options, self._env)
        if problem is not None:
            raise SearchFailed(self.name, problem.removesuffix("."))
        method, url, headers, body, read = self._build(query, allowed, blocked)
        try:
            answer = await request_json(
                method, url, headers, body, timeout_s=options.timeout_s, env=self._env
            )
        except RequestFailed as failed:
            raise SearchFailed(self.name, str(failed)) from None
        try:
            return read(answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise SearchFailed(self.name, f"its answer has an unknown form ({error})") from None

    def _build(
        self, query: str, allowed: Sequence[str], blocked: Sequence[str]
    ) -> "tuple[str, str, dict[str, str], Any, Callable[[bytes], list[SearchHit]]]":
        from urllib.parse import urlencode

        options = self._options()
        backend, base = self.name, (options.search_url or "").rstrip("/")
        key = _read_key(backend, self._env)
        limited = _add_domains(query, allowed, blocked)
        if backend == "searxng":
            words = urlencode({"q": limited, "format": "json"})
            return "GET", f"{base}/search?{words}", {}, None, read_results
        if backend == "brave":
            words = urlencode({"q": limited, "count": str(MAX_HITS)})
            headers = {"x-subscription-token": key}
            url = f"{base or BRAVE_URL}/res/v1/web/search?{words}"
            return "GET", url, headers, None, read_brave
        if backend == "tavily":
            body: dict[str, Any] = {"query": query, "max_results": MAX_HITS}
            body |= {"include_domains": list(allowed)} if allowed else {}
            body |= {"exclude_domains": list(blocked)} if blocked else {}
            headers = {"authorization": f"Bearer {key}"}
            return "POST", f"{base or TAVILY_URL}/search", headers, body, read_results
        base = base or (self._env.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL).rstrip("/")
        tool: dict[str, Any] = {"type": _ANTHROPIC_TOOL, "name": "web_search", "max_uses": 1}
        tool |= {"allowed_domains": list(allowed)} if allowed else {}
        tool |= {"blocked_domains": list(blocked)} if blocked else {}
        body = {
            "model": _ANTHROPIC_MODEL,
            "max_tokens": 1024,
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": "web_search"},
            "messages": [{"role": "user", "content": f"Search the web for: {query}"}],
        }
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
        return "POST", f"{base}/v1/messages", headers, body, read_anthropic


class _Results(msgspec.Struct):
    results: list[Any]


class _BraveAnswer(msgspec.Struct):
    web: _Results | None = None


class _SearchError(msgspec.Struct):
    error_code: str


class _Block(msgspec.Struct):
    type: str
    content: list[Any] | _SearchError | str | None = None


class _Message(msgspec.Struct):
    content: list[_Block]


def read_results(answer: bytes) -> list[SearchHit]:
    """`results` of SearXNG and Tavily."""
    return read_any(msgspec.json.decode(answer, type=_Results).results)


def read_brave(answer: bytes) -> list[SearchHit]:
    """`web.results` of Brave; there is no `web` where nothing was found."""
    found = msgspec.json.decode(answer, type=_BraveAnswer).web
    return read_any(found.results) if found is not None else []


def read_anthropic(answer: bytes) -> list[SearchHit]:
    """The blocks `web_search_tool_result` of Anthropic."""
    hits: list[SearchHit] = []
    for block in msgspec.json.decode(answer, type=_Message).content:
        if block.type != "web_search_tool_result":
            continue
        if isinstance(block.content, _SearchError):
            raise SearchFailed("anthropic", block.content.error_code)
        hits += read_any(block.content if isinstance(block.content, list) else [])
    return hits


def read_any(answer: Any) -> list[SearchHit]:  # noqa: ANN401 - JSON of an MCP tool
    """Hits in data of any common form: a list of objects with an address, wherever it stands."""
    rows = cast("list[Any]", answer) if isinstance(answer, list) else _find_rows(answer)
    hits: list[SearchHit] = []
    for row in rows:
        if isinstance(row, dict):
            one = cast("dict[str, Any]", row)
            url = one.get("url") or one.get("link") or one.get("href")
            if isinstance(url, str):
                snippet = one.get("snippet") or one.get("description") or one.get("content")
                date = next(filter(None, map(one.get, _DATES)), "")
                hits.append(make_hit(one.get("title") or url, url, snippet, date))
    return hits


def _find_rows(answer: Any) -> list[Any]:  # noqa: ANN401 - JSON of an MCP tool
    if isinstance(answer, dict):
        known = cast("dict[str, Any]", answer)
        for name in ("results", "result", "items", "hits", "organic", "data", "web"):
            inner = known.get(name)
            if isinstance(inner, list):
                return cast("list[Any]", inner)
            if isinstance(inner, dict):
                return _find_rows(inner)
    return []


def make_hit(title: object, url: object, snippet: object, date: object) -> SearchHit:
    """A page that was found, its texts cleaned and cut."""
    from handaxe.web.markdown import clean_text

    def flatten(value: object, limit: int) -> str:
        return " ".join(clean_text(_strip_tags(str(value or ""))).split())[:limit]

    return SearchHit(
        title=flatten(title, 300),
        url=flatten(url, 2_000),
        snippet=flatten(snippet, 600),
        date=flatten(date, 40),
    )


def _strip_tags(text: str) -> str:
    """Services mark the words of the query with tags."""
    from html import unescape

    return unescape(re.sub(r"</?(?:strong|b|em|mark|span)\b[^>]*>", "", text))


def _add_domains(query: str, allowed: Sequence[str], blocked: Sequence[str]) -> str:
    """The query in the words that engines without options for domains understand."""
    wanted = " OR ".join(f"site:{domain}" for domain in allowed)
    shut = " ".join(f"-site:{domain}" for domain in blocked)
    return " ".join(filter(None, (query, f"({wanted})" if len(allowed) > 1 else wanted, shut)))
