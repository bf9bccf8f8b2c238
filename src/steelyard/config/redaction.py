"""Hide secrets by value, in every form they leave in, across the borders of chunks.

One `Redactor` stands before everything that is written: files, terminal, logs, tracebacks. It
replaces raw, JSON-escaped, URL-encoded and base64 forms. It does not hide what it was never
told, nor values too short or too common to be told from ordinary text.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

from steelyard.config import printable
from steelyard.config.secret_names import (
    holds_secrets,
    is_recognisable,
    is_secret_name,
    shown_url,
    url_secrets,
)
from steelyard.config.secrets import MARKER, SecretRef, SecretStore

REDACTED: Final = "[redacted]"
_REDACTED_BYTES: Final = REDACTED.encode()


def forms_of(value: str) -> set[str]:
    """Give every text under which a secret may leave: raw, quoted by Python, JSON, HTML and URL,
    JSON inside JSON, and base64.
    """
    raw = value.encode("utf-8", "surrogatepass")
    forms = {
        value,
        # What `{value!r}` in somebody's message makes of it.
        repr(value)[1:-1],
        ascii(value)[1:-1],
        html.escape(value),
        html.escape(value, quote=False),
    }
    # An error that quotes a body that quotes a message, in a record: each one escapes again. For a
    # secret without quotes, backslashes and the like all of these are one.
    level = forms
    for _ in range(_NESTED_JSON):
        level = {
            json.dumps(form, ensure_ascii=is_ascii)[1:-1]
            for form in level
            for is_ascii in (True, False)
        }
        forms = forms | level
    escaped = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    forms |= escaped | {_PERCENT.sub(lambda found: found[0].lower(), text) for text in escaped}
    forms |= {form.replace("/", "\\/") for form in forms if "/" in form}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms |= {_aligned(raw, offset, encode) for offset in range(3)}
    return {form for form in forms if len(form) >= _MIN_FORM}


# Attempts come and go with a secret each; the others' forms need not be made anew.
_remembered_forms = lru_cache(maxsize=2048)(forms_of)

_NESTED_JSON: Final = 4
_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_MIN_FORM: Final = 6
"""Base64 of eight bytes keeps at least eight characters that depend on nothing around them."""


def _aligned(raw: bytes, offset: int, encode: Callable[[bytes], bytes]) -> str:
    """Base64 of a secret that stands `offset` bytes into a group, without shared characters."""
    text = encode(bytes(offset) + raw).decode("ascii").rstrip("=")
    # The first characters hold bits of what stands before, the last one of what follows.
    start = (0, 2, 3)[offset]
    stop = len(text) if (offset + len(raw)) % 3 == 0 else len(text) - 1
    return text[start:stop]


class Redactor:
    """Replaces the secrets of a store wherever they appear; more may be registered later."""

    def __init__(self, store: SecretStore, *, secret_env: Iterable[str] = ()) -> None:
        """Redact what `store` holds, and the values of the variables named in `secret_env`."""
        for name in secret_env:
            store.put_variable(name)
        self._store = store
        self._version = -1
        self._texts: list[str] = []
        self._bytes: list[bytes] = []
        self._text_groups: dict[str, list[str]] = {}
        self._byte_groups: dict[bytes, list[bytes]] = {}
        self._longest_bytes = 0

    def _refresh(self) -> None:
        # Read first: a value put by another thread meanwhile then counts as new.
        version = self._store.version
        if version == self._version:
            return
        values = {value for _, value in [*self._store.items(), *self._store.parts()]}
        forms: set[str] = set()
        for value in values:
            if is_recognisable(value):
                forms |= _remembered_forms(value)
        # Longest first, so that a secret which begins with another one goes as a whole.
        self._texts = sorted(forms, key=lambda form: (-len(form), form))
        self._bytes = [form.encode("utf-8", "surrogatepass") for form in self._texts]
        self._bytes.sort(key=lambda form: (-len(form), form))
        self._longest_bytes = max(map(len, self._bytes), default=0)
        self._text_groups = _grouped(self._texts)
        self._byte_groups = _grouped(self._bytes)
        self._version = version

    @property
    def is_idle(self) -> bool:
        """True where no secret can be told from text, and nothing is ever replaced."""
        self._refresh()
        return not self._texts

    def text(self, text: str) -> str:
        """Copy a text with every form of every secret replaced."""
        if self._version != self._store.version:
            self._refresh()
        if not self._texts:
            return text
        present = _present(self._text_groups, text)
        return text if not present else _covered(text, present, REDACTED)

    def raw(self, data: bytes) -> bytes:
        """Copy bytes with every form of every secret replaced."""
        if self._version != self._store.version:
            self._refresh()
        if not self._bytes:
            return data
        present = _present(self._byte_groups, data)
        return data if not present else _covered(data, present, _REDACTED_BYTES)

    def contains_secret(self, data: bytes) -> bool:
        """True where bytes hold a secret in any form; for artifacts, which are only flagged."""
        self._refresh()
        return bool(_present(self._byte_groups, data))

    def formatter(self, pattern: str) -> RedactingFormatter:
        """Give a log formatter whose whole output is redacted."""
        return RedactingFormatter(logging.Formatter(pattern), self)

    def stream(self) -> StreamRedactor:
        """Begin a stream of chunks, in which a secret may stand across borders."""
        return StreamRedactor(self)

    def tree(self, data: Any) -> Any:
        """Copy plain data with every text, keys too, redacted by value."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {self.text(str(key)): self.tree(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.tree(item) for item in data]
        return data

    @property
    def tail_bytes(self) -> int:
        """How much of a stream must wait for what follows: the longest form less one."""
        self._refresh()
        return max(self._longest_bytes - 1, 0)

    def forms_in(self, data: bytes) -> list[bytes]:
        """Every form that stands in `data`."""
        self._refresh()
        return _present(self._byte_groups, data)


