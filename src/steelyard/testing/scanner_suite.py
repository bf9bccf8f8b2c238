"""The conformance suite of scanners: what every scanner must do, as checks anyone can run.

::

    CHECKS = scanner_suite(MyScanner, finds=[Step("agent", "curl -s http://169.254.169.254")],
                           passes=[Step("agent", "curl http://localhost/health")])

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()
"""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steelyard.components.contract import check_class
from steelyard.components.issues import AttemptFault, IssueCode, Outcome
from steelyard.components.model import ModelClient, ModelRequest, ModelResponse, ToolCall
from steelyard.components.scanner import Finding, FindingSeverity, Scanner, ScannerFault
from steelyard.components.steps import Step, ToolResult
from steelyard.testing.checks import Check, Clauses
from steelyard.testing.fake_model import Answer, ScriptedModel
from steelyard.testing.fake_run import FakeScannedAttempt, sample_record
from steelyard.testing.harness_checks import check_params, check_unavailable

CLAUSES: Final[Clauses[ScannerSubject]] = Clauses()

_MANY: Final = 2_000
_CANCEL_S: Final = 2.0
PLAIN: Final = Step("agent", "I look at the file.")
HOSTILE: Final = (
    Step("agent", ""),
    Step("agent", "x" * 1_000_000),
    Step("system", "\x00\ud800\x1b[2J\u202e\u2028"),
    Step("agent", "a", tool_calls=(ToolCall("", "", "{"), ToolCall("1", "sh", "[" * 100_000))),
    Step("system", "", results=(ToolResult(None, "{" * 100_000),)),
)


@dataclass(frozen=True, slots=True)
class ScannerSubject:
    """A scanner under test."""

    component: type[Scanner]
    params: Mapping[str, Any]
    finds: tuple[Step, ...]
    passes: tuple[Step, ...]
    judge: tuple[Answer, ...]

    def make(self) -> Scanner:
        """Make an instance, as the engine does."""
        return self.component(self.component.Params.model_validate(dict(self.params)))

    def attempt(
        self, steps: Sequence[Step], model: ModelClient | None = None
    ) -> FakeScannedAttempt:
        """Make an attempt with a trajectory."""
        return FakeScannedAttempt(steps, model=model or ScriptedModel(*self.judge))

    async def found(self, steps: Sequence[Step]) -> Sequence[Finding]:
        """Scan a trajectory."""
        return await self.make().scan(self.attempt(steps))


