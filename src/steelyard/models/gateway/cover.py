"""Keeps the endpoint's own secrets from the agent, in whatever the endpoint sends. Pure.

Nothing is held back but an end that may be the beginning of a secret, so that streams flow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steelyard.config.redaction import forms_of
from steelyard.config.secret_names import is_recognisable

COVER: Final = b"[redacted]"


class Secrets:
    """What must not pass, in every form it may leave in.

    Args:
        values: the secrets; those that cannot be told from text are left out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        forms = {
            form.encode("utf-8", "surrogatepass")
            for value in values
            if is_recognisable(value)
            for form in forms_of(value)
        }
        self.forms = sorted(forms, key=lambda form: (-len(form), form))
        self._bytes = frozenset(byte for form in self.forms for byte in form)

    def covered(self, data: bytes) -> bytes:
        """Copy whole data with every secret covered."""
        for form in self.forms:
            if form in data:
                data = data.replace(form, COVER)
        return data

    def held_bytes(self, data: bytes) -> int:
        """Tell how many bytes at the end may be the beginning of a secret."""
        if not data or data[-1] not in self._bytes:
            return 0  # as at the end of every event
        longest = 0
        for form in self.forms:
            for size in range(min(len(form) - 1, len(data)), longest, -1):
                if data.endswith(form[:size]):
                    longest = size
                    break
        return longest


class Cover:
    """Covers secrets in one stream, across the borders of its pieces."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take a piece; give what can pass already."""
        if not self._secrets.forms:
            return data
        whole = self._secrets.covered(self._held + data if self._held else data)
        held = self._secrets.held_bytes(whole)
        self._held = whole[len(whole) - held :] if held else b""
        return whole[: len(whole) - held] if held else whole

    def close(self) -> bytes:
        """Give the rest."""
        rest, self._held = self._held, b""
        return rest
