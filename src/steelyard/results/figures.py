"""Numbers as people read them: short, and never saying what the exact one denies. Pure.

0.9996 is no 1.000, 0.00002 dollars are not free, 999 of 1,000 are not 100%.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

DIGITS: Final = 3
MAX_DIGITS: Final = 12
_MAX_LOSS: Final = 0.05
"""Of an amount of money, by its being rounded."""


def figure(value: float) -> str:
    """Write a score with three digits, and more where it would look whole: 0.99961 is `0.9996`."""
    value += 0.0  # no minus before nothing
    for digits in range(DIGITS, MAX_DIGITS + 1):
        text = f"{value:.{digits}f}"
        if not float(text).is_integer() or float(text) == value:
            return text
    return f"{round(value):.{DIGITS}f}"


def signed(value: float) -> str:
    """Write a difference as a score is written, with its sign."""
    return figure(value) if value < 0 else f"+{figure(value)}"


def pair(ends: Sequence[float]) -> str:
    """Write an interval, `[0.410, 0.613]`: it holds what lies in it, both written this way."""
    return f"[{figure(ends[0])}, {figure(ends[1])}]"


def share(part: int, whole: int) -> str:
    """Write a share in percent; only all is `100%`, and only none is `0%`."""
    percent = round(100 * part / whole)
    if percent == 100 and part < whole:
        return ">99%"
    return "<1%" if percent == 0 < part else f"{percent}%"


def usd(amount: float, digits: int = 4) -> str:
    """Write US dollars without their sign; with more digits where too much would be lost."""
    wanted = digits
    while wanted < MAX_DIGITS and abs(round(amount, wanted) - amount) > _MAX_LOSS * abs(amount):
        wanted += 1
    return f"{amount:.{wanted}f}"
