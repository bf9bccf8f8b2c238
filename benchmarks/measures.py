"""What a measure yields: a figure, the bound it must keep, and the floor it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside its bound."""

    name: str
    measured: float
    unit: str
    bound: float
    sense: Literal["at most", "at least"] = "at most"
    floor: float | None = None
    """The same work done by hand, in the same unit; None where there is none."""
    note: str = ""

    @property
    def is_met(self) -> bool:
        """True where the bound holds."""
        if self.sense == "at most":
            return self.measured <= self.bound
        return self.measured >= self.bound

    def as_json(self) -> dict[str, Any]:
        """Give the form that results files hold."""
        return {
            "name": self.name,
            "measured": self.measured,
            "unit": self.unit,
            "sense": self.sense,
            "bound": self.bound,
            "floor": self.floor,
            "is_met": self.is_met,
            "note": self.note,
        }


class Measure(Protocol):
    """A module's `measure`: yields figures as they are known."""

    def __call__(self, *, scale: float) -> Iterator[Figure]:
        """Measure; `scale` below 1 shrinks the work, for trying out only."""
        ...


def shown(value: float) -> str:
    """Write a figure with three significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    digits = 2
    while abs(value) < 10 ** (1 - digits) * 10 and digits < 5:
        digits += 1
    return f"{value:.{digits}f}"


def table(figures: list[dict[str, Any]]) -> str:
    """Draw figures as a Markdown table, which people read in a terminal too."""
    rows = [("measure", "measured", "bound", "floor", "")]
    for one in figures:
        sign = "≤" if one["sense"] == "at most" else "≥"
        floor = "" if one["floor"] is None else f"{shown(one['floor'])} {one['unit']}"
        rows.append(
            (
                one["name"] + (f" ({one['note']})" if one["note"] else ""),
                f"{shown(one['measured'])} {one['unit']}",
                f"{sign} {shown(one['bound'])} {one['unit']}",
                floor,
                "met" if one["is_met"] else "MISSED",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
