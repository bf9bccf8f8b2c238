"""What came of a launch, and of each of its runs; the same types for runs that were made earlier.

A `RunResult` holds figures; records, answers and trajectories are read from the run directory when
they are asked for, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from steelyard.components.issues import Outcome
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.errors import SteelyardError
from steelyard.engine.events import RequestResult, RunOutcome
from steelyard.results.documents import RunUnreadable
from steelyard.results.records import AttemptRecord
from steelyard.sdk.faults import NotCompleted
from steelyard.sdk.scores import Score

if TYPE_CHECKING:
    import pandas
    import polars

    from steelyard.results.reader import RunReader


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunResult:
    """One run: how it ended, its figures, and the way to its records."""

    name: str
    """The request's name."""
    run_id: str | None
    run_dir: Path | None
    """None, and no `run_id`, where the request never began: the launch was stopped before its
    turn, or its folder could not be made."""
    outcome: RunOutcome | None
    """None where the run has not ended, or died without saying how."""
    reason: str | None
    """Why it did not complete."""
    planned: int
    """Attempts."""
    counts: Mapping[Outcome, int]
    """Every outcome; adds up to `planned`."""
    scores: tuple[Score, ...]
    """The headline first; empty where no summary could be made."""
    usage: Usage
    """Of all attempts, reused ones included; `cost_usd` is None where a call had no known price."""
    metrics: Mapping[str, Any] | None
    """What `metrics.json` holds, all of it."""
    reuse: str | None = None
    """Which run was taken from, which were passed over, and why."""
    _redact: Callable[[str], str] = field(default=str, kw_only=True)
    """Hides the secrets of the launch in what notebooks show; files are redacted already."""

    @property
    def is_complete(self) -> bool:
        """True where every attempt ended and none of them FATAL."""
        return self.outcome is RunOutcome.COMPLETED

    @property
    def headline(self) -> Score | None:
        """The figure that stands for the run; None where no summary could be made."""
        return next((score for score in self.scores if score.is_headline), None)

    @property
    def cost_usd(self) -> float | None:
        """What the models cost; None where a call had no known price."""
        return self.usage.cost_usd

    def score(self, metric: str | None = None, estimator: str | None = None) -> Score:
        """Give a score: the headline, or the first of a metric, or of an estimator (`pass@3`).

        Raises:
            KeyError: there is none such; names those that there are.
        """
        for score in self.scores:
            if metric in (None, score.metric) and estimator in (None, score.estimator):
                return score
        known = ", ".join(f"{score.metric} {score.estimator}" for score in self.scores)
        asked = " ".join(word for word in (metric, estimator) if word) or "score"
        raise KeyError(f"{self.name} has no {asked}; it has: {known or 'none'}")

    def attempts(
        self, where: Callable[[AttemptRecord], bool] | None = None
    ) -> Iterator[AttemptRecord]:
        """Iterate over the records, in the order in which attempts ended, read as you go.

        Raises:
            RunUnreadable: the run directory is gone, or cannot be read.
        """
        if self.run_dir is not None:
            yield from self._reader().records(where)

    def failures(self) -> Iterator[AttemptRecord]:
        """Iterate over attempts without a score, or with none in the primary metric."""
        from steelyard.results.failures import PrimaryMetric

        if self.run_dir is None:
            return
        reader = self._reader()
        yield from reader.records(PrimaryMetric(reader.document).is_failed)

    def answer(self, attempt: AttemptRecord) -> str | None:
        """Give the whole of an attempt's answer, large ones too; None where it gave none.

        Raises:
            KeptFileUnreadable: the file it lies in is missing, or is not in the run directory.
        """
        if attempt.answer_file is None:
            return attempt.answer
        from steelyard.results.kept_files import read_kept

        return read_kept(self._root(), attempt.answer_file).decode("utf-8", "replace")

    def trajectory(self, attempt: AttemptRecord) -> dict[str, Any] | None:
        """Give an attempt's trajectory, an ATIF document; None where none was kept.

        Raises:
            KeptFileUnreadable: it is missing, not in the run directory, or no JSON object.
        """
        path = (attempt.trajectory or {}).get("path")
        if path is None:
            return None
        import orjson

        from steelyard.results.kept_files import KeptFileUnreadable, read_kept

        try:
            document = orjson.loads(read_kept(self._root(), str(path)))
        except orjson.JSONDecodeError as error:
            raise KeptFileUnreadable(f"{path} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise KeptFileUnreadable(f"{path} is no JSON object")
        return document

    def require_completed(self) -> Self:
        """Give the run itself where it is complete: every attempt ended, none of them FATAL.

        Raises:
            NotCompleted: it is not.
        """
        if not self.is_complete:
            raise NotCompleted(_incomplete(self), self)
        return self

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row for each attempt; the columns stand in the docs of the SDK.

        Raises:
            PackageMissing: pandas is not installed.
        """
        from steelyard.sdk.frames import pandas_frame

        return pandas_frame([self])

    def to_polars(self) -> polars.DataFrame:
        """Give a row for each attempt; the columns stand in the docs of the SDK.

        Raises:
            PackageMissing: polars is not installed.
        """
        from steelyard.sdk.frames import polars_frame

        return polars_frame([self])

    def _reader(self) -> RunReader:
        from steelyard.results.reader import RunReader

        return RunReader(self._root())

    def _root(self) -> Path:
        if self.run_dir is None:
            raise ValueError(f"{self.name} never began: there is no run to read")
        return self.run_dir

    def __repr__(self) -> str:
        ended = self.outcome.value if self.outcome is not None else "not ended"
        head = "no score" if self.headline is None else str(self.headline)
        return f"<RunResult {self.name!r} {ended}: {head}>"

    def _repr_html_(self) -> str:
        from steelyard.sdk.notebook import run_html

        return run_html(self)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LaunchResult:
    """How a launch ended: its runs in order, also by the name of their request."""

    outcome: RunOutcome
    exit_status: int
    """What the command line would have exited with."""
    runs: tuple[RunResult, ...]
    elapsed_s: float
    loop_lag_p99_ms: float | None = None
    """How late the event loop woke in its worst hundredth; above 50, limits and times blur."""

    @property
    def is_complete(self) -> bool:
        """True where every run is."""
        return self.outcome is RunOutcome.COMPLETED

    def __getitem__(self, key: str | int) -> RunResult:
        """Give a run by its request's name or its number."""
        if not isinstance(key, str):
            return self.runs[key]
        for run in self.runs:
            if run.name == key:
                return run
        raise KeyError(f"no request is named {key!r}; there are: {', '.join(self.names)}")

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requests, in order."""
        return tuple(run.name for run in self.runs)

    def require_completed(self) -> Self:
        """Give the result itself where every run is complete.

        Raises:
            NotCompleted: one is not.
        """
        if not self.is_complete:
            said = "; ".join(_incomplete(run) for run in self.runs if not run.is_complete)
            raise NotCompleted(said or self.outcome.value, self)
        return self

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row for each attempt of every run, as `RunResult.to_pandas`.

        Raises:
            PackageMissing: pandas is not installed.
        """
        from steelyard.sdk.frames import pandas_frame

        return pandas_frame(self.runs)

    def to_polars(self) -> polars.DataFrame:
        """Give a row for each attempt of every run, as `RunResult.to_polars`.

        Raises:
            PackageMissing: polars is not installed.
        """
        from steelyard.sdk.frames import polars_frame

        return polars_frame(self.runs)

    def __repr__(self) -> str:
        return f"<LaunchResult {self.outcome.value}: {', '.join(map(repr, self.names))}>"

    def _repr_html_(self) -> str:
        from steelyard.sdk.notebook import launch_html

        return launch_html(self)


def _incomplete(run: RunResult) -> str:
    ended = run.outcome.value if run.outcome is not None else "not ended"
    return f"{run.name}: {ended}{f' ({run.reason})' if run.reason else ''}"


def load_run(path: str | Path) -> RunResult:
    """Read a run that was made earlier, by whichever of the SDK and the command line.

    Changes nothing; of a run that goes on it is a view of this moment.

    Args:
        path: a run directory, or the folder of a request's runs, whose newest is taken.

    Raises:
        RunUnreadable: there is no run, or its files cannot be used.
        FutureSchema: a newer version wrote it.
    """
    try:
        root, metrics = _figures_of(Path(path))
    except SteelyardError as error:
        # What it says is enough: neither how it came about, nor where in Steelyard.
        raise error.with_traceback(None) from None
    ended = metrics["outcome"]
    if ended is not None and ended not in list(RunOutcome):
        raise RunUnreadable(root, f"its journal ends with the unknown outcome {ended!r}")
    return _with_figures(
        metrics,
        name=str(metrics["request"] or root.parent.name),
        run_dir=root,
        outcome=None if ended is None else RunOutcome(ended),
        reason=metrics["reason"],
        planned=metrics["attempts"]["planned"],
        counts={Outcome(word): n for word, n in metrics["attempts"]["outcomes"].items()},
        reuse=None,
        redact=str,
    )


def _figures_of(path: Path) -> tuple[Path, Mapping[str, Any]]:
    from steelyard.results.newest import newest_run
    from steelyard.results.summary import summarise

    root = newest_run(path).root
    return root, summarise(root)


def run_result(result: RequestResult, redact: Callable[[str], str]) -> RunResult:
    """Make a result of what the engine gave."""
    return _with_figures(
        result.metrics,
        name=result.name,
        run_dir=result.run_dir,
        outcome=result.outcome,
        reason=None if result.reason is None else redact(result.reason),
        planned=result.planned,
        counts=result.counts,
        reuse=None if result.reuse is None else redact(result.reuse),
        redact=redact,
    )


def _with_figures(
    metrics: Mapping[str, Any] | None,
    *,
    name: str,
    run_dir: Path | None,
    outcome: RunOutcome | None,
    reason: str | None,
    planned: int,
    counts: Mapping[Outcome, int],
    reuse: str | None,
    redact: Callable[[str], str],
) -> RunResult:
    run_id = None if run_dir is None else run_dir.name
    return RunResult(
        name=name,
        run_id=str(metrics["run_id"]) if metrics is not None else run_id,
        run_dir=None if run_dir is None else run_dir.absolute(),  # the working folder may change
        outcome=outcome,
        reason=reason,
        planned=planned,
        counts=MappingProxyType(dict(counts)),
        scores=tuple(map(Score.from_json, metrics["scores"])) if metrics is not None else (),
        usage=Usage.from_json(metrics["usage"]) if metrics is not None else NO_USAGE,
        metrics=metrics,
        reuse=reuse,
        _redact=redact,
    )
