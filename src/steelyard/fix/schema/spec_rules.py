"""What a spec must hold to over several of its fields. Pure.

Nothing is looked at on the disk: whether paths exist, and symlinks on the way, is sealing's matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import PurePosixPath
from typing import Final

from steelyard.config.source import FieldPath
from steelyard.config.validation import nearest
from steelyard.fix.schema.reading import Breach
from steelyard.fix.schema.spec import Spec
from steelyard.fix.schema.words import path_keys, paths_meet

MAX_ENGINE_SEED: Final = 2**63 - 1
"""The seeds that an evaluation's `execution.seed` takes."""


def spec_breaches(spec: Spec) -> list[Breach]:
    """Give everything that a spec breaks, in no particular order."""
    return [breach for rule in _RULES for breach in rule(spec)]


def seeds_breach(spec: Spec, repetitions: int, whence: str) -> Iterator[Breach]:
    """Compare the seeds with the repetitions that are in force.

    Args:
        spec: the spec.
        repetitions: in force.
        whence: who says so: `the spec`, `the profile`, `the default`.
    """
    if spec.seeds is not None and len(spec.seeds) != repetitions:
        yield Breach(
            ("seeds",),
            f"{len(spec.seeds)} seeds for {repetitions} repetitions (from {whence})",
            f"give {repetitions} seeds, or write `repetitions: {len(spec.seeds)}` in the spec",
        )


def _seeds(spec: Spec) -> Iterator[Breach]:
    if spec.repetitions is not None:
        yield from seeds_breach(spec, spec.repetitions, "the spec")
    for index, seed in _again(spec.seeds or ()):
        yield Breach(
            ("seeds", index),
            f"the seed {seed} stands there twice: two repetitions would be one",
            "give each repetition a seed of its own",
        )
    if spec.benchmark.evaluation is None:
        return
    for index, seed in enumerate(spec.seeds or ()):
        if not 0 <= seed <= MAX_ENGINE_SEED:
            yield Breach(
                ("seeds", index),
                f"an evaluation cannot run with the seed {seed}",
                f"use seeds from 0 to {MAX_ENGINE_SEED}",
            )


def _paths(spec: Spec) -> Iterator[Breach]:
    for field in ("editable_paths", "evaluation_paths"):
        keys = [path_keys(path) for path in getattr(spec, field)]
        for index, _ in _again(keys):
            path = getattr(spec, field)[index]
            yield Breach((field, index), f"{path!r} is named twice", "name it once")
    for index, path in enumerate(spec.editable_paths):
        for other in spec.evaluation_paths:
            if paths_meet(path, other):
                yield Breach(
                    ("editable_paths", index),
                    f"the editable path {path!r} meets the evaluation path {other!r}",
                    "candidates may not change what measures them: name narrower paths",
                )
        for kind, _, target in _targets(spec):
            if paths_meet(path, target):
                yield Breach(
                    ("editable_paths", index),
                    f"the editable path {path!r} meets {target!r}, where {kind} is laid",
                    "choose another place, or narrower editable paths",
                )
    evaluation = spec.benchmark.evaluation
    if evaluation is not None and not any(
        path_keys(evaluation)[: len(path_keys(path))] == path_keys(path)
        for path in spec.evaluation_paths
    ):
        yield Breach(
            ("benchmark", "evaluation"),
            f"{evaluation!r} is not among the evaluation paths: a candidate could change it",
            f"add {evaluation!r}, or its folder, to evaluation_paths",
        )


def _destinations(spec: Spec) -> Iterator[Breach]:
    for (kind, _, one), (other_kind, field, other) in combinations(_targets(spec), 2):
        if paths_meet(one, other):
            same = path_keys(one) == path_keys(other)
            met = "goes to the same place as" if same else "and one lies inside the other:"
            yield Breach(
                (*field, "path"),
                f"{other_kind} {other!r} {met} {kind} {one!r}",
                "give each file a place of its own",
            )


def _targets(spec: Spec) -> Iterator[tuple[str, FieldPath, str]]:
    for index, overlay in enumerate(spec.overlays):
        yield "an overlay", ("overlays", index), overlay.path
    for index, given in enumerate(spec.inputs):
        yield "an input", ("inputs", index), given.path


