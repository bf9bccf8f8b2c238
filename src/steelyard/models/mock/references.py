"""Answers from a benchmark's references, right with a given chance.

Whether a call is answered rightly is drawn by seed, prompt and how often that prompt was answered
before: k attempts get k draws, and nothing depends on which call came first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from steelyard.components.benchmark import Benchmark
from steelyard.components.registry import Kind, find, pack_folder
from steelyard.config.errors import BadInput
from steelyard.models.mock.chance import draw
from steelyard.models.mock.wire import Answer, Call, Turn, prompt_digest

SHORT_CHARACTERS: Final = 60
ATTEMPTS_INDEXED: Final = 16
"""For benchmarks whose prompt depends on the attempt."""
WRONG_TEXT: Final = "I do not know."


@dataclass(frozen=True, slots=True)
class ReferenceAnswers:
    """A mock model that knows a benchmark's answers."""

    right: Mapping[str, str]
    """By digest of the messages."""
    wrong: Mapping[str, str]
    accuracy: float
    accuracy_by_model: Mapping[str, float]
    seed: int

    def __call__(self, call: Call) -> Answer | None:
        """Give the right answer or the wrong one, None for an unknown prompt."""
        digest = prompt_digest(call.turns)
        if digest not in self.right:
            return None
        accuracy = self.accuracy_by_model.get(call.model, self.accuracy)
        is_right = draw(self.seed, "right", call.model, digest, call.nth) < accuracy
        return Answer((self.right if is_right else self.wrong)[digest])


def from_benchmark(
    name: str,
    params: Mapping[str, Any],
    *,
    accuracy: float,
    accuracy_by_model: Mapping[str, float],
    seed: int,
) -> ReferenceAnswers:
    """Load a benchmark's tasks and index their references by prompt.

    Raises:
        BadInput: there is no such benchmark, its tasks cannot be loaded, or none has an answer.
    """
    benchmark = _make(name, params)
    found: list[tuple[str, str]] = []
    for task in benchmark.load_tasks():
        reference = benchmark.reference(task)
        if reference is None or reference.answer is None:
            continue
        digests = [_digest(benchmark, task, attempt) for attempt in (1, 2)]
        if digests[0] != digests[1]:
            digests += [_digest(benchmark, task, n) for n in range(3, ATTEMPTS_INDEXED + 1)]
        found += [(digest, reference.answer) for digest in dict.fromkeys(digests)]
    if not found:
        raise BadInput(
            f"no task of the benchmark {name!r} has a reference answer",
            remedy="give answers with --answers FILE",
        )
    right = dict(found)
    candidates = list(dict.fromkeys(right.values()))
    wrong = {digest: wrong_answer(answer, candidates) for digest, answer in right.items()}
    return ReferenceAnswers(right, wrong, accuracy, accuracy_by_model, seed)


def _make(name: str, params: Mapping[str, Any]) -> Benchmark:
    component = find(Kind.BENCHMARK, name).component
    folder = pack_folder(name, Path.cwd())
    if folder is not None:  # as the engine makes it
        params = {"path": str(folder), **params}
    try:
        checked = component.Params.model_validate(dict(params))
    except ValidationError as error:
        raise BadInput(f"--benchmark-params: {error.errors()[0]['msg']}") from None
    made = component(checked)
    if not isinstance(made, Benchmark):
        raise BadInput(f"{name!r} is not a benchmark")
    return made


def _digest(benchmark: Benchmark, task: Any, attempt: int) -> str:
    messages = benchmark.task_input(task, attempt=attempt, seed=0).messages
    return prompt_digest([Turn(message.role, message.content) for message in messages])


def wrong_answer(right: str, candidates: Sequence[str]) -> str:
    """Give an answer that looks like the right one, is wrong, and ends at once when it is run.

    A number plus one; for a short text another task's short answer; for code a body that returns
    nothing; else a plain "I do not know."
    """
    try:
        return f"{int(right) + 1}"
    except ValueError:
        pass
    if "\n" not in right.strip() and len(right) <= SHORT_CHARACTERS and not _is_code(right):
        start = candidates.index(right) if right in candidates else 0
        for step in range(1, len(candidates)):
            other = candidates[(start + step) % len(candidates)]
            if len(other) <= SHORT_CHARACTERS and other.strip().lower() != right.strip().lower():
                return other
        return WRONG_TEXT
    return _wrong_code(right) if _is_code(right) else WRONG_TEXT


def _is_code(text: str) -> bool:
    return re.search(r"^\s*(def |return\b|class |import |from \w+ import )", text, re.M) is not None


def _wrong_code(right: str) -> str:
    signatures = re.findall(r"^def [A-Za-z_]\w*\(", right, re.M)
    if not signatures:
        return "    return None\n"
    code = "".join(f"{head}*args, **kwargs):\n    return None\n\n\n" for head in signatures)
    fence = re.search(r"^```\w*$", right, re.M)
    return f"{fence.group()}\n{code.rstrip()}\n```\n" if fence else code.rstrip() + "\n"
