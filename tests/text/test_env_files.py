"""Which names stand for files that hold secrets."""

import pytest

from handaxe.text.secrets import can_name_env_file, is_env_file

ENV_FILES = [
    ".env",
    ".ENV",
    ".env.local",
    ".Env.Production",
    ".env.examples",
    ".env.example.local",
    ".\uff45nv",
    ".e\u200cnv",
]
OTHERS = [
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.local.example",
    ".ENV.Example",
    ".envrc",
    "env",
    "x.env",
    ".environment",
    "",
]


@pytest.mark.parametrize("name", ENV_FILES)
def test_env_files_hold_secrets(name):
    assert is_env_file(name)


@pytest.mark.parametrize("name", OTHERS)
def test_examples_and_other_names_hold_none(name):
    assert not is_env_file(name)


@pytest.mark.parametrize("name", ENV_FILES)
def test_an_env_file_among_many_paths_is_never_missed(name):
    paths = f"src/a.py\0sub/{name}\0b.py"

    assert can_name_env_file(paths)
    assert can_name_env_file(paths.encode())
    assert not can_name_env_file("src/a.py\0b.py")
