"""The conformance suite of analyzers: what every analyzer must do, as checks anyone can run.

::

    @pytest.mark.parametrize("check", analyzer_suite(MyAnalyzer), ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()
"""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.analyzer import Analysis, Analyzer, AnalyzerFault, FinishedAttempt
from steelyard.components.contract import check_class
from steelyard.components.issues import Outcome
from steelyard.testing.checks import Check, Clauses
from steelyard.testing.fake_run import DOCUMENT, FakeRun, sample_record, sample_records
from steelyard.testing.harness_checks import check_params, check_unavailable

CLAUSES: Final[Clauses[AnalyzerSubject]] = Clauses()
_MANY: Final = 3_000


@dataclass(frozen=True, slots=True)
class AnalyzerSubject:
    """An analyzer under test."""

    component: type[Analyzer]
    params: Mapping[str, Any]

    def make(self) -> Analyzer:
        """Make an instance, as the engine does."""
        return self.component(self.component.Params.model_validate(dict(self.params)))


def analyzer_suite(
    component: type[Analyzer],
    params: Mapping[str, Any] | None = None,
    *,
    leave_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Give the conformance checks of an analyzer.

    Args:
        component: the class.
        params: its parameters, as people write them.
        leave_out: clauses that it does not claim to keep.
    """
    return CLAUSES.bind(AnalyzerSubject(component, dict(params or {})), leave_out=leave_out)


@CLAUSES.add
async def it_declares_what_it_is(subject: AnalyzerSubject) -> None:
    """Its class has `api`, `id`, `version` and `Params`, and implements `analyze`."""
    check_class("analyzer", subject.component.__name__, subject.component)


@CLAUSES.add
async def its_parameters_are_json(subject: AnalyzerSubject) -> None:
    """Parameters come through JSON as they are, and a misspelt one is an error."""
    check_params(subject.component.Params, subject.params)


@CLAUSES.add
async def it_says_what_a_machine_lacks(subject: AnalyzerSubject) -> None:
    """`unavailable()` gives None, or says what is missing."""
    check_unavailable(subject.component)


@CLAUSES.add
async def it_gives_an_analysis(subject: AnalyzerSubject) -> None:
    """`analyze` gives an `Analysis` that carries the analyzer's id and version."""
    found: object = subject.make().analyze(FakeRun())
    assert isinstance(found, Analysis), f"analyze() gave {type(found).__name__}"
    component = subject.component
    assert (found.name, found.version) == (component.id, component.version), found


@CLAUSES.add
async def its_data_are_json(subject: AnalyzerSubject) -> None:
    """`data` is a mapping that goes through JSON unchanged, every number finite."""
    data = subject.make().analyze(FakeRun()).data
    assert isinstance(data, Mapping), f"data are {type(data).__name__}"
    assert json.loads(json.dumps(dict(data), allow_nan=False)) == data, data


@CLAUSES.add
async def its_markdown_is_text(subject: AnalyzerSubject) -> None:
    """`markdown` is text that can be written."""
    text: object = subject.make().analyze(FakeRun()).markdown
    assert isinstance(text, str), f"markdown is {type(text).__name__}"
    text.encode()


@CLAUSES.add
async def a_run_without_attempts_is_analyzed(subject: AnalyzerSubject) -> None:
    """A run that ended before its first attempt has an analysis, too."""
    found = subject.make().analyze(FakeRun([]))
    json.dumps(dict(found.data), allow_nan=False)


@CLAUSES.add
async def a_run_without_scores_is_analyzed(subject: AnalyzerSubject) -> None:
    """Where nothing was scored, nothing is known, and nothing is raised."""
    for outcome in Outcome:
        if outcome is not Outcome.SCORED:
            records = [sample_record(f"t{n}", 1, outcome) for n in range(3)]
            found = subject.make().analyze(FakeRun(records))
            json.dumps(dict(found.data), allow_nan=False)


@CLAUSES.add
async def a_run_is_analyzed_alike_each_time(subject: AnalyzerSubject) -> None:
    """The same run gives the same analysis, whatever the instance has analyzed before."""
    analyzer = subject.make()
    first = analyzer.analyze(FakeRun())
    analyzer.analyze(FakeRun([sample_record("other", 1, Outcome.SCORED)]))
    assert analyzer.analyze(FakeRun()) == first, "it keeps something of the runs before"
    assert subject.make().analyze(FakeRun()) == first, "equal instances differ"


@CLAUSES.add
async def a_run_is_left_as_it_is(subject: AnalyzerSubject) -> None:
    """Neither the document nor a record is changed."""
    records, document = sample_records(), copy.deepcopy(dict(DOCUMENT))
    before = copy.deepcopy((records, document))
    subject.make().analyze(FakeRun(records, document))
    assert (records, document) == before, "the run was changed"


class _TornRun(FakeRun):
    def records(self) -> Iterator[FinishedAttempt]:
        yield sample_record("t0", 1, Outcome.SCORED)
        raise OSError("the disk went away")


@CLAUSES.add
async def a_run_that_cannot_be_read_is_no_analysis(subject: AnalyzerSubject) -> None:
    """What reading the run raises passes through, or becomes an `AnalyzerFault`."""
    run = _TornRun()
    try:
        found = subject.make().analyze(run)
    except (OSError, AnalyzerFault):
        return
    raise AssertionError(f"half a run was analyzed: {found}")


class _CountingRun(FakeRun):
    """Counts the records that are held at once."""

    def __init__(self) -> None:
        super().__init__([])

    def records(self) -> Iterator[FinishedAttempt]:
        self.passes += 1
        for number in range(_MANY):
            yield sample_record(f"t{number}", 1, Outcome.SCORED)


@CLAUSES.add
async def records_are_not_kept(subject: AnalyzerSubject) -> None:
    """Memory does not grow by whole records: a run may have a million."""
    import tracemalloc

    analyzer, run = subject.make(), _CountingRun()
    tracemalloc.start()
    try:
        await asyncio.to_thread(analyzer.analyze, run)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    held = peak / _MANY
    assert held < 500, f"{held:.0f} bytes an attempt are held at once; a record has over 600"
