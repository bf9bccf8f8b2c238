"""Going on with a large run of which half is done: time to its first new attempt, peak memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measures import Figure
from benchmarks.processes import STEELYARD, CommandFailed, run
from benchmarks.scale import first_started_at
from benchmarks.work import RunFiles, mock_model, only_run, write_orchestration, write_pack


def measure(*, scale: float) -> Iterator[Figure]:
    """Take 10,000 attempts of `chat`, each with its trajectory, and run 10,000 more."""
    attempts = int(20_000 * scale)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with mock_model(folder, "--text", "41") as url:
            file = write_orchestration(
                folder / "half.yaml",
                pack=write_pack(folder / "pack", attempts),
                harness="chat",
                concurrency=64,
                results=folder / "results",
                model={"id": "m", "base_url": url, "api_key": "EMPTY"},
            )
            document = json.loads(file.read_text())
            document["requests"][0]["execution"] = {"shard": "1/2"}
            file.write_text(json.dumps(document))
            run([*STEELYARD, "launch", str(file)], cwd=folder)
            done = only_run(folder / "results")
            del document["requests"][0]["execution"]
            file.write_text(json.dumps(document))
            used = run([*STEELYARD, "launch", str(file), "--reuse"], cwd=folder)
        (root,) = {path.parent for path in (folder / "results").rglob("attempts.jsonl")} - {
            done.folder
        }
        resumed = RunFiles(root)
        _expect_half_is_taken(resumed, attempts)
        waited_s = first_started_at(resumed) - used.started_at
    title = f"{attempts:,} attempts, half of them done"
    yield Figure(f"{title}: first new attempt started after", waited_s, "s", 3)
    yield Figure(f"{title}: peak memory", used.max_rss_mib, "MiB", 300)


def _expect_half_is_taken(resumed: RunFiles, attempts: int) -> None:
    """Refuse figures of a run that took another number, or did not end.

    Raises:
        CommandFailed: it did.
    """
    lines = resumed.lines("attempts.jsonl")
    taken = sum(b'"reused_from":{' in line for line in lines)
    started = sum(event["kind"] == "started" for event in resumed.events())
    if (len(lines), taken, started) != (attempts, attempts // 2, attempts // 2):
        raise CommandFailed(f"{len(lines)} of {attempts} recorded, {taken} taken, {started} run")
