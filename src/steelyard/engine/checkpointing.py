"""When an attempt's checkpoint is written: before scoring does what takes long or may fail.

An answer that is scored in this process within a moment needs none: its record is as near. So it
is written at once where scoring takes files, steps or a judge; else when scoring opens a session,
or has not ended after `PATIENCE_S`. It is written in a thread, once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import Benchmark
from steelyard.components.values import WEAKEST_FIRST
from steelyard.results.checkpoints import (
    MAX_KEPT_BYTES,
    Checkpoint,
    CheckpointDamaged,
    checkpoint_bytes,
    drop_inputs,
    read_checkpoint,
    write_checkpoint,
)
from steelyard.results.files import Faults, StorageFailed
from steelyard.results.records import Timing

if TYPE_CHECKING:
    from steelyard.engine.admission import Start
    from steelyard.engine.run_state import RunState
    from steelyard.engine.services import Storage
    from steelyard.engine.work import Work

log = logging.getLogger(__name__)

PATIENCE_S: Final = 0.05
"""How long scoring may take before its inputs are put on the disk."""

_HOLDS_LOOP: Final[WeakSet[Benchmark]] = WeakSet()
"""Benchmarks, each made for one request, whose scorers were seen to compute without waiting: no
timer fires meanwhile."""


def precedes_scoring(work: Work) -> bool:
    """True where scoring cannot be immediate: then the checkpoint is on the disk before it."""
    return (
        work.input.carries_files
        or work.input.scores_steps
        or work.services.asks_judges
        or work.services.benchmark in _HOLDS_LOOP
    )


class Checkpointing:
    """Writes the checkpoint of one execution, once, when it is first needed."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._writing: asyncio.Future[dict[str, Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.reference: Mapping[str, Any] | None = None
        """`{path, sha256}` of what is on the disk, for the record."""
        self.drops_inputs = False

    @property
    def _is_possible(self) -> bool:
        work = self._work
        return (
            work.spec.place is not None
            and work.spec.saved is None
            and work.unscored_stage is None
            and work.input.mode is not EvaluationMode.REUSE
            and work.inputs_are_whole
        )

    def before_scoring(self) -> None:
        """Set the timer, where it is not written yet."""
        if self._writing is None and self._is_possible:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PATIENCE_S, self._begin)

    async def written(self) -> None:
        """Wait until it is on the disk; where it cannot be, scoring goes on without."""
        if not self._is_possible:
            return
        self._begin()
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    async def ended(self) -> None:
        """Scoring has ended: what is being written is waited for, nothing more is begun."""
        if self._timer is not None:
            if self._writing is None and self._timer.when() <= asyncio.get_running_loop().time():
                self._note_held_loop()
            self._timer.cancel()
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    def scored(self) -> None:
        """Inputs too large to be kept for a later score are to go once this one is recorded.

        Not before: who dies in between would have neither work nor score.
        """
        held = sum(one.digest.bytes for one in self._work.kept)
        if self.reference is not None and held > MAX_KEPT_BYTES:
            self.reference = None
            self.drops_inputs = True

    def _note_held_loop(self) -> None:
        """It was time, and the timer never fired: from now on scoring is not trusted to be brief.

        Of a request only the first attempt is unprotected: such scorers run one at a time. No
        warning: on a busy machine a scorer that takes a millisecond looks the same, and either way
        nobody has anything to do.
        """
        benchmark = self._work.services.benchmark
        if benchmark not in _HOLDS_LOOP:
            _HOLDS_LOOP.add(benchmark)
            log.info(
                "scoring %s took more than %g s without a pause (it computes, or this machine is "
                "busy): from now on checkpoints are written before it",
                benchmark.id,
                PATIENCE_S,
            )

    def _begin(self) -> None:
        work = self._work
        place = work.spec.place
        if self._writing is not None or place is None:
            return
        storage = work.services.storage
        loop = asyncio.get_running_loop()
        self._writing = loop.run_in_executor(
            None, _write, Path(place.root), _checkpoint(work, place.generation), storage
        )
        self._writing.add_done_callback(self._note)

    def _note(self, writing: asyncio.Future[dict[str, Any]]) -> None:
        if writing.cancelled():
            return
        error = writing.exception()
        if error is None:
            self.reference = writing.result()
            self._work.observer.checkpoint(self._work.spec.token, str(self.reference["path"]))
        else:
            log.warning("no checkpoint of %s: %s", self._work.spec.token, error)


async def let_go_of_inputs(run: RunState, start: Start) -> None:
    """Remove what an attempt was scored by, once its record is on the disk. Never raises."""
    assert run.tasks is not None  # noqa: S101 — attempts start after loading
    task_id, root = run.tasks[start.task].id, run.folder.root
    try:
        await run.journal.synced()
        found = await asyncio.to_thread(read_checkpoint, root, task_id, start.attempt)
        if found is not None:
            await asyncio.to_thread(drop_inputs, root, found, run.faults)
    except (StorageFailed, CheckpointDamaged, OSError) as error:
        log.warning("large inputs of %s attempt %d stay: %s", task_id, start.attempt, error)


def _checkpoint(work: Work, generation: str | None) -> Checkpoint:
    spec = work.spec
    usage, _ = work.consumed()
    return Checkpoint(
        task_id=spec.task.id,
        attempt=spec.attempt,
        execution=spec.execution,
        token=spec.token,
        generation=generation,
        mode=work.input.mode.value,
        answer=work.answer,
        steps=tuple(work.steps),
        issues=tuple(work.issues),
        usage=usage,
        timing=Timing(
            setup_s=work.setup_s,
            agent_s=work.agent_s,
            waited_s=work.waited_s,
            collect_s=work.collect_s,
        ),
        trust=min(work.trusts, key=WEAKEST_FIRST.index, default=None),
        environment=work.description,
        artifacts=tuple(work.artifacts),
        inputs=tuple(work.kept),
    )


def _write(root: Path, checkpoint: Checkpoint, storage: Storage) -> dict[str, Any]:
    """Write it, flagged where a secret stands in it. Blocking.

    Raises:
        StorageFailed: it could not be written.
    """
    data = checkpoint_bytes(checkpoint)
    has_secret = storage.has_secret
    if any(one.digest.has_secret for one in checkpoint.inputs) or (
        has_secret is not None and has_secret(data)
    ):
        checkpoint = replace(checkpoint, flagged=True)
        data = checkpoint_bytes(checkpoint)
    faults: Faults = storage.faults
    try:
        path = write_checkpoint(root, checkpoint, faults)
    except ValueError as error:  # a path that no system can hold
        raise StorageFailed(root, OSError(str(error))) from error
    return {"path": path, "sha256": hashlib.sha256(data).hexdigest()}
