"""The same tools for code that does not use asyncio."""

import handaxe

with handaxe.connect(".", permission_mode="acceptEdits") as tools:
    tools.call("Write", file_path="a.txt", content="one\ntwo\nthree\n")
    window = tools.call("Read", file_path="a.txt", offset=2, limit=1)
    print(window.text)
    first, second = tools.call_many(
        [("Read", {"file_path": "a.txt"}), ("Read", {"file_path": "b.txt"})]
    )
    print(first.ok, second.code)