_GROUP_LENGTH: Final = 12
"""How much of their beginning the forms of a group share."""


def _grouped(forms: list[Any]) -> dict[Any, list[Any]]:
    """Group forms by how they begin: the tokens of many attempts are looked for at once."""
    groups: dict[Any, list[Any]] = {}
    for form in forms:
        groups.setdefault(form[:_GROUP_LENGTH], []).append(form)
    return groups


def _present(groups: dict[Any, list[Any]], data: Any) -> list[Any]:
    """Give the forms that stand in `data`, texts or bytes as it is."""
    return [
        form
        for beginning, forms in groups.items()
        if beginning in data
        for form in forms
        if form in data
    ]


def _spans(data: Any, forms: list[Any]) -> list[tuple[int, int]]:
    """Give where forms stand, overlapping ones joined, in order."""
    found = []
    for form in forms:
        at = data.find(form)
        while at >= 0:
            found.append((at, at + len(form)))
            at = data.find(form, at + 1)
    found.sort()
    joined: list[tuple[int, int]] = []
    for start, stop in found:
        # Strictly overlapping only: two secrets side by side are two.
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((start, stop))
    return joined


def _covered(data: Any, forms: list[Any], cover: Any) -> Any:
    """Copy `data` with every span of a form covered.

    Not one `replace` after the other: of two secrets that overlap the second would leave a rest.
    """
    pieces = []
    at = 0
    for start, stop in _spans(data, forms):
        pieces += [data[at:start], cover]
        at = stop
    pieces.append(data[at:])
    return type(cover)().join(pieces)


class StreamRedactor:
    """Redacts chunks of bytes as they come; whatever way they are cut, the output is the same."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give what can be written already."""
        data = self._held + chunk
        tail = self._redactor.tail_bytes
        cut = max(len(data) - tail, 0)
        if not tail:
            self._held = b""
            return data
        present = self._redactor.forms_in(data)
        # Nothing that a form covers is cut in two: its span waits as a whole.
        for start, stop in _spans(data, present) if present else ():
            if start < cut < stop:
                cut = start
                break
        self._held = data[cut:]
        head = data[:cut]
        return _covered(head, present, _REDACTED_BYTES) if present else head

    def close(self) -> bytes:
        """Give the rest, redacted."""
        rest, self._held = self._held, b""
        return self._redactor.raw(rest)


class RedactingFormatter(logging.Formatter):
    """Wraps another formatter: its whole output is redacted, tracebacks and arguments too.

    A formatter, not a filter: it sees the text as it will be written, whoever logged it.
    """

    def __init__(self, inner: logging.Formatter, redactor: Redactor) -> None:
        super().__init__()
        self._inner = inner
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Format by the inner formatter, then redact."""
        try:
            text = self._inner.format(record)
        finally:
            # The inner formatter caches the traceback's text on the record for other handlers.
            record.exc_text = None
        # Lines of its own, so that nobody's words can pass for an entry.
        return printable.lines(self._redactor.text(text)).replace("\n", "\n  ")


def redact_tree(data: Any) -> Any:
    """Copy settings for people to see: references as `${NAME}`, secrets by name and URL hidden."""
    return _shown(data, False)


def _shown(data: Any, is_secret: bool) -> Any:
    if isinstance(data, SecretRef):
        return shown_ref(data)
    if isinstance(data, Mapping):
        if set(data) == {MARKER}:
            return shown_ref(SecretRef(str(data[MARKER])))
        return {
            str(key): _shown(
                value, is_secret or is_secret_name(str(key)) or holds_secrets(str(key))
            )
            for key, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [_shown(item, is_secret) for item in data]
    if data is None or isinstance(data, bool):
        return data
    if is_secret:
        return REDACTED
    if isinstance(data, str) and url_secrets(data):
        return shown_url(data)
    return data


def shown_ref(ref: SecretRef) -> str:
    """Give what stands for a secret where people see settings."""
    return f"${{{ref.ref.removeprefix('env:')}}}" if ref.ref.startswith("env:") else REDACTED
