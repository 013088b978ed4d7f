"""How an agent talks: built-in styles, and those that people write as Markdown files."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from handaxe.agent.system_prompt import load_prompt
from handaxe.git.discovery import find_top
from handaxe.text.escape import find_closest_name
from handaxe.text.frontmatter import BadFrontmatter, get_text, parse_bool, split_frontmatter

DEFAULT = "default"
FOLDER = "output-styles"
MAX_CHARS = 1 << 20


class OutputStyle(msgspec.Struct, frozen=True, kw_only=True):
    """One style."""

    name: str
    description: str = ""
    text: str = ""
    is_whole: bool = False
    """Whether it stands for the rules on how to work, instead of being added to them."""
    source: str = "built-in"


DEFAULT_STYLE = OutputStyle(name=DEFAULT, description="does the work and reports the result")


def list_builtin_styles() -> tuple[OutputStyle, ...]:
    """The built-in styles."""
    described = {
        "Proactive": "acts on its own, and asks only what you alone can know",
        "Concise": "says as little as possible",
        "Explanatory": "explains its choices while it works",
        "Learning": "explains, and leaves small pieces of design to you",
    }
    styles = [
        OutputStyle(name=name, description=text, text=load_prompt(f"style_{name.lower()}"))
        for name, text in described.items()
    ]
    return (DEFAULT_STYLE, *styles)


class OutputStyles:
    """All styles that count here; what is wrong with a file is said and stops nothing else."""

    def __init__(
        self, directories: Callable[[], Sequence[Path]], last: Callable[[], Sequence[Path]] = tuple
    ) -> None:
        """`directories` are searched when a style is wanted; the first file of a name counts.

        Styles in `last` do not take the place of any other, a built-in one included.
        """
        self._directories = directories
        self._last = last
        self.problems: list[str] = []

    @cached_property
    def _styles(self) -> dict[str, OutputStyle]:
        found: dict[str, OutputStyle] = {}
        first, last = self._files(self._directories()), self._files(self._last())
        for style in (*first, *list_builtin_styles(), *last):
            found.setdefault(style.name.casefold(), style)
        return found

    def _files(self, directories: Sequence[Path]) -> list[OutputStyle]:
        paths = (path for place in directories for path in sorted(place.glob("*.md")))
        return [style for path in paths if (style := self._read(path)) is not None]

    def names(self) -> list[str]:
        """Every style, by name."""
        return [style.name for _, style in sorted(self._styles.items())]

    def find(self, name: str | None) -> OutputStyle:
        """The style of that name in any case; the default style and a problem if it is missing."""
        if name is None:
            return DEFAULT_STYLE
        style = self._styles.get(name.strip().casefold())
        if style is None:
            near = find_closest_name(name, self.names())
            hint = f" Did you mean {near!r}?" if near else f" Styles: {', '.join(self.names())}."
            self.problems.append(f"There is no output style {name!r}.{hint}")
            return DEFAULT_STYLE
        return style

    def _read(self, path: Path) -> OutputStyle | None:
        try:
            with path.open(encoding="utf-8") as file:
                head, body = split_frontmatter(file.read(MAX_CHARS))
        except (OSError, UnicodeError, BadFrontmatter) as error:
            self.problems.append(f"{path} is not an output style: {error}")
            return None
        return OutputStyle(
            name=get_text(head, "name") or path.stem,
            description=get_text(head, "description"),
            text=body.strip(),
            is_whole=not parse_bool(head.get("keep-coding-instructions"), default=False),
            source=str(path),
        )


def find_project_style_dirs(directory: str) -> list[Path]:
    """Where a project's styles may lie, from here up to the top of its repository."""
    here = Path(directory)
    above = [here, *here.parents]
    top = above.index(Path(find_top(directory) or directory))
    places = [
        place / folder / FOLDER for place in above[: top + 1] for folder in (".handaxe", ".claude")
    ]
    return filter_existing(places)


def filter_existing(places: Iterable[Path]) -> list[Path]:
    """The directories among these that exist, each once."""
    return [place for place in dict.fromkeys(places) if place.is_dir()]
