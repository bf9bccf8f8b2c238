"""Which settings are secret by their name or their form, whatever their value."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

_ENDINGS: Final = ("key", "token", "secret", "password")
_WHOLE: Final = frozenset({"authorization", "cookie"})
_CONTAINERS: Final = frozenset({"headers", "extra_headers", "credentials", "auth"})

MIN_LENGTH: Final = 8
_PLACEHOLDERS: Final = frozenset(
    {
        "", "changeme", "change-me", "change_me", "dummy", "dummykey", "empty", "example", "fake",
        "false", "key", "localhost", "no-key", "no_key", "none", "not-needed", "not_needed",
        "notneeded", "null", "password", "placeholder", "redacted", "secret", "sk-dummy",
        "sk-test", "test", "test-key", "test_key", "testing", "token", "true", "undefined",
        "unused", "your-api-key", "your_api_key",
    }
)  # fmt: skip


def is_recognisable(value: str) -> bool:
    """True where a secret can be told from ordinary text: 8 characters, no placeholder."""
    return len(value) >= MIN_LENGTH and value.strip().lower() not in _PLACEHOLDERS


def is_secret_name(name: str) -> bool:
    """True for `*key`, `*token`, `*secret`, `*password`, `authorization` and `cookie`."""
    lowered = name.lower()
    return lowered.endswith(_ENDINGS) or lowered in _WHOLE


def holds_secrets(name: str) -> bool:
    """True for mappings whose every value is secret: `headers`, `credentials`, `auth`, …"""
    return name.lower().replace("-", "_") in _CONTAINERS


def url_secrets(text: str) -> list[str]:
    """Give the user info and query values of a URL, as written and decoded; [] for others."""
    if "://" not in text:
        return []
    try:
        parts = urlsplit(text)
    except ValueError:
        return []
    found = []
    userinfo, at, _ = parts.netloc.rpartition("@")
    if at:
        found += [userinfo, *userinfo.split(":", 1)]
    found += [value for _, value in parse_qsl(parts.query, keep_blank_values=False)]
    found += [pair.partition("=")[2] or pair for pair in parts.query.split("&") if pair]
    found += [unquote(piece) for piece in found]
    return list(dict.fromkeys(piece for piece in found if piece))


def shown_url(text: str) -> str:
    """Give a URL without its user info and query values, for people to see."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "[redacted]"
    host = parts.netloc.rpartition("@")[2]
    query = "?…" if parts.query else ""
    return f"{parts.scheme}://{host}{parts.path}{query}" if host else "[redacted]"
