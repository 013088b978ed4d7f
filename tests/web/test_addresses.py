"""Whose an address is: a generated table over every way to wrap an IPv4 address."""

import ipaddress

import pytest

from handaxe.text.ip_addresses import classify_address, is_public, is_unsafe_address

pytestmark = pytest.mark.proves("S13")

PLAIN = {
    "public": ["8.8.8.8", "1.1.1.1", "93.184.215.14", "140.82.114.4", "11.0.0.1", "172.32.0.1"],
    "private": [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.168.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "0.1.2.3",
        "192.0.0.170",
        "192.0.2.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "240.0.0.1",
    ],
    "loopback": ["127.0.0.1", "127.0.0.2", "127.255.255.255"],
    "unsafe": [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.0.1",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
    ],
}
V6 = {
    "public": ["2001:4860:4860::8888", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"],
    "private": ["fc00::1", "fdff:ffff::1", "fec0::1", "100::1", "2001:db8::1"],
    "loopback": ["::1"],
    "unsafe": [
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
        "fd00:ec2::254%251",
        "not an address",
        "",
        "1.2.3",
        "0x7f.1",
    ],
}


def wrap(address: str) -> dict[str, str]:
    """The forms of IPv6 that lead to an IPv4 address."""
    number = int(ipaddress.IPv4Address(address))
    high, low = number >> 16, number & 0xFFFF
    inverted = number ^ 0xFFFFFFFF
    first, second, third, fourth = ipaddress.IPv4Address(address).packed
    return {
        "mapped": f"::ffff:{address}",
        "6to4": f"2002:{high:x}:{low:x}::1",
        "nat64": f"64:ff9b::{address}",
        "local nat64": f"64:ff9b:1::{address}",
        "local nat64 of 48 bits": f"64:ff9b:1:{first << 8 | second:x}:{third:x}:{fourth << 8:x}::",
        "isatap": f"2606:4700::5efe:{address}",
        "isatap of a private one": f"2606:4700::200:5efe:{address}",
        "teredo": f"2001:0:808:808:0:0:{inverted >> 16:x}:{inverted & 0xFFFF:x}",
    }


TABLE = [
    *[(one, scope) for group in (PLAIN, V6) for scope, found in group.items() for one in found],
    *[
        (wrapped, scope if scope != "loopback" else "near")
        for scope, found in PLAIN.items()
        for one in found
        for wrapped in wrap(one).values()
    ],
]


def test_there_are_enough_rows():
    assert len(TABLE) >= 260


@pytest.mark.parametrize(("address", "scope"), TABLE)
def test_an_address_is_whose_it_is_however_it_is_wrapped(address: str, scope: str):
    found = classify_address(address)
    if scope == "public":
        # A local NAT64 prefix and Teredo are no public networks, whatever they lead to.
        assert found == "public" or address.startswith(("64:ff9b:1:", "2001:0:"))
    elif scope == "near":
        assert found in {"loopback", "private", "unsafe"}
    elif scope == "private":
        # Bytes that some prefix would read as a group of machines are refused, not allowed.
        assert found in {"private", "loopback", "unsafe"}
    else:
        assert found == scope
    assert is_public(address) is (found == "public")
    assert is_unsafe_address(address) is (found == "unsafe")
