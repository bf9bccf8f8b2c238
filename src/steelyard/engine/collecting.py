"""Take out of an agent's environment what scoring needs and what the user wants to keep.

Scoring inputs are copied straight into the attempt's folder of the run, where they stay for a
later score; without a run, into a private folder that goes with the execution.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from steelyard.components.artifacts import ArtifactSpec, EvaluationMode
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode, Phase
from steelyard.results.artifacts import (
    TreeDamaged,
    collecting,
    digest_tree,
    hide_names,
    list_artifacts,
    set_aside,
)
from steelyard.results.checkpoints import ScoringInput
from steelyard.results.files import WritePoint, write_beside
from steelyard.results.layout import attempt_folder

if TYPE_CHECKING:
    from steelyard.engine.work import Work

COMMAND_S: Final = 60.0
"""What a command that answers, or that prepares a collection, may take."""
_MOST_LISTED: Final = 200
"""More artifacts than this are listed in a file beside the record."""
MATCHED: Final = ""
"""The path that stands for all files that patterns took: they lie at their own paths below."""


async def collect(work: Work) -> None:
    """Take the answer, where it lies in the environment, and the files that scoring needs."""
    task_input = work.input
    if not (task_input.answer_file or task_input.answer_command or task_input.carries_files):
        return
    work.begin(Phase.COLLECT)
    session = await work.session()
    await _take_answer(work, session)
    if task_input.carries_files:
        await _take_inputs(work, session)


async def _take_answer(work: Work, session: Session) -> None:
    task_input = work.input
    if task_input.answer_file is not None:
        try:
            data = await session.read_file(task_input.answer_file)
            work.answer = work.without_token(data.decode("utf-8", "replace"))
        except FileNotFoundError:
            work.answer = None
        except ValueError as error:
            work.answer = None
            work.add_issue(IssueCode.OUTPUT_TRUNCATED, f"{task_input.answer_file}: {error}")
    elif task_input.answer_command is not None:
        done = await session.exec(task_input.answer_command, timeout_s=COMMAND_S)
        work.answer = work.without_token(done.stdout_text if done.exit_code == 0 else None)


async def _take_inputs(work: Work, session: Session) -> None:
    folder = await _input_folder(work)
    if work.input.collect_command is not None:
        limit_s = work.input.collect_command_s
        await _prepare(work, session, work.input.collect_command, limit_s)
    with collecting(folder, WritePoint.INPUTS_COLLECTED, work.services.storage.faults):
        for number, path in enumerate(work.input.collect):
            target = folder / str(number)
            try:
                await session.download(path, target)
            except FileNotFoundError:
                continue  # scoring finds it missing, as the agent left it
            except ValueError as error:
                # Too deep, too large or leading out: the agent's doing, which a fault of ours would
                # leave out of the figures. Scoring finds nothing there.
                work.add_issue(IssueCode.OUTPUT_TRUNCATED, f"{path}: {error}")
                await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
                continue
            work.inputs[path] = target
        if work.input.artifacts is not None:
            target = folder / "matched"
            await asyncio.to_thread(target.mkdir, exist_ok=True)
            await _collect_into(work, session, _checked(work.input.artifacts), target)
            work.inputs[MATCHED] = target
    await _note_inputs(work)


def _checked(wanted: ArtifactSpec) -> ArtifactSpec:
    problem = wanted.problem()
    if problem is None and any(path.startswith("/") for path in wanted.paths):
        problem = "what scoring needs must lie in the working folder"
    if problem is not None:
        raise AttemptFault(IssueCode.TASK_INVALID, f"the task's artifacts: {problem}")
    return wanted


async def _input_folder(work: Work) -> Path:
    place = work.spec.place
    if work.unscored_stage is not None:  # of a task in stages nothing is scored again
        return await work.make_scratch() / f"inputs-{len(work.stage_evaluations) + 1}"
    if place is None or work.input.mode is EvaluationMode.REUSE:
        return await work.make_scratch() / "inputs"
    folder = attempt_folder(work.spec.task.id, work.spec.attempt)
    return Path(place.root) / folder / f"inputs-{work.spec.execution}"


async def _note_inputs(work: Work) -> None:
    """Digest what was taken, for the checkpoint; what cannot be read cannot be kept."""
    place = work.spec.place
    if place is None or work.input.mode is EvaluationMode.REUSE or work.unscored_stage is not None:
        return
    root, has_secret = Path(place.root), work.services.storage.has_secret
    for path, source in work.inputs.items():
        try:
            digest = await asyncio.to_thread(digest_tree, source, has_secret)
        except TreeDamaged:
            work.inputs_are_whole = False
            return
        work.kept.append(ScoringInput(path, source.relative_to(root).as_posix(), digest))


async def save_artifacts(work: Work) -> None:
    """Keep what the user asked for, as far as the agent's environment was ever open."""
    wanted, place, session = work.spec.request.save_artifacts, work.spec.place, work.agent
    if not wanted or place is None or session is None:
        return
    work.begin(Phase.COLLECT)
    root, storage = Path(place.root), work.services.storage
    folder = attempt_folder(work.spec.task.id, work.spec.attempt)
    kept = f"{folder}/artifacts"
    if work.spec.execution > 1:
        earlier = f"{folder}/execution-{work.spec.execution - 1}/artifacts"
        await asyncio.to_thread(set_aside, root, kept, earlier, storage.faults)
    with collecting(root / kept, WritePoint.ARTIFACTS_COLLECTED, storage.faults):
        for one in wanted:
            await _collect_into(work, session, one, root / kept)
        if storage.has_secret is not None:
            hidden = await asyncio.to_thread(hide_names, root / kept, storage.has_secret)
            if hidden:
                said = f"a secret stood in the names of {hidden} of the artifacts"
                work.add_issue(IssueCode.ARTIFACT_FLAGGED, f"{said}; they have other names")
    found = await asyncio.to_thread(list_artifacts, root, kept, storage.has_secret)
    flagged = [str(one["path"]) for one in found if one.get("flagged")]
    if flagged:
        more = f" and {len(flagged) - 1} more" if len(flagged) > 1 else ""
        work.add_issue(IssueCode.ARTIFACT_FLAGGED, f"a secret stands in {flagged[0]}{more}")
    work.artifacts += [_listed(work, root, folder, found)] if len(found) > _MOST_LISTED else found


