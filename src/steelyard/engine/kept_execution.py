"""What of an execution lies in files beside the records: steps, large answers, earlier tries.

The last execution's lie in its attempt's folder, those of the ones before it in
`execution-<j>/` below, with an `execution.json` each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Issue
from steelyard.engine.execution_record import KeptAnswer
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.retries import Scope
from steelyard.engine.spec import ExecutionResult
from steelyard.results.executions import write_execution
from steelyard.results.files import NO_FAULTS, Faults, write_beside
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import INLINE_LIMIT_BYTES
from steelyard.results.trajectory import atif_document, write_trajectory

LARGE_ANSWER_CHARS: Final = INLINE_LIMIT_BYTES // 4
"""Above this an answer may be too large for its record: a character takes up to 4 bytes."""


def has_files(result: ExecutionResult) -> bool:
    """True where an execution leaves files beside its record."""
    is_large = result.answer is not None and len(result.answer) > LARGE_ANSWER_CHARS
    return is_large or bool(result.steps)


_CHEAP_S: Final = 0.01


def is_cheap(result: ExecutionResult) -> bool:
    """True where an execution is sooner made again than its record is written by itself."""
    times = result.times
    took_s = times.setup_s + times.agent_s + times.collect_s + times.evaluate_s
    return not result.usage.requests and took_s < _CHEAP_S


class Keeper:
    """Writes the files of one run's executions. Every method may raise `StorageFailed`."""

    def __init__(
        self,
        root: Path,
        plan: RequestPlan,
        *,
        redact: Callable[[bytes], bytes] | None = None,
        faults: Faults = NO_FAULTS,
    ) -> None:
        self._root = root
        self._plan = plan
        self._redact = redact
        self._faults = faults

    def trajectory(self, folder: str, token: str, result: ExecutionResult) -> dict[str, Any] | None:
        """Write an execution's steps; give the record's `trajectory`, None where it made none."""
        if not result.steps:
            return None
        harness = self._plan.services.harness
        document = atif_document(
            result.steps,
            session_id=token,
            harness=harness.id,
            version=harness.version,
            model=self._plan.request.model.id,
            usage=result.agent_usage,
        )
        return write_trajectory(
            self._root, folder, document, redact=self._redact, faults=self._faults
        )

    def large_answer(self, folder: str, answer: str | None) -> KeptAnswer | None:
        """Write an answer, say where it lies; None where the record holds it."""
        if answer is None or len(answer) <= LARGE_ANSWER_CHARS:
            return None
        data = answer.encode("utf-8", "replace")
        if self._redact is not None:
            data = self._redact(data)
        path = write_beside(self._root, f"{folder}/answer.txt", data, self._faults)
        return KeptAnswer(path, hashlib.sha256(data).hexdigest())

    def execution(
        self, record: AttemptRecord, token: str, scope: Scope, cause: Issue, wait_s: float
    ) -> None:
        """Write what an execution came to that another one replaces."""
        write_execution(
            self._root,
            record,
            token=token,
            retry={"scope": scope.value, "cause": cause.code.value, "wait_s": round(wait_s, 6)},
            redact=self._redact,
            faults=self._faults,
        )
