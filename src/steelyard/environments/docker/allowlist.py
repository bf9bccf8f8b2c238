"""Which hosts a session may reach, and at which addresses. Pure.

Names alone: a literal address is refused unless it is itself on the list. A name that resolves to a
private address is refused too, unless it was written out: else whoever controls a name below a
wildcard could point it at the host's own network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, replace

Range = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Names as people write them: `api.example.com`, or `*.example.com` for all below it.

    Ranges of addresses as well, `10.1.0.0/16`: they allow addresses, no name.
    """

    names: frozenset[str]
    suffixes: tuple[str, ...]

    ranges: tuple[Range, ...] = ()
    is_everything: bool = False
    """Any name; private addresses only where they are written out."""

    @classmethod
    def everything(cls, hosts: Iterable[str] = ()) -> Allowlist:
        """Allow every public host, and these.

        Raises:
            ValueError: one of these is no name.
        """
        return replace(cls.of(hosts), is_everything=True)

    @classmethod
    def of(cls, hosts: Iterable[str]) -> Allowlist:
        """Read names.

        Raises:
            ValueError: one is no name, or a wildcard that stands elsewhere than in front.
        """
        names, suffixes, ranges = set(), [], []
        for host in hosts:
            address, slash, _ = host.partition("/")
            if slash and _is_literal(address):
                ranges.append(_range(host))
                continue
            name = normal(host.removeprefix("*."))
            if name is None or "*" in name:
                raise ValueError(f"{host!r} is no name of a host (write a.example, or *.example)")
            if host.startswith("*."):
                suffixes.append(f".{name}")
            else:
                names.add(name)
        return cls(frozenset(names), tuple(suffixes), tuple(ranges))

    def allows(self, host: str) -> bool:
        """True where a host, as a program writes it, may be reached."""
        name = normal(host)
        if name is None:
            return False
        return (
            self.is_everything
            or name in self.names
            or self._is_in_range(name)
            or (not _is_address(name) and any(name.endswith(suffix) for suffix in self.suffixes))
        )

    def allows_address(self, host: str, address: str) -> bool:
        """True where an allowed host may be reached at what it resolved to."""
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None) or found
        if mapped.is_multicast or mapped.is_unspecified:
            return False
        if bool(mapped.is_global) or normal(host) in self.names:
            return True
        return any(mapped in one for one in self.ranges)

    def _is_in_range(self, name: str) -> bool:
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return any(address in one for one in self.ranges)


def _is_literal(text: str) -> bool:
    return text.count(":") > 1 or text.replace(".", "").isdigit()


def _range(text: str) -> Range:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no range of addresses (write 10.1.0.0/16)") from error


def normal(host: str) -> str | None:
    """Give a host's name in one form; None where it is none."""
    try:
        name = host.strip("[]").rstrip(".").encode("ascii").decode().lower()
    except UnicodeEncodeError:
        return None
    fit = all(char.isalnum() or char in "-._:" for char in name)
    return name if name and fit and len(name) <= 253 else None


def _is_address(name: str) -> bool:
    # Everything that some resolver takes for an address: 1.2.3.4, 0x7f.1, 2130706433, ::1.
    if ":" in name:
        return True
    last = name.rpartition(".")[2]
    return last.isdigit() or last.startswith("0x")
