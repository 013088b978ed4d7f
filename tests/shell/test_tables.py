"""The data files of programs, as they are read."""

import tomllib
from pathlib import Path

import pytest

import handaxe.shell
from handaxe.shell.tables import load_toml

FILES = sorted((Path(handaxe.shell.__file__).parent / "programs").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_short_reader_finds_in_every_data_file_what_a_whole_toml_parser_finds(path):
    assert load_toml(path.name) == tomllib.loads(path.read_text("utf-8"))


def test_there_are_data_files():
    assert {path.stem for path in FILES} >= {"files", "git", "runners", "destructive"}
