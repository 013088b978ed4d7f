"""Arguments and commands in the text of a skill."""

import pytest

from handaxe.skills.listing import fill_placeholders, find_commands, insert_outputs

VARIABLES = {"CLAUDE_SKILL_DIR": "/skills/x"}


@pytest.mark.parametrize(
    ("body", "arguments", "filled"),
    [
        ("Do $ARGUMENTS now", "a b", "Do a b now"),
        ("$0 then $1", "one 'two words'", "one then two words"),
        ("$ARGUMENTS[1]!", "a b", "b!"),
        ("$2 stays", "a", "$2 stays"),
        ("Say $name and $other", "Ann", "Say Ann and "),
        ("Costs \\$1 and $1", "a b", "Costs $1 and b"),
        ("In ${CLAUDE_SKILL_DIR}/x ${UNKNOWN}", "", "In /skills/x/x ${UNKNOWN}"),
        ("No place", "a b", "No place\n\nARGUMENTS: a b\n"),
        ("No place, no arguments", "", "No place, no arguments"),
        ("$PATH stays", "", "$PATH stays"),
        ("$0", "it's", "it's"),
        ("$0", "$1 !`rm -rf x`", "$1"),
    ],
)
def test_arguments_find_their_places(body, arguments, filled):
    assert (
        fill_placeholders(body, arguments, names=("name", "other"), variables=VARIABLES) == filled
    )


def test_commands_are_found_in_lines_and_blocks():
    body = "Status: !`git status`\n\n```!\ngit log\n```\nNot \\!`this` nor `that`, again !`git status`\n"
    assert find_commands(body) == ["git status", "git log"]
    told = insert_outputs(body, {"git status": "clean", "git log": "one"})
    assert told == "Status: clean\n\none\nNot \\!`this` nor `that`, again clean\n"
