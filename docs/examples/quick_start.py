import asyncio

from handaxe import Session


async def main() -> None:
    async with Session(".", permission_mode="acceptEdits") as session:
        await session.call("Write", file_path="hello.txt", content="Hello, world!\n")
        done = await session.call(
            "Edit", file_path="hello.txt", old_string="world", new_string="you"
        )
        print(done.text if done.ok else f"{done.code}: {done.text}")


asyncio.run(main())
