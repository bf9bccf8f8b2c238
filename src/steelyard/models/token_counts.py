"""What a model call counted. Apart from the protocols, which a dry run does not need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one call, in one meaning for all protocols."""

    input_tokens: int = 0
    """All of them, cached and cache-writing ones included."""
    output_tokens: int = 0
    """All of them, reasoning ones included."""
    cached_tokens: int = 0
    """Input read from a cache."""
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    """Input written to a cache, which some endpoints charge more for."""
