"""What a run measures, fixed before its baseline: a spec over a profile. Pure.

A saved profile that changes later changes no run: the run keeps this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from steelyard.config.source import Node
from steelyard.fix.policies import Policy
from steelyard.fix.schema.profile import Profile, profile_breaches
from steelyard.fix.schema.reading import Breach, InvalidFixFile
from steelyard.fix.schema.search import OWN_FIELD, Search, search_against_spec
from steelyard.fix.schema.spec import DEFAULT_REPETITIONS, Spec
from steelyard.fix.schema.spec_rules import issue_breaches, seeds_breach, spec_breaches
from steelyard.fix.verify.confirmation import ConfirmationPlan
from steelyard.fix.verify.constraints import Constraint
from steelyard.fix.verify.measured import Objective
from steelyard.results.identity import canonical_json

SCHEMA: Final = "fix-frozen/1"
NOT_MEASURING: Final = frozenset({"goal", "issue_ids", "rigor", "confirmation"})
"""Fields of a spec that change nothing in what a single trial measures."""


@dataclass(frozen=True, slots=True)
class FrozenSpec:
    """A spec with nothing left open, and the profile it runs under."""

    spec: Spec
    """Its goal, issues, repetitions and seeds are those in force."""
    profile: Profile
    repetitions_from: Literal["spec", "profile", "default"]
    warnings: tuple[str, ...]
    """What is allowed, and a user should know."""
    measuring_digest: str
    """SHA-256 of what a trial measures: benchmark, metrics, constraints, checks, paths, seeds."""
    digest: str
    """SHA-256 of all of it."""

    @property
    def repetitions(self) -> int:
        """Trials of each candidate."""
        assert self.spec.repetitions is not None  # noqa: S101 - `freeze` fills it in
        return self.spec.repetitions

    @property
    def seeds(self) -> tuple[int, ...]:
        """One for each repetition, in order."""
        assert self.spec.seeds is not None  # noqa: S101 - `freeze` fills it in
        return tuple(self.spec.seeds)


def freeze(
    spec: Spec,
    profile: Profile,
    *,
    goal: str | None = None,
    issues: Sequence[str] = (),
    root: Node | None = None,
) -> FrozenSpec:
    """Lay a spec over a profile.

    Repetitions are the spec's, else the profile's, else 3; seeds the spec's, else 0, 1, 2, …

    Args:
        spec: as it was read.
        profile: as it was read.
        goal: takes the place of the spec's.
        issues: are added to the spec's.
        root: the document the spec was read from, for places.

    Raises:
        InvalidFixFile: everything that does not fit together, at once.
    """
    repetitions, whence = _repetitions(spec, profile)
    resolved = spec.model_copy(
        update={
            "goal": goal if goal is not None else spec.goal,
            "issue_ids": list(dict.fromkeys([*spec.issue_ids, *issues])),
            "repetitions": repetitions,
            "seeds": list(range(repetitions)) if spec.seeds is None else list(spec.seeds),
        }
    )
    breaches = spec_breaches(spec.model_copy(update={"repetitions": None}))
    breaches += seeds_breach(spec, repetitions, _WHENCE[whence])
    breaches += issue_breaches(resolved)
    breaches += _intent(resolved)
    problems = [breach.problem(root) for breach in breaches]
    others = profile_breaches(profile)
    others += search_against_spec(profile.search, spec.metrics, spec.task_metrics, ("search",))
    others += _room(repetitions, profile)
    problems += [
        Breach(("profile", *one.field), one.message, one.remedy).problem() for one in others
    ]
    if problems:
        raise InvalidFixFile.of(problems)
    return _with_digests(resolved, profile, whence)


_WHENCE: Final[Mapping[str, str]] = {
    "spec": "the spec",
    "profile": "the profile",
    "default": "the default",
}


def _repetitions(spec: Spec, profile: Profile) -> tuple[int, Literal["spec", "profile", "default"]]:
    if spec.repetitions is not None:
        return spec.repetitions, "spec"
    if profile.repetitions is not None:
        return profile.repetitions, "profile"
    return DEFAULT_REPETITIONS, "default"


def _intent(spec: Spec) -> list[Breach]:
    if (spec.goal is not None and spec.goal.strip()) or spec.issue_ids:
        return []
    return [
        Breach(
            ("goal",),
            "a run needs a goal or an issue",
            "write goal or issue_ids in the spec, or give `--goal TEXT` or `--issue ID`",
        )
    ]


def _room(repetitions: int, profile: Profile) -> list[Breach]:
    if repetitions <= profile.limits.max_trials:
        return []
    return [
        Breach(
            ("limits", "max_trials"),
            f"{profile.limits.max_trials} trials are fewer than the baseline's {repetitions}",
            f"allow at least {2 * repetitions}: the baseline and one candidate",
        )
    ]


def _warnings(spec: Spec, profile: Profile) -> tuple[str, ...]:
    found = []
    spoken_for = {issue for check in spec.checks for issue in check.issue_ids}
    if silent := [issue for issue in spec.issue_ids if issue not in spoken_for]:
        found.append(
            f"no check speaks for {', '.join(silent)}: nothing will show that it is solved"
        )
    repetitions = spec.repetitions or DEFAULT_REPETITIONS
    if repetitions < 2:
        found.append("one repetition says nothing of noise: no interval, no test")
    if 2 * repetitions > profile.limits.max_trials:
        found.append("max_trials leaves too few trials for a single candidate")
    return tuple(found)


def _with_digests(
    spec: Spec, profile: Profile, whence: Literal["spec", "profile", "default"]
) -> FrozenSpec:
    written = spec.model_dump(mode="json")
    measuring = {name: value for name, value in written.items() if name not in NOT_MEASURING}
    measuring["setup"] = profile.setup
    order = _order(spec)
    whole = {
        "spec": written,
        "profile": profile.model_dump(mode="json"),
        "from": whence,
        "order": order,
    }
    return FrozenSpec(
        spec=spec,
        profile=profile,
        repetitions_from=whence,
        warnings=_warnings(spec, profile),
        measuring_digest=_digest("fix-measuring/1", measuring),
        digest=_digest(SCHEMA, whole),
    )


def _order(spec: Spec) -> dict[str, list[str]]:
    """Give names in the order they were declared in, which policies go by; JSON may lose it."""
    return {field: list(getattr(spec, field)) for field in _ORDERED}


_ORDERED: Final = ("metrics", "task_metrics")


def _in_order(spec: Mapping[str, Any], order: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    ordered = {field: {name: spec[field][name] for name in names} for field, names in order.items()}
    return {**spec, **ordered}


def _digest(kind: str, value: Any) -> str:
    return hashlib.sha256(canonical_json([kind, value])).hexdigest()


class FrozenSpecDamaged(InvalidFixFile):
    """A frozen spec that was read back is not what was written."""


def frozen_document(frozen: FrozenSpec) -> dict[str, Any]:
    """Write a frozen spec as JSON; `frozen_from` reads it back."""
    return {
        "schema": SCHEMA,
        "digest": frozen.digest,
        "measuring_digest": frozen.measuring_digest,
        "repetitions_from": frozen.repetitions_from,
        "order": _order(frozen.spec),
        "spec": frozen.spec.model_dump(mode="json"),
        "profile": frozen.profile.model_dump(mode="json"),
    }


def frozen_from(document: Mapping[str, Any]) -> FrozenSpec:
    """Read a frozen spec back and compare its digest.

    Raises:
        FrozenSpecDamaged: it was changed since it was written, or is of another format.
    """
    if document.get("schema") != SCHEMA:
        raise FrozenSpecDamaged(
            f"a frozen spec of the format {document.get('schema')!r}",
            remedy=f"this version reads {SCHEMA}",
        )
    try:
        found = _with_digests(
            Spec.model_validate(_in_order(document["spec"], document["order"]), strict=True),
            _profile_back(document["profile"]),
            document["repetitions_from"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FrozenSpecDamaged(
            "the frozen spec cannot be read back", remedy="restore the ledger from a backup"
        ) from error
    if found.digest != document.get("digest"):
        raise FrozenSpecDamaged(
            "the frozen spec does not have the digest it was written with",
            remedy="restore the ledger from a backup",
        )
    return found


def _profile_back(document: Mapping[str, Any]) -> Profile:
    """Read a profile whose every default is written out.

    What only one strategy reads is left out again: written out it looks as if it had been asked.
    """
    search = {
        name: value
        for name, value in document["search"].items()
        if OWN_FIELD.get(name, document["search"]["strategy"]) == document["search"]["strategy"]
    }
    return Profile.model_validate({**document, "search": search}, strict=True)


def objectives_of(spec: Spec) -> tuple[Objective, ...]:
    """Give what is measured, in the order it was declared, as `verify/` takes it."""
    return tuple(
        Objective(name, metric.direction, metric.unit) for name, metric in spec.metrics.items()
    )


def task_objectives_of(spec: Spec) -> tuple[Objective, ...]:
    """Give the tasks, in the order they were declared, as `verify/` takes them."""
    return tuple(
        Objective(name, metric.direction, metric.unit) for name, metric in spec.task_metrics.items()
    )


def constraints_of(spec: Spec) -> tuple[Constraint, ...]:
    """Give the hard constraints as `verify/` takes them."""
    return tuple(Constraint(c.metric, c.op, c.bound, c.reference) for c in spec.constraints)


def confirmation_of(spec: Spec) -> ConfirmationPlan:
    """Give how finalists are tested as `verify/` takes it."""
    written = spec.confirmation
    return ConfirmationPlan(written.repetitions, written.alpha, dict(written.min_effect))


def policy_of(search: Search, revision: int = 0) -> Policy:
    """Give a search policy as `policies.py` takes it.

    Args:
        search: as it was written.
        revision: counts the policies of the run.
    """
    return Policy(
        strategy=search.strategy,
        objective=search.objective,
        k=search.k,
        epsilon=search.epsilon,
        temperature=search.temperature,
        seed=search.seed,
        revision=revision,
    )