def _listed(work: Work, root: Path, folder: str, found: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Write a long list beside the record, give the one entry that stands for it."""
    data = orjson.dumps(found)
    faults = work.services.storage.faults
    path = write_beside(root, f"{folder}/artifacts.json", data, faults)
    digest = hashlib.sha256(data).hexdigest()
    return {"path": path, "sha256": digest, "bytes": len(data), "lists": len(found)}


async def _collect_into(work: Work, session: Session, wanted: ArtifactSpec, target: Path) -> None:
    if wanted.command is not None:
        await _prepare(work, session, wanted.command)
    found = await session.collect(wanted, target)
    if (summary := found.summary()) is not None:
        work.add_issue(IssueCode.OUTPUT_TRUNCATED, f"artifacts {summary}")


async def _prepare(
    work: Work, session: Session, command: tuple[str, ...], limit_s: float = COMMAND_S
) -> None:
    done = await session.exec(command, timeout_s=limit_s)
    if done.exit_code != 0:
        said = done.stderr_text.strip()[-300:]
        text = f"{command[0]} ended with {done.exit_code} before files were taken"
        work.add_issue(IssueCode.OUTPUT_TRUNCATED, f"{text}: {said}" if said else text)


def files_for_scoring(inputs: Mapping[str, Path]) -> dict[str, Path]:
    """Give what scoring sees: collected paths, and every file that a pattern took."""
    found = {path: source for path, source in inputs.items() if path != MATCHED}
    matched = inputs.get(MATCHED)
    if matched is not None:
        for path in sorted(matched.rglob("*")):
            if path.is_file() and not path.is_symlink():
                found.setdefault(path.relative_to(matched).as_posix(), path)
    return found
