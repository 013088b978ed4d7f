"""Which hosts a list lets through."""

import pytest
from tests.expected_types import require

from handaxe.shell.sandbox.host_allowlist import (
    can_be_private,
    explain_refusal,
    find_pattern_problem,
    is_host_match,
    normalize_host,
)
from handaxe.text.ip_addresses import is_public

ALLOWED = ("example.com", "*.pypi.org", "localhost", "192.0.2.7")


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "EXAMPLE.com",
        "example.com.",
        "files.pypi.org",
        "a.b.pypi.org",
        "localhost",
        "192.0.2.7",
    ],
)
def test_listed_hosts_pass(host):
    assert explain_refusal(require(normalize_host(host)), ALLOWED, ()) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.com", "example.com.evil.com", "evilexample.com", "sub.example.com", "pypi.org", "evilpypi.org",
        "1.1.1.1", "2130706433", "0x7f.1", "0x7f000001", "127.1", "017700000001", "::1", "192.0.2.8",
    ],
)  # fmt: skip
def test_other_hosts_do_not(host):
    assert explain_refusal(require(normalize_host(host)), ALLOWED, ()) is not None


def test_a_star_lets_names_through_and_no_address():
    assert explain_refusal("anything.example", ("*",), ()) is None
    assert explain_refusal("127.0.0.1", ("*",), ()) is not None
    assert explain_refusal("2130706433", ("*",), ()) is not None


def test_denied_wins_over_allowed():
    assert explain_refusal("a.example.com", ("*",), ("*.example.com",)) is not None
    assert explain_refusal("example.com", ("example.com",), ("example.com",)) is not None


def test_an_empty_list_allows_nothing():
    assert explain_refusal("example.com", (), ()) is not None


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "a..b",
        "a b",
        "example.com\0.evil.com",
        "exa\nmple.com",
        "example.com/x",
        "a@b",
        "-x.com",
        "x" * 64,
        "a." * 130,
        "[::1",
        "::1%eth0:x",
    ],
)
def test_what_is_no_host_name_has_no_form(host):
    assert normalize_host(host) is None


def test_foreign_letters_are_compared_in_their_ascii_form():
    assert normalize_host("BÜCHER.example") == "xn--bcher-kva.example"
    assert is_host_match("bücher.example", "xn--bcher-kva.example")


@pytest.mark.parametrize(
    "pattern", ["", "*.", "a.*", "*x.com", "http://a.com", "a.com:80", "a b", "**.x.com"]
)
def test_wrong_patterns_are_told(pattern):
    assert find_pattern_problem(pattern) is not None


@pytest.mark.parametrize(
    "pattern", ["*", "a.com", "*.a.com", "localhost", "10.0.0.1", "bücher.example"]
)
def test_right_patterns_are_not(pattern):
    assert find_pattern_problem(pattern) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "::1", "::",
        "fe80::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "224.0.0.1", "ff02::1", "255.255.255.255", "nonsense",
    ],
)  # fmt: skip
def test_private_addresses_are_known_in_every_dress(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses_are_public(address):
    assert is_public(address)


def test_only_hosts_meant_to_be_private_may_be():
    listed = ("localhost", "example.com", "db.internal", "10.0.0.5", "*.corp")
    assert can_be_private("localhost", listed)
    assert can_be_private("db.internal", listed)
    assert can_be_private("10.0.0.5", listed)
    assert not can_be_private("example.com", listed)
    assert not can_be_private("x.corp", listed)
    assert not can_be_private("other", ("*",))
