"""A base URL taken apart, and what of settings goes into a request's head. Pure but for proxies."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from steelyard.config.errors import BadInput, Where
from steelyard.models.mock.served import ServedMock, is_mock_url, parse_mock_url

RESERVED: Final = "/?#[]@!$&'()*+,;=:%"
"""Characters of a URL that are sent as they are; what is quoted already stays so."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What a header may be called (RFC 9110, 5.6.2)."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL, taken apart."""

    parts: SplitResult
    mock: ServedMock | None = None
    """What to serve ourselves, for `mock-model://`; the parts are then those of loopback."""

    @property
    def origin(self) -> str:
        """Scheme, host and port: what messages may show."""
        host = self.parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        port = "" if self.parts.port is None else f":{self.parts.port}"
        return f"{self.parts.scheme}://{host}{port}"

    @property
    def is_local(self) -> bool:
        """True for an address of this machine, which no proxy may see."""
        host = (self.parts.hostname or "").rstrip(".")
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def target(self, path: str) -> str:
        """Give path and query of a request below the base URL.

        A version that both end and begin with is written once: `…/v1` and `/v1/messages`.
        """
        base = self.parts.path.rstrip("/")
        if base.endswith("/v1") and path.startswith("/v1/"):
            base = base.removesuffix("/v1")
        whole = f"{base}{path}" + (f"?{self.parts.query}" if self.parts.query else "")
        return quote(whole, safe=RESERVED)

    @property
    def basic_auth(self) -> str | None:
        """The header that carries the URL's user info."""
        if self.parts.username is None:
            return None
        pair = f"{unquote(self.parts.username)}:{unquote(self.parts.password or '')}"
        return "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def parse_address(base_url: str) -> Address:
    """Read a base URL.

    Raises:
        BadInput: it is no http or https URL with a host.
    """
    if is_mock_url(base_url):
        return Address(urlsplit("http://localhost/v1"), parse_mock_url(base_url))
    try:
        parts = urlsplit(base_url)
        is_sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_sound = False
    if not is_sound or any(c.isspace() or ord(c) < 32 for c in base_url):
        # Not quoted: it may carry a secret.
        raise BadInput(
            "not an http or https URL with a host",
            where=Where(field="model.base_url"),
            remedy="write it as https://host/v1",
        )
    return Address(parts)


def proxy_url(address: Address) -> str | None:
    """Give the proxy that the environment names for an address, None for none."""
    from urllib.request import getproxies, proxy_bypass

    if address.is_local or proxy_bypass(address.parts.hostname or ""):
        return None
    proxies = getproxies()
    found = proxies.get(address.parts.scheme) or proxies.get("all")
    if not found:
        return None
    return found if "://" in found else f"http://{found}"


def header_pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encode headers for the wire.

    Raises:
        BadInput: one cannot stand in a header; its value is not quoted.
    """
    pairs = []
    for name, value in headers.items():
        try:
            if any(c in value for c in "\r\n\0") or not _TOKEN.fullmatch(name):
                raise ValueError
            pairs.append((name.encode("ascii"), value.strip().encode("latin-1")))
        except ValueError:
            raise BadInput(
                f"the header {name!r} holds a character that HTTP does not allow",
                where=Where(field="model"),
                remedy="check the key or model.extra_headers for line ends and stray characters",
            ) from None
    return pairs
