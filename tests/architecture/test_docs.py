"""The documentation says what the code says, and its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.architecture.test_texts import read_phrases

from handaxe import Session

HOUSE = Path(__file__).parent.parent.parent
PAGES = sorted([*HOUSE.glob("*.md"), *(HOUSE / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)#:]+?)(#[^)]*)?\)")
SOURCE = HOUSE / "src" / "handaxe"
DESIGN_NOTES = sorted((HOUSE / "docs" / "design").glob("*.md"))
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
_GENERATED = re.compile(r"<!-- generated.*?<!-- end", re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_SECTION_LINK = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
ADRS = sorted((HOUSE / "docs" / "adr").glob("*.md"))


def name_of(path: Path) -> str:
    return str(path.relative_to(HOUSE))


def test_generated_pages_are_fresh():
    command = [sys.executable, str(HOUSE / "docs" / "generate.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}"


def test_the_picture_shows_what_the_tour_shows():
    command = [sys.executable, str(HOUSE / "docs" / "images" / "make_tour_svg.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path):
    for target, _ in _LINK.findall(_FENCED.sub("", page.read_text())):
        assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_section_leads_to_a_heading(page: Path):
    for target, section in _SECTION_LINK.findall(_FENCED.sub("", page.read_text())):
        found = page.parent / target if target else page
        assert section in list_sections(found), f"{name_of(page)} links to {target}#{section}"


def list_sections(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {words.replace(" ", "-") for words in kept}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_a_page_names_exists(page: Path):
    named = re.findall(r"`((?:src|docs|tests|scripts|bench|corpus)/[\w./-]+)`", page.read_text())
    missing = [name for name in named if not (HOUSE / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", DESIGN_NOTES, ids=name_of)
def test_every_module_that_a_design_note_names_exists(page: Path):
    places = (HOUSE, SOURCE, SOURCE / page.stem)
    named = re.findall(r"`([\w/]+\.(?:py|toml))`", page.read_text())
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    known = {module.name for module in SOURCE.rglob("*.*")}
    assert [name for name in missing if "/" in name or name not in known] == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_pages_are_in_plain_english(page: Path):
    prose = _GENERATED.sub("", _FENCED.sub("", page.read_text()))
    words = " ".join(_CODE.sub("X", prose).lower().split())
    found = [
        f"{match[0]!r}; instead: {instead}"
        for pattern, instead in read_phrases()
        for match in pattern.finditer(words)
    ]
    assert found == []


@pytest.mark.parametrize("page", ADRS, ids=lambda path: path.stem)
def test_every_decision_has_its_three_parts(page: Path):
    text = page.read_text()
    assert re.match(r"# \d{4}\. .+\n", text)
    assert text.startswith(f"# {page.stem[:4]}. ")
    for part in ("## Context", "## Decision", "## Consequences"):
        assert part in text
    assert page.name in (HOUSE / "docs" / "index.md").read_text()


@pytest.mark.parametrize("folder", ["tutorial", "guides", "design"])
def test_the_index_lists_every_page(folder: str):
    index = (HOUSE / "docs" / "index.md").read_text()
    pages = [page.name for page in (HOUSE / "docs" / folder).glob("*.md")]
    assert [name for name in pages if f"({folder}/{name})" not in index] == []


def test_guides_name_every_public_member_of_a_session(tmp_path):
    guides = "".join(page.read_text() for page in (HOUSE / "docs" / "guides").glob("*.md"))
    documented = set(re.findall(r"session\.(\w+)", guides))
    members = {name for name in dir(Session(tmp_path)) if not name.startswith("_")}
    assert sorted(members - documented) == [], "document it, or serve it by `get_parts`"


def test_the_page_for_agents_is_short():
    assert len((HOUSE / "AGENTS.md").read_text().splitlines()) < 60


@pytest.mark.parametrize("script", ["scripts/check", "scripts/tour", "scripts/with-uv", ".ci/run"])
def test_scripts_can_be_started(script: str):
    assert os.access(HOUSE / script, os.X_OK)


def test_ci_runs_the_test_command_of_the_readme():
    command = (HOUSE / ".ci" / "run").read_text().splitlines()[-1]
    assert f"\n{command}\n" in (HOUSE / "README.md").read_text()
