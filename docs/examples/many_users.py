"""A service with two users who cannot see each other."""

import asyncio
from pathlib import Path

from handaxe import Session


def open_session(user: str) -> Session:
    """A session of one user; everything in it is theirs alone."""
    root = Path("users", user)
    root.mkdir(parents=True, exist_ok=True)
    home, env = Path("data", user), {"API_TOKEN": f"token-of-{user}"}
    return Session(
        root, profile="many-users", home=home, env=env, permission_mode="acceptEdits"
    )  # fmt: skip


async def main() -> None:
    async with open_session("ada") as ada, open_session("bob") as bob:
        await ada.call("Write", file_path="secret.txt", content="Ada's secret\n")
        theirs = await bob.call("Read", file_path="../ada/secret.txt")
        print(f"Bob reads Ada's file: {theirs.code}")
        undone = await bob.undo()
        print(f"Bob undoes Ada's change: {undone.code}")
        print((await ada.call("Read", file_path="secret.txt")).text)


asyncio.run(main())
