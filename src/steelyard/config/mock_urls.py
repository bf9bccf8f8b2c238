"""`mock-model://NAMES/CHANCE` taken apart and put together: settings change what it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

PREFIX: Final = "mock-model://"
_PATH: Final = ("./", "../", "/")


def is_mock_url(base_url: str) -> bool:
    """True for a URL of this scheme."""
    return base_url.startswith(PREFIX)


def mock_parts(base_url: str) -> tuple[tuple[str, ...], str | None]:
    """Give the names of a URL, and its chance as written; None where it says none.

    What stands behind the last slash is the chance, but for a folder whose name is no number.
    """
    body = base_url.removeprefix(PREFIX)
    names, slash, last = body.rpartition("/")
    is_folder = body.rpartition(",")[2].startswith(_PATH)
    if not slash or (is_folder and last and not _is_number(last)):
        names, last = body, ""
    return tuple(name for name in names.split(",") if name), last or None


def renamed(base_url: str, name_of: Callable[[str], str]) -> str:
    """Give a URL with other names; what is no URL of this scheme comes back as it is."""
    if not is_mock_url(base_url):
        return base_url
    names, chance = mock_parts(base_url)
    return PREFIX + ",".join(map(name_of, names)) + ("" if chance is None else f"/{chance}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
