"""Take out of a pack what its schema refuses, so that the rest can be looked at in the same go.

What comes of it is for finding more problems alone: no pack that needed it is ever played.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from steelyard.benchmarks.pack.schema import SCHEMA, PackFile
from steelyard.config.errors import Problem
from steelyard.config.source import FieldPath, path_text

_VALIDATORS: Final[FieldPath] = ("scoring", "validators")
_MAX_ROUNDS: Final = 4

_STAND_IN: Final[Mapping[str, Any]] = MappingProxyType({"type": "command", "run": ["x"]})
"""For a validator that cannot be read. A `command` is what others may need above themselves."""
_STAND_INS: Final[Mapping[FieldPath, Any]] = MappingProxyType(
    {
        ("schema",): SCHEMA,
        ("slug",): "x",
        ("version",): 0,
        ("prompt",): "x",
        ("cases",): [],
        ("reference",): "x",
        ("scoring",): {"validators": [dict(_STAND_IN)]},
        _VALIDATORS: [dict(_STAND_IN)],
    }
)
"""For what a pack must have, and for what others refer to; the rest is left out."""


@dataclass(frozen=True, slots=True)
class Healed:
    """What is left of a pack."""

    file: PackFile
    replaced: frozenset[FieldPath]
    """What was left out or stands in for something else: nothing can be said of it."""

    def speaks_of_pack(self, problem: Problem) -> bool:
        """True where a problem is one of what was written, not of what stands in for it."""
        field = problem.where.field or ""
        gone = {path_text(path) for path in self.replaced}
        if any(path[:2] == _VALIDATORS for path in self.replaced):
            gone |= {"judge"}  # the validator that would ask it may be the one that is gone
        return not any(field == path or field.startswith((f"{path}.", f"{path}[")) for path in gone)

    @property
    def lost_validators(self) -> frozenset[int]:
        """The numbers of the validators that others stand in for."""
        places = [path for path in self.replaced if path[:2] == _VALIDATORS and len(path) == 3]
        return frozenset(int(path[2]) for path in places)


def healed(data: Mapping[str, Any]) -> Healed | None:
    """Give what is left of a pack without what is wrong; None where that is nothing."""
    rest = copy.deepcopy(dict(data))
    replaced: set[FieldPath] = set()
    for _ in range(_MAX_ROUNDS):
        try:
            return Healed(PackFile.model_validate(rest, strict=True), frozenset(replaced))
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                path = _existing(rest, detail["loc"])
                if detail["type"] == "extra_forbidden":
                    _take_out(rest, path)
                    continue
                missing = detail["type"] == "missing"
                at = (*path, detail["loc"][-1]) if missing and len(path) < 2 else path
                replaced.add(_mended(rest, at))
    return None


def _mended(rest: dict[str, Any], path: FieldPath) -> FieldPath:
    """Replace or leave out the smallest part around a path that can be; give its path."""
    if not path or path[0] == "messages":
        # A prompt and messages, neither, or one message that is none.
        rest.pop("messages", None)
        rest.pop("system", None)
        rest["prompt"] = "x"
        return ("messages",)
    if path[:2] == _VALIDATORS and len(path) == 3:
        rest["scoring"]["validators"][int(path[2])] = dict(_STAND_IN)
        return path
    at = path[: 4 if path[:2] == _VALIDATORS else 2]
    if at[0] not in ("scoring", "environment", "limits", "answer"):
        at = at[:1]
    if at in _STAND_INS:
        _take_out(rest, at)
        holder = rest["scoring"] if len(at) > 1 else rest
        holder[str(at[-1])] = copy.deepcopy(_STAND_INS[at])
    else:
        _take_out(rest, at)
    return at


def _existing(data: Any, loc: tuple[str | int, ...]) -> FieldPath:
    """Leave the names of union members out of a location: they lead nowhere."""
    path: list[str | int] = []
    for step in loc:
        is_key = isinstance(data, dict) and step in data
        if is_key or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            data = data[step]
            path.append(step)
    return tuple(path)


def _take_out(data: Any, path: FieldPath) -> None:
    for step in path[:-1]:
        data = data[step] if not isinstance(data, dict) or step in data else {}
    if isinstance(data, dict):
        data.pop(str(path[-1]), None)
