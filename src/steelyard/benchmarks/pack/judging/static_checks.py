"""What can be said of a pack's judges before any is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from steelyard.benchmarks.pack.schema_validators.judging import JudgeValidatorSpec
from steelyard.benchmarks.pack.template import ATTEMPT_VARIABLES, Template
from steelyard.config.errors import Problem

if TYPE_CHECKING:
    from steelyard.benchmarks.pack.document import Document
    from steelyard.benchmarks.pack.schema import PackFile

_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SECRET: Final = ("api_key", "extra_headers")
SECRET_FIELDS: Final = frozenset(("judge", "model", name) for name in _SECRET)
"""The fields of which `secret_problems` speaks, so that nothing else needs to."""


def secret_problems(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    """Refuse keys, headers and references in a pack's `judge`: a pack is passed on as it is."""
    judge = data.get("judge")
    model = judge.get("model") if isinstance(judge, dict) else None
    if not isinstance(model, dict):
        return []
    problems = [
        document.problem(
            f"a pack holds no {name.replace('_', ' ')}",
            *("judge", "model", name),
            remedy=f"write it in the request: `benchmark: {{judge: {{model: {{{name}: …}}}}}}`",
        )
        for name in _SECRET
        if name in model
    ]
    problems += [
        document.problem(
            f"{value} is not looked up for a pack",
            *("judge", "model", *path),
            remedy="write the value, or this field in the request under `benchmark.judge.model`",
        )
        for path, value in _texts(model)
        if path[0] not in _SECRET and _REFERENCE.fullmatch(value)
    ]
    return problems


def judge_problems(
    document: Document,
    file: PackFile,
    messages: Sequence[tuple[str, Template]],
    *,
    has_reference: bool,
) -> list[Problem]:
    """Hold the validators of type judge against the rest of the pack.

    Args:
        document: where they are written.
        file: the pack.
        messages: its prompt.
        has_reference: whether the pack's reference has an answer.
    """
    judges = [
        (number, spec)
        for number, spec in enumerate(file.scoring.validators)
        if isinstance(spec, JudgeValidatorSpec)
    ]
    problems = []
    if file.judge is not None and not judges:
        problems.append(
            document.problem(
                "no validator is of type judge",
                "judge",
                remedy="leave it out, or add a validator of type judge",
            )
        )
    varying = ATTEMPT_VARIABLES & {name for _, item in messages for name in item.variables}
    for number, spec in judges:
        path = ("scoring", "validators", number, "show")
        if "prompt" in spec.show and varying:
            problems.append(
                document.problem(
                    f"the prompt depends on {min(varying)!r}, so a judge cannot be shown it",
                    *path,
                    remedy="write `show: []`, and what the judge must know into the rubric",
                )
            )
        if "reference" in spec.show and spec.reference is None and not has_reference:
            problems.append(
                document.problem(
                    "there is no reference answer to show",
                    *path,
                    remedy="give the validator, or the pack, a `reference`",
                )
            )
    return problems


def _texts(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, str]]:
    if isinstance(tree, str) and path:
        yield path, tree
    items = tree.items() if isinstance(tree, dict) else enumerate(tree or ())
    for name, item in items if isinstance(tree, dict | list) else ():
        yield from _texts(item, (*path, name))
