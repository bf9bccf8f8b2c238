"""What a run or a difference must reach: `--fail-under`, `--require-official`, `compare --gate`.

Pure. The direction of a metric is respected: where less is better, a limit is one from above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.validation import nearest

if TYPE_CHECKING:
    from steelyard.results.comparison import Compared

GATE_NOT_MET: Final = 3
"""The exit status of a launch or a comparison that completed and missed a gate."""
FAIL_UNDER: Final = "--fail-under"
REQUIRE_OFFICIAL: Final = "--require-official"
GATE: Final = "--gate"


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on one metric of one request."""

    option: str
    """As it was given, for people."""
    request: str
    """The request's name; of several comparisons the run's id, of one nothing."""
    metric: str | None
    """None where the run must be official."""
    limit: float = 0.0
    is_confident: bool = False
    """True where the interval's worse end must reach the limit."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of a gate."""

    gate: Gate
    is_met: bool
    found: float | None
    """What was held against the limit; None where there is no such figure."""
    said: str
    """What was found, and by how much the limit was missed."""

    @property
    def line(self) -> str:
        """Say it in one line, where there is no table."""
        of = f" ({self.gate.request})" if self.gate.request else ""
        return f"{self.gate.option}{of}: {'met' if self.is_met else 'NOT MET'}, {self.said}"

    def as_json(self) -> dict[str, Any]:
        """Give the form that `--json` prints."""
        return {
            "gate": self.gate.option,
            "request": self.gate.request or None,
            "metric": self.gate.metric,
            "limit": None if self.gate.metric is None else self.gate.limit,
            "is_confident": self.gate.is_confident,
            "found": self.found,
            "is_met": self.is_met,
            "said": self.said,
        }


def fail_under_gates(
    texts: Sequence[str],
    requests: Mapping[str, Sequence[str]],
    *,
    is_confident: bool = False,
    needs_official: bool = False,
) -> list[Gate]:
    """Read `[REQUEST:]METRIC=VALUE`; without a request it holds for each that has the metric.

    Args:
        texts: as they were given.
        requests: the names of each request's metrics.
        is_confident: whether intervals' worse ends must reach the limits.
        needs_official: whether every request must be official.

    Raises:
        BadInput: texts of another form, unknown metrics; all at once.
    """
    gates: list[Gate] = []
    problems: list[Problem] = []
    for text in texts:
        name, limit = _split(text, FAIL_UNDER, "METRIC=VALUE", problems)
        if limit is None:
            continue
        found = _holders(name, requests)
        if not found:
            problems.append(_unknown(name, requests))
        gates += [
            Gate(f"{FAIL_UNDER} {text}", request, metric, limit, is_confident)
            for request, metric in found
        ]
    if problems:
        raise BadInput.of(problems)
    if needs_official:
        gates += [Gate(REQUIRE_OFFICIAL, request, None) for request in requests]
    return gates


def difference_gates(
    texts: Sequence[str], metrics: Sequence[str], *, is_confident: bool = False
) -> list[Gate]:
    """Read `METRIC[=MIN_DIFFERENCE]` of a comparison; without a number it is 0: not worse.

    Raises:
        BadInput: texts of another form, unknown metrics; all at once.
    """
    gates: list[Gate] = []
    problems: list[Problem] = []
    for text in texts:
        is_bare = text in metrics
        whole = f"{text}=0" if is_bare or "=" not in text else text
        name, limit = _split(whole, GATE, "METRIC=MIN_DIFFERENCE", problems)
        if limit is None:
            continue
        if name not in metrics:
            near = nearest(name, metrics)
            hint = f"did you mean {near!r}? " if near else ""
            remedy = f"{hint}both runs have: {', '.join(metrics) or 'none'}"
            problems.append(Problem(f"unknown metric {name!r}", Where(field=GATE), remedy))
        gates.append(Gate(f"{GATE} {text}", "", name, limit, is_confident))
    if problems:
        raise BadInput.of(problems)
    return gates


