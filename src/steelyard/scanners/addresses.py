"""Hosts as people disguise them: what is this machine, what a metadata service, what is private."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

METADATA_NAMES: Final = frozenset(
    {
        "metadata.google.internal", "metadata", "metadata.goog", "metadata.azure.internal",
        "instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com",
    }
)  # fmt: skip
METADATA_ADDRESSES: Final = frozenset(
    ipaddress.ip_address(one)
    for one in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.169.253",
        "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23",
    )
)  # fmt: skip
_PRIVATE: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
                "fc00::/7", "fe80::/10")
)  # fmt: skip
_PART: Final = re.compile(r"0x[0-9a-f]{1,8}|\d{1,10}")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@lru_cache(maxsize=4096)
def address_of(host: str) -> Address | None:
    """Read an address in any form that clients take: dotted, decimal, hex, octal, mapped."""
    host = host.strip("[]").lower()[:64]
    found: Address | None
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        found = _loose(host)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def _loose(host: str) -> Address | None:
    """As `inet_aton` reads it: the last part fills what is left."""
    parts = host.split(".")
    if not 1 <= len(parts) <= 4 or not all(_PART.fullmatch(one) for one in parts):
        return None
    try:
        numbers = [
            int(one, 16) if one.startswith("0x") else int(one, 8 if one[:1] == "0" else 10)
            for one in parts
        ]
    except ValueError:
        return None
    *high, last = numbers
    if any(one > 255 for one in high) or last >= 256 ** (5 - len(parts)):
        return None
    value = last
    for place, one in enumerate(high):
        value += one << (8 * (3 - place))
    # A bare small number is a port or a count, never meant as a host.
    return ipaddress.IPv4Address(value) if len(parts) > 1 or value > 0xFFFFFF else None


def is_metadata(host: str) -> bool:
    """True for the metadata services of clouds and container platforms."""
    if host in METADATA_NAMES:
        return "." in host or host == "instance-data"
    address = address_of(host)
    if isinstance(address, ipaddress.IPv6Address) and address.sixtofour is not None:
        address = address.sixtofour
    return address in METADATA_ADDRESSES


def is_this_machine(host: str) -> bool:
    """True for loopback, for all addresses at once, and for what has no host."""
    if host in ("", "localhost", "::", "ip6-localhost") or host.endswith(".localhost"):
        return True
    address = address_of(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_near(host: str) -> bool:
    """True for this machine, private networks, and names without a dot: neighbours in compose."""
    if is_this_machine(host) or ("." not in host and ":" not in host):
        return True
    return _is_of_private_network(host)


def is_private(host: str) -> bool:
    """True for addresses of private networks other than this machine's own."""
    return _is_of_private_network(host) and not is_this_machine(host)


def _is_of_private_network(host: str) -> bool:
    # `is_private` counts addresses set apart for documentation too, which are anybody's.
    address = address_of(host)
    return address is not None and any(
        address.version == one.version and address in one for one in _PRIVATE
    )