def scanner_suite(
    component: type[Scanner],
    params: Mapping[str, Any] | None = None,
    *,
    finds: Sequence[Step],
    passes: Sequence[Step] = (PLAIN,),
    judge: Sequence[Answer] = ("yes",),
    leave_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Give the conformance checks of a scanner.

    Args:
        component: the class.
        params: its parameters, as people write them.
        finds: a trajectory in which it finds something; its last step is the one.
        passes: a trajectory, as like it as can be, in which it finds nothing.
        judge: what its judge model says, call by call, to either.
        leave_out: clauses that it does not claim to keep.
    """
    subject = ScannerSubject(
        component, dict(params or {}), tuple(finds), tuple(passes), tuple(judge)
    )
    return CLAUSES.bind(subject, leave_out=leave_out)


@CLAUSES.add
async def it_declares_what_it_is(subject: ScannerSubject) -> None:
    """Its class has `api`, `id`, `version` and `Params`, and implements `scan`."""
    check_class("scanner", subject.component.__name__, subject.component)


@CLAUSES.add
async def its_parameters_are_json(subject: ScannerSubject) -> None:
    """Parameters come through JSON as they are, and a misspelt one is an error."""
    check_params(subject.component.Params, subject.params)


@CLAUSES.add
async def it_says_what_a_machine_lacks(subject: ScannerSubject) -> None:
    """`unavailable()` gives None, or says what is missing."""
    check_unavailable(subject.component)


@CLAUSES.add
async def it_finds_what_it_is_for(subject: ScannerSubject) -> None:
    """The trajectory that it is for has at least one finding."""
    assert await subject.found(subject.finds), "nothing was found"


@CLAUSES.add
async def it_lets_pass_what_is_right(subject: ScannerSubject) -> None:
    """The trajectory that only looks like it has none."""
    found = await subject.found(subject.passes)
    assert not found, f"found {found}"


@CLAUSES.add
async def an_empty_trajectory_has_no_findings(subject: ScannerSubject) -> None:
    """An attempt that never began is no fault, and nothing to find."""
    for outcome in (Outcome.NOT_STARTED, Outcome.FAILED_FATAL):
        attempt = FakeScannedAttempt(
            record=sample_record("t", 1, outcome), model=ScriptedModel(*subject.judge)
        )
        found = await subject.make().scan(attempt)
        assert not found, f"found {found}"


@CLAUSES.add
async def its_findings_are_well_formed(subject: ScannerSubject) -> None:
    """A finding has a category, a severity, a sentence, and a confidence from 0 to 1."""
    found: object = await subject.found(subject.finds)
    assert isinstance(found, Sequence), f"scan() gave {type(found).__name__}"
    for one in found:
        assert isinstance(one, Finding), f"a finding is {type(one).__name__}"
        assert isinstance(one.severity, FindingSeverity), one
        assert one.category.strip(), one
        assert one.message.strip(), one
        assert 0.0 <= one.confidence <= 1.0, one
        json.dumps([one.category, one.severity, one.message, one.evidence, one.step])


@CLAUSES.add
async def its_evidence_is_an_exact_span(subject: ScannerSubject) -> None:
    """Evidence stands, letter by letter, in the step that the finding names."""
    steps = [PLAIN, *subject.finds]
    for one in await subject.found(steps):
        if one.step is None:
            continue
        assert 0 <= one.step < len(steps), f"there is no step {one.step}: {one}"
        texts = list(_texts(steps[one.step]))
        assert one.evidence, f"no evidence: {one}"
        assert any(one.evidence in text for text in texts), f"{one.evidence!r} is not in {texts}"


def _texts(step: Step) -> Iterator[str]:
    yield step.message
    yield step.reasoning or ""
    for call in step.tool_calls:
        yield call.name
        yield call.arguments
    for result in step.results:
        yield result.content


@CLAUSES.add
async def it_reads_to_the_last_step(subject: ScannerSubject) -> None:
    """What stands at the end of a long trajectory is found, and its step named rightly."""
    steps = [*[PLAIN] * _MANY, *subject.finds]
    found = await subject.found(steps)
    assert found, f"nothing was found after {_MANY} steps"
    last = max((one.step for one in found if one.step is not None), default=None)
    assert last is None or last >= _MANY, f"found in step {last}, which is plain"


@CLAUSES.add
async def scanning_twice_gives_the_same(subject: ScannerSubject) -> None:
    """The same trajectory has the same findings, whatever was scanned before."""
    scanner = subject.make()
    first = list(await scanner.scan(subject.attempt(subject.finds)))
    await scanner.scan(subject.attempt(subject.passes))
    again = list(await scanner.scan(subject.attempt(subject.finds)))
    assert again == first, f"{first}, then {again}"


@CLAUSES.add
async def attempts_at_once_do_not_mix(subject: ScannerSubject) -> None:
    """One instance scans many attempts at once: each has its own findings."""
    scanner = subject.make()
    trajectories = [subject.finds, subject.passes, subject.finds, subject.passes]
    found = await asyncio.gather(*(scanner.scan(subject.attempt(one)) for one in trajectories))
    assert [bool(one) for one in found] == [True, False, True, False], found


@CLAUSES.add
async def hostile_steps_are_no_fault(subject: ScannerSubject) -> None:
    """Whatever an agent wrote is read, in time: no step makes it fail."""
    async with asyncio.timeout(30):
        await subject.found(HOSTILE)


@CLAUSES.add
async def an_attempt_is_left_as_it_is(subject: ScannerSubject) -> None:
    """Neither the record nor a step is changed."""
    steps = [copy.deepcopy(step) for step in subject.finds]
    steps[0] = Step(steps[0].source, steps[0].message, {"kept": "as it is"}, steps[0].tool_calls)
    attempt = subject.attempt(steps)
    before = copy.deepcopy((steps, attempt.record))
    await subject.make().scan(attempt)
    assert (steps, attempt.record) == before, "it was changed"


@CLAUSES.add
async def it_asks_no_model_unless_it_says_so(subject: ScannerSubject) -> None:
    """Without `needs_model` it does not touch `attempt.model`."""
    attempt = subject.attempt(subject.finds)
    await subject.make().scan(attempt)
    assert subject.component.needs_model or not attempt.has_asked_for_the_model, (
        "it asks a model: write `needs_model = True`"
    )


@CLAUSES.add
async def a_silent_judge_is_a_scanner_fault(subject: ScannerSubject) -> None:
    """Where its model does not answer, it raises `ScannerFault`: not finding is no finding."""
    fault = AttemptFault(IssueCode.MODEL_UNAVAILABLE, "as the suite asked")
    model = ScriptedModel(fault)
    try:
        found = await subject.make().scan(subject.attempt(subject.finds, model))
    except ScannerFault:
        return
    except AttemptFault as error:
        raise AssertionError("the model's fault became the attempt's") from error
    assert not model.requests, f"the judge did not answer, and it found {found}"


@CLAUSES.add
async def a_cancelled_scan_ends(subject: ScannerSubject) -> None:
    """Cancelled while it waits for its judge, it ends at once."""
    asked = asyncio.Event()

    async def never(_request: ModelRequest) -> ModelResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    attempt = subject.attempt(subject.finds, ScriptedModel(never))
    running = asyncio.ensure_future(subject.make().scan(attempt))
    waiting = asyncio.ensure_future(asked.wait())
    await asyncio.wait({running, waiting}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    has_ended_itself = running.done()
    running.cancel()
    await asyncio.wait({running}, timeout=_CANCEL_S)
    has_ended = running.done()
    while not running.done():
        running.cancel()
        await asyncio.sleep(0.05)
    assert has_ended, "cancelled, it goes on"
    assert has_ended_itself or running.cancelled(), "the cancellation was swallowed"
