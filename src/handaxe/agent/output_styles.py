"""Output styles: built-in ones, and Markdown files of users."""

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
    """Whether it replaces the working rules instead of adding to them."""
    source: str = "built-in"


DEFAULT_STYLE = OutputStyle(name=DEFAULT, description="does the work and reports the result")


def list_builtin_styles() -> tuple[OutputStyle, ...]:
    """The built-in styles."""
    described = {
        "Proactive": "continues on its own, and asks only for information that it cannot find out",
        "Concise": "says as little as possible",
        "Explanatory": "explains its choices while it works",
        "Learning": "explains, and leaves small design decisions to you",
    }
    styles = [
        OutputStyle(name=name, description=text, text=load_prompt(f"style_{name.lower()}"))
        for name, text in described.items()
    ]
    return (DEFAULT_STYLE, *styles)


class OutputStyles:
    """All available styles; a problem with a file is reported and affects no other."""

    def __init__(
        self, directories: Callable[[], Sequence[Path]], last: Callable[[], Sequence[Path]] = tuple
    ) -> None:
        """`directories` are searched on demand; the first file of a name applies.

        Styles in `last` do not replace any other style, including built-in ones.
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
        """The style with that name in any case; the default one and a problem if there is none."""
        if name is None:
            return DEFAULT_STYLE
        style = self._styles.get(name.strip().casefold())
        if style is None:
            near = find_closest_name(name, self.names())
            hint = f" Did you mean {near!r}?" if near else f" Styles: {', '.join(self.names())}."
            self.problems.append(f"Unknown output style {name!r}.{hint}")
            return DEFAULT_STYLE
        return style

    def _read(self, path: Path) -> OutputStyle | None:
        try:
            with path.open(encoding="utf-8") as file:
                head, body = split_frontmatter(file.read(MAX_CHARS))
        except (OSError, UnicodeError, BadFrontmatter) as error:
            self.problems.append(f"{path} is not a valid output style: {error}")
            return None
        return OutputStyle(
            name=get_text(head, "name") or path.stem,
            description=get_text(head, "description"),
            text=body.strip(),
            is_whole=not parse_bool(head.get("keep-coding-instructions"), default=False),
            source=str(path),
        )


def find_project_style_dirs(directory: str) -> list[Path]:
    """The possible style directories of a project, from here up to the top of its repository."""
    here = Path(directory)
    above = [here, *here.parents]
    top = above.index(Path(find_top(directory) or directory))
    places = [
        place / folder / FOLDER for place in above[: top + 1] for folder in (".handaxe", ".claude")
    ]
    return filter_existing(places)


def filter_existing(places: Iterable[Path]) -> list[Path]:
    """The existing directories among these, each once."""
    return [place for place in dict.fromkeys(places) if place.is_dir()]
