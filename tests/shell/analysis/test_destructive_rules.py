"""An allow rule allows: destructive forms inside the project, but what nobody can take back by name only."""

import pytest
from reference import decision, rules

from handaxe.session.permission_state import Mode
from handaxe.shell.analysis import PathVerdict, analyze, decide


def verdict(command, *allow, mode: Mode = "default", ask_irreversible=True):
    found = decide(
        analyze(command, "/repo", "/home/dev"),
        rules=rules(allow=allow),
        mode=mode,
        path_verdict=lambda path, access: PathVerdict("allow"),
        ask_irreversible=ask_irreversible,
    )
    return found.verdict


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize(
    ("command", "rule", "expected"),
    [
        ("git reset --hard", "Bash(git:*)", "allow"),
        ("git reset --hard", "Bash(*)", "allow"),
        ("git reset --hard", "Bash", "allow"),
        ("git reset --hard", "Bash(git reset --hard)", "allow"),
        ("git clean -fdx", "Bash(git *)", "allow"),
        ("git checkout -- .", "Bash(git checkout:*)", "allow"),
        ("rm -rf build", "Bash(rm:*)", "allow"),
        ("rm -rf build", "Bash", "allow"),
        ("find . -name '*.pyc' -delete", "Bash", "allow"),
        ("find . -name '*.pyc' -delete", "Bash(find:*)", "ask"),
        ("chmod -R 755 src", "Bash(chmod:*)", "allow"),
        ("chmod -R 755 /srv/x", "Bash(chmod:*)", "ask"),
        ("rm -rf build", "Bash(ls:*)", "ask"),
        ("npm test", "Bash(npm:*)", "allow"),
    ],
)
def test_a_rule_covers_destructive_forms_inside_the_working_directories(command, rule, expected):
    assert verdict(command, rule) == expected


LASTING = [
    "git push --force", "git push -f", "git push origin +main", "git push origin :old",
    "git push --delete origin old", "git push -d origin old", "git push --force-with-lease",
    "git push --mirror", "git -C src push --force", "git push origin main --forc",
    "docker system prune -f", "docker volume rm data", "docker container prune", "kubectl delete pod a",
    "kubectl -n x delete pod a", "terraform destroy", "aws s3 rm s3://b --recursive", "aws s3 rb s3://b",
    "aws ec2 terminate-instances --instance-ids i", "gcloud compute instances delete a",
    "az group delete -n a", "mkfs.ext4 /dev/sda1", "dd if=a of=/dev/sda",
    "helm uninstall a", "podman volume prune", "timeout 5 git push --force",
]  # fmt: skip


@pytest.mark.parametrize("command", LASTING)
def test_what_nobody_can_take_back_has_to_be_named(command):
    program = command.split()[0]
    assert verdict(command, "Bash") == "ask"
    assert verdict(command, f"Bash({program}:*)") == "ask"
    assert verdict(command, f"Bash({command})") == "allow"
    assert verdict(command, "Bash", ask_irreversible=False) == "allow"
    assert verdict(command, mode="bypassPermissions") == "allow"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git push --force origin main", "Bash(git push --force:*)"),
        ("git push -f", "Bash(git push -f:*)"),
        ("kubectl delete pod a", "Bash(kubectl delete:*)"),
        ("docker system prune -f", "Bash(docker system prune:*)"),
    ],
)
def test_a_rule_that_names_the_form_covers_it(command, rule):
    assert verdict(command, rule) == "allow"
    assert verdict(command, rule, "Bash") == "allow"


@pytest.mark.parametrize(
    "command",
    ["rm -rf /", "rm -rf ~", "rm -rf $HOME", "rm -rf /etc", "rm -rf .", "rm -rf /repo", "rm -rf .git",
     "rm -rf sub/.git", "rm -rf ./.git/", "rm -r /usr/lib", "sudo rm -rf /", "rm -rf ../repo"],
)  # fmt: skip
def test_removing_the_system_the_home_the_project_or_a_repository_always_asks(command):
    assert verdict(command, "Bash") == "ask"
    assert verdict(command, f"Bash({command})") == "ask"
    assert verdict(command, mode="bypassPermissions") == "ask"
    assert decision(command, "dontAsk").verdict == "deny"
