"""What an address means is read once; what is judged is what is connected to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.faults.web import BadAddress
from handaxe.net.pinned_http import make_request
from handaxe.web.address import convert_to_https, parse_address

pytestmark = pytest.mark.proves("S13", "BT-10")


@pytest.mark.parametrize(
    ("url", "host", "canonical"),
    [
        ("HTTP://ExAmple.COM./a b?x#y", "example.com", "http://example.com/a%20b?x"),
        ("https://example.com:443/", "example.com", "https://example.com/"),
        ("http://example.com\\@evil.org/", "example.com", "http://example.com/@evil.org/"),
        ("http://0x7f.1/", "127.0.0.1", "http://127.0.0.1/"),
        ("http://2130706433/", "127.0.0.1", "http://127.0.0.1/"),
        ("http://017700000001/", "127.0.0.1", "http://127.0.0.1/"),
        ("http://192.0x00A80001/", "192.168.0.1", "http://192.168.0.1/"),
        ("http://[::ffff:127.0.0.1]/", "[::ffff:7f00:1]", "http://[::ffff:7f00:1]/"),
        ("http://exa%6dple.com/", "example.com", "http://example.com/"),
        ("http://ＥＸＡＭＰＬＥ。ｃｏｍ/", "example.com", "http://example.com/"),
        ("http://bücher.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example/"),
        ("http://user:pw@example.com/x", "example.com", "http://example.com/x"),
        ("http://a@b@c/", "c", "http://c/"),
        ("http:example.com", "example.com", "http://example.com/"),
        ("  http://example.com\t\n", "example.com", "http://example.com/"),
    ],
)
def test_an_address_is_read_as_a_browser_reads_it(url: str, host: str, canonical: str):
    found = parse_address(url)
    assert (found.host, found.url) == (host, canonical)


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://x/", "file:///etc/passwd", "javascript:1", "http://", "http://a b/",
     "http://x:0/", "http://x:99999/", "http://a..", "http://[::1", "http://[fe80::1%25eth0]/",
     "http://1.2.3.4.5/", "http://256.1.1.1/", "data:text/html,x", f"http://x/{'a' * 9000}"],
)  # fmt: skip
def test_what_cannot_be_fetched_is_refused(url: str):
    with pytest.raises(BadAddress):
        parse_address(url)


def test_credentials_leave_the_address_and_stay_with_it():
    found = parse_address("http://us%40er:p%3Aw@example.com/")
    assert (found.credentials, "us" in found.url) == ("us@er:p:w", False)
    assert convert_to_https(found).credentials == found.credentials
    assert convert_to_https(found).url == "https://example.com/"


@given(st.text(st.sampled_from("ab.:/@\\?#[]%0x1727 \té。-_"), max_size=25))
def test_whatever_is_read_goes_to_the_host_that_is_judged(rest: str):
    try:
        found = parse_address(f"http://{rest}")
    except BadAddress:
        return
    assert parse_address(found.url) == parse_address(found.url)
    assert parse_address(found.url).host == found.host
    request = make_request(found, "127.0.0.1", method="GET", headers={}, body=b"", timeout_s=1)
    assert request.url.host == "127.0.0.1"
    assert request.headers["host"].removesuffix(f":{found.port}") == found.host
