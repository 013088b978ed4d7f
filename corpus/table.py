"""Writes the built-in table of edit formats from `models.toml`: `python corpus/table.py`.

A model that was measured comes first, by its own name: the format in which most tasks landed, and
of equals the one with the fewest tokens. It needs `MIN_TASKS` tasks in every format, at least one
of them landed, and no wrong place; otherwise the measurement is kept as a record and decides
nothing. Then come the names that makers of models document.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE = HERE.parent / "src/handaxe/catalog/edit_formats.json"
FORMATS = ("replace", "multi", "patch", "lines")
MIN_TASKS = 20


def known() -> dict[str, Any]:
    """What is known of models."""
    return tomllib.loads((HERE / "models.toml").read_text("utf-8"))


def best(measured: dict[str, Any]) -> str | None:
    """The format that a measurement speaks for, or None where it says too little."""
    rows: dict[str, dict[str, Any]] = measured["formats"]
    if set(rows) != set(FORMATS) or min(row["tasks"] for row in rows.values()) < MIN_TASKS:
        return None
    fit = [name for name in FORMATS if rows[name]["landed"] and not rows[name]["wrong_place"]]
    if not fit:
        return None

    def merit(name: str) -> tuple[float, float]:
        row = rows[name]
        return -row["landed"] / row["tasks"], row["tokens_in"] + row["tokens_out"]

    return min(fit, key=merit)


def profiles(facts: dict[str, Any]) -> list[dict[str, str]]:
    """The entries of the table, in the order they are asked."""
    entries: list[dict[str, str]] = []
    for measured in facts.get("measured", ()):
        if (name := best(measured)) is not None:
            row = measured["formats"][name]
            source = (
                f"measured: {row['landed']} of {row['tasks']} tasks landed, most of all formats"
            )
            # Brackets and stars in a name are letters there, and a pattern here.
            literal = "".join(f"[{c}]" if c in "*?[" else c for c in measured["model"].casefold())
            entries.append({"pattern": literal, "format": name, "source": source})
    for documented in facts.get("documented", ()):
        entries += [
            {"pattern": p, "format": documented["format"], "source": documented["source"]}
            for p in documented["patterns"]
        ]
    return entries


def written(facts: dict[str, Any]) -> str:
    """The table as it is stored."""
    table = {"written_by": "corpus/table.py from corpus/models.toml", "profiles": profiles(facts)}
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TABLE.write_text(written(known()), encoding="utf-8")
    sys.stdout.write(f"{TABLE}\n")
