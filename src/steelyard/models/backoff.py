"""How long to wait before a request is tried again. Pure."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter (Brooker 2015): uniform on [0, min(cap, base · 2^n)]."""

    base_s: float = 0.5
    cap_s: float = 60.0
    retry_after_cap_s: float = 300.0
    """Longer waits that an endpoint asks for are cut to it."""

    def wait_s(self, retry: int, retry_after_s: float | None, chance: random.Random) -> float:
        """Give the wait before the retry, counted from 0.

        What the endpoint asked for is waited in full, then up to one base more, so that those
        who were told the same moment do not all come at it.
        """
        if retry_after_s is not None:
            return min(retry_after_s, self.retry_after_cap_s) + chance.uniform(0, self.base_s)
        return chance.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(retry, 60)))


BACKOFF: Final = Backoff()


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Read a `Retry-After` header: seconds, or a date (RFC 9110, 10.2.3).

    Returns:
        Seconds from `now`, at least 0; None where there is none or it makes no sense.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    return max(0.0, seconds) if math.isfinite(seconds) else None