def _constraints(spec: Spec) -> Iterator[Breach]:
    highest: dict[tuple[str, str], float] = {}
    lowest: dict[tuple[str, str], float] = {}
    for index, constraint in enumerate(spec.constraints):
        at = ("constraints", index)
        if constraint.metric not in spec.metrics:
            yield _undeclared((*at, "metric"), constraint.metric, spec.metrics)
        if constraint.reference == "baseline_ratio" and constraint.bound <= 0:
            yield Breach(
                (*at, "bound"),
                f"a ratio to the baseline of {constraint.bound:g}",
                "write a factor above 0, as 1.05 for 5% more than the baseline",
            )
        key = (constraint.metric, constraint.reference)
        if constraint.op == "gte":
            lowest[key] = max(constraint.bound, lowest.get(key, constraint.bound))
        else:
            highest[key] = min(constraint.bound, highest.get(key, constraint.bound))
        if lowest.get(key, float("-inf")) > highest.get(key, float("inf")):
            yield Breach(
                (*at, "bound"),
                f"no value of {constraint.metric} is at least {lowest[key]:g} "
                f"and at most {highest[key]:g}",
                "change one of the bounds",
            )


def _checks(spec: Spec) -> Iterator[Breach]:
    for index, _ in _again([check.id.casefold() for check in spec.checks]):
        yield Breach(
            ("checks", index, "id"),
            f"the id {spec.checks[index].id!r} is taken by another check",
            "give each check an id of its own; case alone is no difference",
        )
    for number, check in enumerate(spec.checks):
        for index, issue in _again(check.issue_ids):
            yield Breach(
                ("checks", number, "issue_ids", index),
                f"the issue {issue!r} is named twice",
                "name it once",
            )
        for index, test in _again(check.expected_tests):
            yield Breach(
                ("checks", number, "expected_tests", index),
                f"the test {test!r} is named twice",
                "name it once",
            )
        for field in ("expected_tests", "expected_count", "pytest_config"):
            if getattr(check, field) and not _is_pytest(check.argv):
                yield Breach(
                    ("checks", number, field),
                    f"{field} holds for `python -m pytest`, and the check runs {check.argv[0]!r}",
                    'write argv as ["python3", "-m", "pytest", …], or take it out',
                )


def _is_pytest(argv: Sequence[str]) -> bool:
    pairs = pairwise(argv)
    return "python" in PurePosixPath(argv[0]).name and ("-m", "pytest") in set(pairs)


def _names(spec: Spec) -> Iterator[Breach]:
    for index, issue in _again(spec.issue_ids):
        yield Breach(("issue_ids", index), f"the issue {issue!r} is named twice", "name it once")
    for field in ("metrics", "task_metrics"):
        names = list(getattr(spec, field))
        for index, _ in _again([name.casefold() for name in names]):
            yield Breach(
                (field, names[index]),
                f"{names[index]!r} differs from another name only in case",
                "choose names that differ by more",
            )
    for name in spec.confirmation.min_effect:
        if name not in spec.metrics:
            yield _undeclared(("confirmation", "min_effect", name), name, spec.metrics)


def _undeclared(field: FieldPath, name: str, declared: Iterable[str]) -> Breach:
    known = list(declared)
    near = nearest(name, known)
    hint = f"did you mean {near}? " if near else ""
    return Breach(
        field, f"there is no metric {name!r}", f"{hint}declared in metrics: {', '.join(known)}"
    )


def _again(values: Iterable[Hashable]) -> Iterator[tuple[int, Hashable]]:
    seen: Counter[Hashable] = Counter()
    for index, value in enumerate(values):
        seen[value] += 1
        if seen[value] > 1:
            yield index, value


def issue_breaches(spec: Spec) -> Iterator[Breach]:
    """Give checks that speak for issues the run is not about.

    Asked at `start` only: `--issue` adds to the spec's issues.
    """
    for number, check in enumerate(spec.checks):
        for index, issue in enumerate(check.issue_ids):
            if issue not in spec.issue_ids:
                yield Breach(
                    ("checks", number, "issue_ids", index),
                    f"the check {check.id!r} speaks for {issue!r}, which is no issue of the run",
                    "add it to issue_ids, or by `--issue`, or take it out of the check",
                )


_RULES: Final[tuple[Callable[[Spec], Iterator[Breach]], ...]] = (
    _seeds,
    _paths,
    _destinations,
    _constraints,
    _checks,
    _names,
)
