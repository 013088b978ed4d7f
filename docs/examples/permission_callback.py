"""Answer permission questions yourself: one async function."""

import asyncio

from handaxe import Allow, Deny, PermissionRequest, Session


async def on_ask(request: PermissionRequest) -> Allow | Deny:
    print(f"{request.tool} asks: {request.reason}")
    if request.input["file_path"].endswith(".md"):
        return Allow("notes are fine")
    return Deny("Write to a .md file instead.")


async def main() -> None:
    async with Session(".", on_ask=on_ask) as session:
        for name in ("notes.md", "script.sh"):
            result = await session.call("Write", file_path=name, content="hello\n")
            print(f"{name}: {result.code or 'written'}: {result.text}")


asyncio.run(main())
