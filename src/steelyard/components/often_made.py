"""Frozen values that are cheap to make: for what every attempt makes.

A frozen dataclass sets each field through `object.__setattr__`, 0.13 µs a field; the values of a
trivial attempt have a hundred fields. `often_made` is `dataclass` for the type checker, which
holds `frozen=True`; at run time it leaves the guard out and keeps equality and hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as often_made
else:
    from dataclasses import dataclass

    def often_made(*, frozen, slots):
        """Make a class a dataclass whose values nobody changes, though nothing stops them."""
        return dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["often_made"]
