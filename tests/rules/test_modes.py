import pytest

from handaxe.rules.modes import list_mode_names, parse_mode


@pytest.mark.parametrize("name", list_mode_names())
def test_every_mode_can_be_given_by_name(name):
    assert parse_mode(name) == ("default" if name == "manual" else name)


@pytest.mark.parametrize("name", ["", "Default", "accept_edits", "yolo"])
def test_other_names_are_no_mode(name):
    assert parse_mode(name) is None
