"""Draws that depend on a seed and on what is drawn for, never on the order of calls."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal

from steelyard.config.errors import BadInput

Shape = Literal["fixed", "uniform", "lognormal", "exponential"]
SHAPES: Final[dict[str, int]] = {"fixed": 1, "uniform": 2, "lognormal": 2, "exponential": 1}
"""How many numbers each shape takes."""
_NORMAL: Final = NormalDist()


def draw(*parts: object) -> float:
    """Draw from the uniform distribution on (0, 1); the same parts give the same number."""
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) / 2**53


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the endpoint takes to begin its answer, in seconds."""

    shape: Shape = "fixed"
    first: float = 0.0
    """fixed: the time; uniform: the lowest; lognormal: the median; exponential: the mean."""
    second: float = 0.0
    """uniform: the highest; lognormal: sigma of the logarithm."""

    def at(self, chance: float) -> float:
        """Give the quantile at `chance`, 0 < chance < 1."""
        if self.shape == "uniform":
            return self.first + (self.second - self.first) * chance
        if self.shape == "lognormal":
            return self.first * math.exp(self.second * _NORMAL.inv_cdf(chance))
        if self.shape == "exponential":
            return -self.first * math.log(1 - chance)
        return self.first


NO_LATENCY: Final = Latency()


def parse_latency(text: str) -> Latency:
    """Read `0.2`, `fixed:0.2`, `uniform:0.1,0.5`, `lognormal:MEDIAN,SIGMA` or `exponential:MEAN`.

    Raises:
        BadInput: it is none of them.
    """
    shape, colon, rest = text.partition(":")
    if not colon:
        shape, rest = "fixed", text
    try:
        numbers = [float(part) for part in rest.split(",")]
    except ValueError:
        numbers = []
    is_sound = all(math.isfinite(number) and number >= 0 for number in numbers)
    if shape not in SHAPES or len(numbers) != SHAPES[shape] or not is_sound:
        raise BadInput(
            f"--latency {text!r} is not a latency",
            remedy="write seconds as 0.2, fixed:0.2, uniform:0.1,0.5, lognormal:MEDIAN,SIGMA "
            "or exponential:MEAN",
        )
    second = numbers[1] if len(numbers) > 1 else 0.0
    return Latency(shape, numbers[0], second)  # type: ignore[arg-type] # checked above
