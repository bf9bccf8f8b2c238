"""What a verdict may say: true or false, or a grade on a scale, perhaps by criteria. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Scale(Protocol):
    """What one grade may be."""

    @property
    def tolerance(self) -> float:
        """How many steps two grades may differ and still agree."""
        ...

    @property
    def words(self) -> str:
        """Say to the judge what a grade may be."""
        ...

    def position(self, grade: Any) -> float | None:
        """Give the grade's place, in steps from the lowest; None where it is no grade."""
        ...

    def value(self, grade: Any) -> float:
        """Give what a grade counts, from 0 to 1."""
        ...

    def bar(self, threshold: float | str) -> float:
        """Give what a threshold in the scale's own terms counts, from 0 to 1.

        Raises:
            ValueError: it is not on the scale.
        """
        ...


@dataclass(frozen=True, slots=True)
class TrueOrFalse:
    """The scale of an assertion."""

    tolerance: float = 0.0
    words: str = "true or false"

    def position(self, grade: Any) -> float | None:
        """Give 0 for false, 1 for true; None for anything else, 0 and 1 among them."""
        return float(grade) if isinstance(grade, bool) else None

    def value(self, grade: Any) -> float:
        """Give 1 for true."""
        return float(grade)

    def bar(self, threshold: float | str) -> float:
        """Give the threshold: a share of the samples."""
        if isinstance(threshold, str) or not 0 <= threshold <= 1:
            raise ValueError("the threshold of an assertion is a share from 0 to 1")
        return threshold


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers from `low` to `high`; a grade g counts (g - low) / (high - low)."""

    low: int
    high: int

    @property
    def tolerance(self) -> float:
        """One step, unless there are only two grades."""
        return 1.0 if self.high - self.low > 1 else 0.0

    @property
    def words(self) -> str:
        """Say to the judge what a grade may be."""
        return f"a whole number from {self.low} (lowest) to {self.high} (highest)"

    def position(self, grade: Any) -> float | None:
        """Give the steps from the lowest; None for what is not a whole number of the scale."""
        if isinstance(grade, bool) or not isinstance(grade, int | float):
            return None
        if not self.low <= grade <= self.high or grade != int(grade):
            return None
        return float(grade - self.low)

    def value(self, grade: Any) -> float:
        """Give (grade - low) / (high - low)."""
        return float(grade - self.low) / (self.high - self.low)

    def bar(self, threshold: float | str) -> float:
        """Give what a grade, perhaps a broken one, counts."""
        if isinstance(threshold, str) or not self.low <= threshold <= self.high:
            raise ValueError(f"the threshold is a number from {self.low} to {self.high}")
        return self.value(threshold)


@dataclass(frozen=True, slots=True)
class Levels:
    """Named levels, each with what it counts."""

    values: Mapping[str, float]

    @property
    def tolerance(self) -> float:
        """One level, unless there are only two."""
        return 1.0 if len(self.values) > 2 else 0.0

    @property
    def words(self) -> str:
        """Say to the judge what a grade may be."""
        names = ", ".join(f'"{name}"' for name in self._ascending())
        return f"one of {names} (from the lowest to the highest)"

    def position(self, grade: Any) -> float | None:
        """Give the level's place among all, by what they count."""
        if not isinstance(grade, str) or grade not in self.values:
            return None
        return float(self._ascending().index(grade))

    def value(self, grade: Any) -> float:
        """Give what the level counts."""
        return self.values[grade]

    def bar(self, threshold: float | str) -> float:
        """Give the threshold, or what the level of that name counts."""
        if isinstance(threshold, str):
            if threshold not in self.values:
                raise ValueError(f"{threshold!r} is not a level of the scale")
            return self.values[threshold]
        if not 0 <= threshold <= 1:
            raise ValueError("the threshold is a level's name, or a number from 0 to 1")
        return threshold

    def _ascending(self) -> Sequence[str]:
        return sorted(self.values, key=lambda name: self.values[name])


@dataclass(frozen=True, slots=True)
class Form:
    """What one verdict must hold."""

    scale: Scale
    criteria: Mapping[str, float]
    """Weights by name; empty where there is one grade for the whole."""

    @property
    def is_assertion(self) -> bool:
        """True where the verdict is true or false."""
        return isinstance(self.scale, TrueOrFalse)

    @property
    def grade_field(self) -> str:
        """The field of the verdict that holds the grade or grades."""
        if self.is_assertion:
            return "verdict"
        return "scores" if self.criteria else "score"


@dataclass(frozen=True, slots=True)
class Said:
    """One verdict, read and found whole."""

    grades: Any
    """As the judge wrote them: one, or one for each criterion."""
    reason: str
    value: float
    """From 0 to 1; with criteria the mean by weight: sum(w * v) / sum(w)."""
    position: float
    """In steps of the scale from its lowest; with criteria their mean by weight."""
