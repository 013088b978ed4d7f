"""How many of something there are, in words for people and models."""


def format_count(number: int, thing: str) -> str:
    """`1 file`, `2,000 files`, `3 matches`, `1 entry`, `2 entries`; of a phrase, its last word."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith(("ch", "sh", "s", "x")):
        return f"{number:,} {thing}es"
    if thing.endswith("y") and not thing.endswith(("ay", "ey", "oy", "uy")):
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}s"
