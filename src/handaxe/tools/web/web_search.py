"""WebSearch: pages of the web by words, from the back end that the user set up."""

import re
import time
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items
from handaxe.contract.effects import Effects
from handaxe.contract.events import WebSource
from handaxe.contract.faults import BadInput
from handaxe.contract.faults.web import SearchFailed
from handaxe.contract.ports.web import SearchHit, WebAddress, WebSearcher
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.web_sources import WebSources
from handaxe.text.framing import frame, quote_line

MAX_HITS = 10
MAX_DOMAINS = 20
MIN_QUERY_CHARS = 2
_DOMAIN = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


class WebSearchArgs(ToolArgs, kw_only=True):
    query: Annotated[str, "What to search for."]
    allowed_domains: Annotated[tuple[str, ...], "Only results of these domains."] = ()
    blocked_domains: Annotated[tuple[str, ...], "No results of these domains."] = ()


class HitData(TypedDict):
    """One page that was found."""

    title: str
    url: str
    snippet: NotRequired[str]
    date: NotRequired[str]


class ResultsData(TypedDict):
    """The pages that one search of the back end found."""

    tool_use_id: str
    content: list[HitData]


class WebSearchData(TypedDict):
    """The search results."""

    query: str
    results: list[ResultsData | str]
    durationSeconds: float
    searchCount: Annotated[int, "Searches of the back end for this call."]
    backend: str


class WebSearch(Tool[WebSearchArgs]):
    search_hint = "search web internet google find pages news current documentation"
    output_type = WebSearchData
    uses = (WebSearcher, WebSources, Settings)
    effects = Effects.pure()
    interrupt = "cancel"
    defer = True
    input_examples = ({"query": "python 3.14 release notes"},)

    async def validate(self, args: WebSearchArgs, ctx: ToolContext) -> None:
        if len(args.query.strip()) < MIN_QUERY_CHARS:
            raise BadInput(self.name, ["The parameter `query` needs at least 2 characters"])
        if args.allowed_domains and args.blocked_domains:
            problem = "Give `allowed_domains` or `blocked_domains`, not both"
            raise BadInput(self.name, [problem])
        for domain in (*args.allowed_domains, *args.blocked_domains):
            if not _DOMAIN.fullmatch(_normalize_domain(domain)):
                raise BadInput(self.name, [f"{domain[:100]!r} is not a domain such as example.com"])
        if max(len(args.allowed_domains), len(args.blocked_domains)) > MAX_DOMAINS:
            raise BadInput(self.name, [f"At most {MAX_DOMAINS} domains can be given"])

    async def call(self, args: WebSearchArgs, ctx: ToolContext) -> ToolResult:
        sources, searcher = ctx[WebSources], ctx[WebSearcher]
        limit = ctx[Settings].web.max_searches
        data: WebSearchData = {
            "query": args.query,
            "results": [],
            "durationSeconds": 0.0,
            "searchCount": 0,
            "backend": searcher.name,
        }
        if sources.searches >= limit:
            text = (
                f"This session has used all of its {limit} searches, so nothing was searched. "
                "Go on with what you have, or fetch known pages with WebFetch."
            )
            data["results"].append(text)
            return ToolResult(text, data=data)
        sources.searches += 1
        allowed = [_normalize_domain(domain) for domain in args.allowed_domains]
        blocked = [_normalize_domain(domain) for domain in args.blocked_domains]
        started = time.monotonic()
        ctx.report(f"Searching with {searcher.name}")
        if searcher.name == "mcp":
            found = await _search_with_mcp(args.query, ctx)
        else:
            found = await searcher.search(args.query, allowed, blocked)
        hits = _filter(found, allowed, blocked)
        data["durationSeconds"] = round(time.monotonic() - started, 3)
        data["searchCount"] = 1
        data["results"].append({"tool_use_id": ctx.call_id, "content": list(map(_to_data, hits))})
        sources.add(
            *(
                WebSource(url=hit.url, title=hit.title, tool="WebSearch", query=args.query)
                for hit in hits
            )
        )
        return ToolResult(_format_hits(args, hits, len(found)), data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"WebSearch({quote_line(str(partial_input.get('query', '')))[:200]})"

    def show(self, args: WebSearchArgs, result: ToolResult) -> Display | None:
        if not result.ok:
            return None
        data: WebSearchData = result.data
        groups = [group for group in data["results"] if not isinstance(group, str)]
        found = [f"{hit['title']}  {hit['url']}" for one in groups for hit in one["content"]]
        return (Items(tuple(found)),)


async def _search_with_mcp(query: str, ctx: ToolContext) -> list[SearchHit]:
    """Ask the MCP tool that the settings name; it has its own permission."""
    from handaxe.web.search_backends import read_any

    tool = ctx[Settings].web.search_tool or ""
    result = await ctx.call(tool, {"query": query})
    if not result.ok:
        raise SearchFailed(tool, result.text.removesuffix("."))
    hits = read_any(result.data) or read_any(_read_json(result.text))
    if not hits and result.text.strip():
        raise SearchFailed(tool, "its answer has no list of objects with `url` and `title`")
    return hits


def _read_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _normalize_domain(domain: str) -> str:
    bare = re.sub(r"^[a-z]+://", "", domain.strip().lower()).partition("/")[0]
    return bare.removeprefix("*.").removesuffix(".")


def _filter(hits: list[SearchHit], allowed: list[str], blocked: list[str]) -> list[SearchHit]:
    """The hits that the call asked for, each address once; back ends do not all filter."""
    kept: dict[str, SearchHit] = {}
    for hit in hits:
        found = _read_address(hit.url)
        if found is None or _is_below(found.host, blocked):
            continue
        if not allowed or _is_below(found.host, allowed):
            kept.setdefault(found.url, msgspec.structs.replace(hit, url=found.url))
    return list(kept.values())[:MAX_HITS]


def _read_address(url: str) -> WebAddress | None:
    from handaxe.contract.faults import ToolFault
    from handaxe.web.address import parse_address

    try:
        return parse_address(url)
    except ToolFault:
        return None


def _is_below(host: str, domains: list[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _to_data(hit: SearchHit) -> HitData:
    data: HitData = {"title": hit.title, "url": hit.url}
    if hit.snippet:
        data["snippet"] = hit.snippet
    if hit.date:
        data["date"] = hit.date
    return data


def _format_hits(args: WebSearchArgs, hits: list[SearchHit], found: int) -> str:
    if not hits:
        why = " after the filter for domains" if found else ""
        return f"No results for {quote_line(args.query)!r}{why}."
    lines: list[str] = []
    for number, hit in enumerate(hits, 1):
        date = f" ({hit.date})" if hit.date else ""
        lines.append(f"{number}. [{quote_line(hit.title)}]({hit.url}){date}")
        if hit.snippet:
            lines.append(f"   {quote_line(hit.snippet)}")
    results = frame("search-results", *lines)
    asked = quote_line(args.query)
    return f"Results for {asked!r}:\n{results}\nName the pages you use as sources."
