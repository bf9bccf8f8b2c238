"""Compare two JSON values, by rules. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from steelyard.benchmarks.pack.bounded.closeness import is_close
from steelyard.benchmarks.pack.bounded.faults import shown

MAX_STEPS: Final = 500_000
"""Comparisons of one pair of values that arrays without order may take."""
_SCALARS: Final = (str, int, float, bool, type(None))


class TooCostly(ValueError):
    """Arrays without order that are too large to be matched."""

    def __init__(self) -> None:
        super().__init__("too many values to match without order")


@dataclass(slots=True)
class Comparison:
    """The rules of one comparison, with what it has cost so far."""

    tolerance: float = 0.0
    relative: float = 0.0
    """Numbers are equal where |a - e| <= max(tolerance, relative * |e|)."""
    ignore_order: bool = False
    """Arrays are multisets."""
    ignore_keys: frozenset[str] = frozenset()
    """Keys of objects that do not count, at any depth."""
    subset: bool = False
    """Objects may have more keys than expected; arrays without order, more elements."""
    steps: int = field(default=0)

    @classmethod
    def of(cls, rules: Mapping[str, Any]) -> Comparison:
        """Read rules from plain data."""
        return cls(**{**rules, "ignore_keys": frozenset(rules.get("ignore_keys", ()))})

    def difference(self, expected: Any, found: Any, at: str = "$") -> str | None:
        """Say where the values first differ, None where they are equal.

        Both are at most `json_text.MAX_DEPTH` deep.

        Raises:
            TooCostly: after `MAX_STEPS`.
        """
        if isinstance(expected, dict) and isinstance(found, dict):
            return self._objects(expected, found, at)
        if isinstance(expected, list) and isinstance(found, list):
            return self._arrays(expected, found, at)
        if self._scalars_equal(expected, found):
            return None
        return f"{at}: expected {shown(expected)}, found {shown(found)}"

    def _objects(self, expected: dict[str, Any], found: dict[str, Any], at: str) -> str | None:
        for key, value in expected.items():
            if key in self.ignore_keys:
                continue
            if key not in found:
                return f"{_below(at, key)} is missing"
            said = self.difference(value, found[key], _below(at, key))
            if said is not None:
                return said
        if not self.subset:
            for key in found:
                if key not in expected and key not in self.ignore_keys:
                    return f"{_below(at, key)} is not expected"
        return None

    def _arrays(self, expected: list[Any], found: list[Any], at: str) -> str | None:
        is_part = self.subset and self.ignore_order
        if len(found) < len(expected) or (len(found) > len(expected) and not is_part):
            return f"{at}: expected {len(expected)} elements, found {len(found)}"
        if not self.ignore_order:
            for number, (one, other) in enumerate(zip(expected, found, strict=True)):
                said = self.difference(one, other, f"{at}[{number}]")
                if said is not None:
                    return said
            return None
        if not (self.subset or self.tolerance or self.relative):
            # Equality is transitive here: counting is enough, and its cost is linear.
            missing = Counter(map(self.key_of, expected)) - Counter(map(self.key_of, found))
            if not missing:
                return None
            lacking = next(value for value in expected if self.key_of(value) in missing)
            return f"{at}: {shown(lacking)} is not among its elements"
        lacking_at = self._unmatched(expected, found)
        if lacking_at is None:
            return None
        return f"{at}: {shown(expected[lacking_at])} is not among its elements"

    def _unmatched(self, expected: list[Any], found: list[Any]) -> int | None:
        """Give an element that has no partner where all the others have one.

        Augmenting paths, breadth first: the number of steps is bounded by elements times pairs.
        """
        equal_to = [
            [n for n, other in enumerate(found) if self._is_pair(one, other)] for one in expected
        ]
        partner_of: dict[int, int] = {}
        for number in range(len(expected)):
            if not self._augment(number, equal_to, partner_of):
                return number
        return None

    def _augment(
        self, start: int, equal_to: Sequence[Sequence[int]], partner_of: dict[int, int]
    ) -> bool:
        came_from: dict[int, int] = {}
        waiting = deque([start])
        while waiting:
            number = waiting.popleft()
            for other in equal_to[number]:
                self._count()
                if other in came_from:
                    continue
                came_from[other] = number
                if other not in partner_of:
                    _turn_over(other, start, came_from, partner_of)
                    return True
                waiting.append(partner_of[other])
        return False

    def _is_pair(self, one: Any, other: Any) -> bool:
        self._count()
        return self.difference(one, other) is None

    def _count(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooCostly

    def _scalars_equal(self, expected: Any, found: Any) -> bool:
        if self.ignore_order:
            self._count()
        if isinstance(expected, bool) or isinstance(found, bool):
            return expected is found
        if isinstance(expected, int | float) and isinstance(found, int | float):
            if expected == found:
                return True
            if not (self.tolerance or self.relative):
                return False
            return is_close(found, expected, tolerance=self.tolerance, relative=self.relative)
        return type(expected) is type(found) and bool(expected == found)

    def key_of(self, value: Any) -> bytes:
        """Give a digest that two values share where they are equal, tolerances aside."""
        if isinstance(value, dict):
            parts = sorted(
                _digest(b"k", key.encode("utf-8", "surrogatepass")) + self.key_of(item)
                for key, item in value.items()
                if key not in self.ignore_keys
            )
            return _digest(b"o", b"".join(parts))
        if isinstance(value, list):
            keys = [self.key_of(item) for item in value]
            return _digest(b"a", b"".join(sorted(keys) if self.ignore_order else keys))
        if isinstance(value, str):
            return _digest(b"s", value.encode("utf-8", "surrogatepass"))
        if value is None or isinstance(value, bool):
            return _digest(b"c", str(value).encode())
        is_whole = isinstance(value, int) or value.is_integer()
        return _digest(b"n", (hex(int(value)) if is_whole else value.hex()).encode())

    def shared_leaves(self, expected: Any, found: Any) -> tuple[int, int]:
        """Count the leaves that are equal at the same place, and all that there are.

        A leaf is a value that holds no other. What stands on one side only counts among all;
        with `subset`, only what is expected does.
        """
        if isinstance(expected, dict) and isinstance(found, dict):
            pairs = [
                (expected.get(key, _NOTHING), found.get(key, _NOTHING))
                for key in {**expected, **found}
                if key not in self.ignore_keys
            ]
        elif isinstance(expected, list) and isinstance(found, list):
            longest = max(len(expected), len(found))
            pairs = [
                (
                    expected[n] if n < len(expected) else _NOTHING,
                    found[n] if n < len(found) else _NOTHING,
                )
                for n in range(longest)
            ]
        else:
            is_equal = self._is_leaf_pair(expected, found)
            extra = 0 if self.subset else self._leaves(found)
            return int(is_equal), max(self._leaves(expected), extra)
        if not pairs:
            return 1, 1
        equal = total = 0
        for one, other in pairs:
            if other is _NOTHING:
                total += self._leaves(one)
            elif one is _NOTHING:
                total += 0 if self.subset else self._leaves(other)
            else:
                found_equal, found_total = self.shared_leaves(one, other)
                equal, total = equal + found_equal, total + found_total
        return (equal, total) if total else (1, 1)

    def _is_leaf_pair(self, expected: Any, found: Any) -> bool:
        return isinstance(expected, _SCALARS) and self._scalars_equal(expected, found)

    def _leaves(self, value: Any) -> int:
        below: list[Any]
        if isinstance(value, dict):
            below = [item for key, item in value.items() if key not in self.ignore_keys]
        elif isinstance(value, list):
            below = value
        else:
            return 1
        return sum(map(self._leaves, below)) or 1


_NOTHING: Final = object()


def _turn_over(
    end: int, start: int, came_from: Mapping[int, int], partner_of: dict[int, int]
) -> None:
    """Give every element on a path the partner that comes after it."""
    held = (
        {number: other for other, number in partner_of.items()} if start != came_from[end] else {}
    )
    other: int | None = end
    while other is not None:
        number = came_from[other]
        before = held.get(number)
        partner_of[other] = number
        other = None if number == start else before


def _below(at: str, key: str) -> str:
    is_plain = key.isidentifier() and len(key) <= 40
    return (f"{at}.{key}" if is_plain else f"{at}[{shown(key)}]")[:300]


def _digest(kind: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16, person=kind).digest()
