import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.rules.grammar import (
    extract_host,
    is_domain_match,
    is_prefix_match,
    is_value_match,
    is_wildcard_match,
)


@given(st.text(alphabet="ab*", max_size=12), st.text(alphabet="ab", max_size=12))
def test_a_star_stands_for_any_characters(pattern, text):
    assert is_wildcard_match(pattern, text) is fnmatch.fnmatchcase(text, pattern)


@pytest.mark.timeout(10)
def test_many_stars_take_no_time():
    assert not is_wildcard_match("*a" * 2000 + "b", "a" * 20000)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("deploy", "deploy", True),
        ("deploy", "deploy now", False),
        ("deploy *", "deploy", True),
        ("deploy *", "deploy now", True),
        ("deploy *", "deployer", False),
        ("deploy:*", "deploy now", True),
        ("dep*", "deployer", True),
    ],
)
def test_a_star_after_a_blank_ends_at_a_word(pattern, text, expected):
    assert is_prefix_match(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("example.com", "example.com", True),
        ("example.com", "https://example.com/path?q#f", True),
        ("example.com", "HTTPS://Example.COM.:443/", True),
        ("example.com", "https://user:pw@example.com/", True),
        ("example.com", "https://example.com@evil.org/", False),
        ("example.com", "https://example.com.evil.org", False),
        ("example.com", "https://evil.org/example.com", False),
        ("example.com", "https://notexample.com", False),
        ("example.com", "https://a.example.com", False),
        ("*.example.com", "https://a.b.example.com", True),
        ("*.example.com", "https://example.com", False),
        ("*.example.com", "https://notexample.com", False),
        ("*", "https://anything.org", True),
        ("api-*.example.com", "https://api-1.example.com", True),
        ("api-*.example.com", "https://api-1.x.example.com", False),
        ("example.*", "https://example.co.uk", False),
        ("example.com", "https://example.com\\@evil.org/", False),
        ("example.com", "https://example.com\t.evil.org/", False),
        ("example.com", "https://exаmple.com/", False),
        ("[::1]", "http://[::1]:8080/", True),
        ("EXAMPLE.com.", "example.COM", True),
        ("example.com", "", False),
    ],
)
def test_a_domain_rule_looks_at_the_host_only(pattern, text, expected):
    assert is_domain_match(pattern, text) is expected


@given(st.text(max_size=50))
def test_a_host_is_plain_or_none(text):
    host = extract_host(text)
    assert host is None or re.fullmatch(r"[a-z0-9_.:\[\]-]+", host)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("true", True, True),
        ("true", "true", True),
        ("false", 0, False),
        ("0", 0, True),
        ("1.5", 1.5, True),
        ("null", None, True),
        ("op*", "opus", True),
        ("*", {"a": 1}, False),
        ("*", [1], False),
        ("nan", float("nan"), False),
    ],
)
def test_an_input_value_is_compared_as_it_is_written_in_json(pattern, value, expected):
    assert is_value_match(pattern, value) is expected


def test_a_number_too_long_to_print_fits_nothing():
    assert not is_value_match("*", 10**5000)