def judge_run(gate: Gate, metrics: Mapping[str, Any] | None) -> GateResult:
    """Hold a run's `metrics.json` against a gate.

    The figure is the metric's first score: the headline of the primary one. A run that is not
    official is judged by what was scored; `--require-official` is what refuses it.
    """
    if metrics is None:
        return GateResult(gate, is_met=False, found=None, said="the run has no summary")
    if gate.metric is None:
        counted, planned = metrics["coverage"]["counted"], metrics["coverage"]["planned"]
        said = f"{counted} of {planned} planned attempts count"
        return GateResult(gate, is_met=bool(metrics["is_official"]), found=None, said=said)
    score = next((s for s in metrics["scores"] if s["metric"] == gate.metric), None)
    if score is None:
        return GateResult(
            gate, is_met=False, found=None, said=f"the run has no score {gate.metric!r}"
        )
    estimate = score["estimate"]
    label = f"{gate.metric} {score['estimator']}"
    if estimate["value"] is None:
        said = f"{label} has no value: {estimate['note'] or 'nothing was scored'}"
        return GateResult(gate, is_met=False, found=None, said=said)
    higher = bool(score["higher_is_better"])
    interval = estimate["interval"]
    judged = judged_value(gate, label, estimate["value"], interval, estimate["note"], higher=higher)
    if score["official"] is not None:
        return judged
    return GateResult(gate, judged.is_met, judged.found, f"{judged.said} (not official)")


def judge_difference(gate: Gate, compared: Compared) -> GateResult:
    """Hold a comparison's gain, the difference in the better direction, against a gate."""
    interval = compared.gain_interval
    return judged_value(
        gate,
        f"the gain in {gate.metric} {compared.asked.label}",
        compared.gain,
        None if interval is None else list(interval),
        compared.difference.note,
        higher=True,
    )


def judged_value(
    gate: Gate,
    label: str,
    value: float,
    interval: Sequence[float] | None,
    note: str | None,
    *,
    higher: bool,
) -> GateResult:
    """Hold a value, or its interval's worse end where a gate must be confident, against a gate.

    Args:
        gate: what is asked.
        label: what the value is, for people.
        value: in the metric's unit.
        interval: at 95%; None where there is none.
        note: why there is none.
        higher: whether more is better.
    """
    what = label
    if gate.is_confident:
        if interval is None:
            said = f"{label} has no interval to be confident of: {note or 'unknown'}"
            return GateResult(gate, is_met=False, found=None, said=said)
        value = interval[0] if higher else interval[1]
        what = f"the {'lower' if higher else 'upper'} end of {label}'s 95% interval"
    is_met = value >= gate.limit if higher else value <= gate.limit
    said = f"{what} is {value:.4g}"
    if not is_met:
        side = "below" if higher else "above"
        said += f", {abs(value - gate.limit):.4g} {side} {gate.limit:g}"
    return GateResult(gate, is_met, value, said)


def _split(text: str, option: str, form: str, problems: list[Problem]) -> tuple[str, float | None]:
    name, equals, number = text.rpartition("=")
    try:
        limit = float(number)
    except ValueError:
        limit = float("nan")
    if not equals or not name or not isfinite(limit):
        problems.append(
            Problem(f"found {text!r}", Where(field=option), f"write {option} {form}, with a number")
        )
        return name, None
    return name, limit


def _holders(name: str, requests: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Give each request that a name speaks of, with the metric: `metric`, `request:metric`."""
    found = [(request, name) for request, metrics in requests.items() if name in metrics]
    return found or [
        (request, name.removeprefix(f"{request}:"))
        for request, metrics in requests.items()
        if name.startswith(f"{request}:") and name.removeprefix(f"{request}:") in metrics
    ]


def _unknown(name: str, requests: Mapping[str, Sequence[str]]) -> Problem:
    known = list(dict.fromkeys(metric for metrics in requests.values() for metric in metrics))
    request = next((r for r in requests if name.startswith(f"{r}:")), None)
    if request is not None:
        known = [f"{request}:{metric}" for metric in requests[request]]
    near = nearest(name, known)
    hint = f"did you mean {near!r}? " if near else ""
    return Problem(
        f"unknown metric {name!r}",
        Where(field=FAIL_UNDER),
        f"{hint}there are: {', '.join(known) or 'none'}"
        + ("; REQUEST:METRIC names one request's" if len(requests) > 1 else ""),
    )
