"""Proxies, certificates and keys, as the environment's variables name them. No connection is made.

Keys are spoken of by name; no value of any variable is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from steelyard.doctor.finding import Finding, State, works

PROXY_NAMES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
CERTIFICATE_NAMES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
KEY_NAMES: Final = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
)
_SCHEMES: Final = frozenset({"http", "https", "socks5", "socks5h"})


def examine_proxies(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Judge the proxy variables, in upper and lower case."""
    named = [
        (name, value)
        for upper in PROXY_NAMES
        for name in (upper, upper.lower())
        if (value := variables.get(name))
    ]
    if not named:
        yield works("proxies", "none named: endpoints are reached directly")
        return
    bad = [name for name, value in named if not _is_proxy(value)]
    for name in bad:
        yield Finding(
            "proxies",
            State.BROKEN,
            f"{name} is no address of a proxy",
            f"`export {name}=http://HOST:PORT`, or `unset {name}`",
        )
    if not bad:
        names = ", ".join(name for name, _ in named)
        yield works("proxies", f"{names}; addresses of this machine go past them")


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        return parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def examine_certificates(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Judge where certificates to trust are taken from."""
    wrong = False
    for name in CERTIFICATE_NAMES:
        value = variables.get(name)
        if value is None:
            continue
        path = Path(value)
        is_there = path.is_file() if name == "SSL_CERT_FILE" else path.is_dir()
        if not is_there:
            wrong = True
            kind = "file" if name == "SSL_CERT_FILE" else "folder"
            yield Finding(
                "certificates",
                State.BROKEN,
                f"{name} names {value}, which is no {kind}",
                f"`unset {name}`, or point it to your certificates",
            )
    if not wrong:
        yield works("certificates", "the system's, or what SSL_CERT_FILE and SSL_CERT_DIR name")


def examine_keys(variables: Mapping[str, str], asked_for: Mapping[str, str]) -> Iterator[Finding]:
    """Judge keys by name: those that settings refer to, then the usual ones.

    Args:
        variables: the environment's.
        asked_for: names that settings refer to, each with the place.
    """
    for name, where in sorted(asked_for.items()):
        problem = _key_problem(variables.get(name))
        if problem is not None:
            remedy = f"`export {name}=…`, without quotes or line ends inside"
            yield Finding("keys", State.BROKEN, f"{name} is {problem} ({where})", remedy)
    usual = [name for name in KEY_NAMES if name in variables and name not in asked_for]
    for name in usual:
        problem = _key_problem(variables[name])
        if problem is not None:
            remedy = f"`unset {name}`, or set it without quotes and line ends"
            yield Finding("keys", State.WARNING, f"{name} is {problem}", remedy)
    fine = [n for n in (*sorted(asked_for), *usual) if _key_problem(variables.get(n)) is None]
    if fine:
        yield works("keys", f"set: {', '.join(fine)}")
    elif not asked_for and not usual:
        yield works("keys", "none of the usual names is set; settings refer to none")


def _key_problem(value: str | None) -> str | None:
    if value is None:
        return "not set"
    if not value.strip():
        return "empty"
    if value != value.strip() or any(ord(char) < 32 for char in value):
        return "set with white space or line ends around it"
    if value[0] in "'\"" and value[-1] == value[0]:
        return "set with quotes around it"
    return None
