"""From names to scanners, and to the judge that some of them ask: all faults before it starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from steelyard.components.contract import own_code
from steelyard.components.registry import Kind
from steelyard.components.scanner import Scanner
from steelyard.config.envrefs import expand
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.sealing import seal
from steelyard.config.secrets import SecretStore, sealed_json
from steelyard.config.source import plain
from steelyard.engine.services import EndpointPool, Maker, ModelEndpoint
from steelyard.engine.spec import ComponentSpec
from steelyard.evalset.project import Project
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.spent import set_spending
from steelyard.models.allowance import Allowance

NO_JUDGE: Final = "write `judge: {model: {id: …, base_url: …}}` in steelyard.yaml"


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """The model that scanners ask, and what it may still cost."""

    endpoint: ModelEndpoint
    allowance: Allowance = field(default_factory=Allowance)
    """Of the whole scan: what the set's budget has left."""


def make_scanners(
    names: Sequence[str],
    maker: Maker,
    *,
    has_judge: bool,
    samples: int | None = None,
    place_of: Callable[[int], Where] | None = None,
) -> tuple[Scanner, ...]:
    """Make each scanner, and find out whether it can run here.

    Args:
        names: ids, aliases, rule files, `./file.py:Class`, `module:Class`.
        maker: makes components.
        has_judge: whether there is a model for those that ask one.
        samples: how often the judge is asked each question, where a scanner lets that be chosen;
            None for the scanner's own number.
        place_of: gives where the name of a number is written, for what no file says of itself.

    Raises:
        BadInput: all that is wrong with any of them.
    """
    made: dict[str, Scanner] = {}
    problems: list[Problem] = []
    for number, name in enumerate(names):
        where = Where() if place_of is None else place_of(number)
        try:
            spec = ComponentSpec(name, _params(name, maker, samples))
            scanner: Scanner = maker.component(Kind.SCANNER, spec)
            what = f"the scanner {name!r}: unavailable()"
            lacking = own_code(what, scanner, scanner.unavailable)
        except BadInput as error:
            problems += [p if str(p.where) else replace(p, where=where) for p in error.problems]
            continue
        if scanner.id in made:
            problems.append(Problem(f"the scanner {scanner.id!r} is named twice", where))
        elif lacking is not None:
            said = f"the scanner {scanner.id!r} cannot run here: {lacking}"
            problems.append(Problem(said, where))
        elif scanner.needs_model and not has_judge:
            said = f"the scanner {scanner.id} asks a judge model, and the project names none"
            problems.append(Problem(said, where, NO_JUDGE))
        made.setdefault(scanner.id, scanner)
    if problems:
        raise BadInput.of(problems)
    return tuple(made.values())


def _params(name: str, maker: Maker, samples: int | None) -> dict[str, Any]:
    if samples is None:
        return {}
    found: type[Scanner] = maker.found(Kind.SCANNER, name).component
    takes = found.needs_model and "samples" in found.Params.model_fields
    return {"samples": samples} if takes else {}


def judge_samples(project: Project) -> int | None:
    """Say how often the project's judge is asked each question; None where it does not say."""
    node = None if project.judge is None else project.judge.at(("samples",))
    return node.value if node is not None and isinstance(node.value, int) else None


def version_of(scanner: Scanner) -> str:
    """Give what tells what a scanner finds: its version, and parameters other than by default."""
    params = scanner.params.model_dump(mode="json", exclude_defaults=True)
    if not params:
        return scanner.version
    data = orjson.dumps(params, option=orjson.OPT_SORT_KEYS, default=str)
    return f"{scanner.version}+{hashlib.sha256(data).hexdigest()[:8]}"


def judge_settings(project: Project, store: SecretStore) -> Mapping[str, Any] | None:
    """Give the project's judge as `ModelSettings` JSON; None where it names none.

    Args:
        project: what `read_project` gave.
        store: learns the secrets in it.

    Raises:
        BadInput: a variable is not set, or no model is named.
    """
    if project.judge is None:
        return None
    problems: list[Problem] = []
    node = expand(project.judge, project.environ, problems, [])
    if problems:
        raise BadInput.of(problems)
    sealed = seal(node, store, [], scope="judge.")
    model = sealed_json(plain(sealed)).get("model") or {}
    if not model.get("id"):
        raise BadInput("the judge names no model", where=node.origin.where, remedy=NO_JUDGE)
    found: Mapping[str, Any] = model
    return found


def judge_model(
    opened: OpenedSet,
    endpoints: EndpointPool,
    settings: Mapping[str, Any],
    prices: Mapping[str, Any],
) -> JudgeModel:
    """Open the way to the judge, and hold it to what the set's budget has left.

    Args:
        opened: the set.
        endpoints: opens the endpoint; closed by whoever made it.
        settings: what `judge_settings` gave.
        prices: the project's own.

    Raises:
        BadInput: an address or parameter that cannot be sent.
    """
    limit = opened.budget_usd()
    left = None
    if limit is not None:
        left = max(0.0, limit - set_spending(opened).known_usd)
    return JudgeModel(endpoints.get(settings, prices), Allowance(usd=left))
