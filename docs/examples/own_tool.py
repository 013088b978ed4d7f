"""A tool of your own with validation, permission, progress, state and a table."""

from typing import Any

from handaxe import Effects, State, ToolContext, ToolFault, ToolResult, connect, tool
from handaxe.content import Table


class Cart(State):
    rows: list[tuple[str, str]] = []


async def check(args: Any, _: ToolContext) -> None:
    if args.count < 1:
        raise ToolFault("Order at least one.")


@tool(effects=Effects.external("shop", writes=True), validate=check)
async def order(what: str, count: int, cart: Cart, ctx: ToolContext) -> ToolResult:
    """Order something in the shop."""
    ctx.progress({"what": what, "sent": count})
    cart.rows.append((what, str(count)))
    table = Table(("what", "count"), tuple(cart.rows))
    return ToolResult(f"{len(cart.rows)} in the cart", display=(table,))


with connect(".", tools=[order], allow=["order"]) as session:
    print(session.call("order", what="tea", count=2).display)
