"""The fakes do what the contracts say of the real things, as far as they go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import TaskInput
from steelyard.components.clock import Clock
from steelyard.components.environment import EnvironmentFault, ExecResult, OpenRequest, Session
from steelyard.components.harness import HarnessContext
from steelyard.components.issues import AttemptFault, IssueCode, Outcome
from steelyard.components.model import ModelClient, ModelRequest
from steelyard.components.values import Message
from steelyard.testing.attempts import EventLog, FixedAnswer, run_attempt, run_attempt_now
from steelyard.testing.clock import START, FakeClock
from steelyard.testing.fake_environment import ExecCall, FakeEnvironment
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel, response
from tests.testing.broken_benchmarks import Sound


def run(work: Awaitable[Any]) -> Any:
    async def whole() -> Any:
        return await work

    return asyncio.run(whole())


def test_a_clock_stands_still_until_it_is_told_to_go_on() -> None:
    clock: Clock = FakeClock()
    assert isinstance(clock, FakeClock)
    before = clock.monotonic()
    clock.advance(1.5)
    assert clock.monotonic() == before + 1.5
    assert clock.now() == START + timedelta(seconds=1.5)
    with pytest.raises(ValueError, match="does not step back"):
        clock.advance(-1)


def test_a_clock_may_go_on_with_every_look() -> None:
    clock = FakeClock(step_s=0.25)
    assert [clock.monotonic() for _ in range(3)] == [0.25, 0.5, 0.75]


def _open(environment: FakeEnvironment) -> Session:
    session: Session = run(environment.open(OpenRequest("t")))
    return session


def test_files_are_one_by_whatever_path(tmp_path: Path) -> None:
    environment = FakeEnvironment()
    session = _open(environment)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"1")
    run(session.upload(tmp_path / "a", "in"))
    assert run(session.read_file("in/b/c")) == b"1"
    assert run(session.read_file(f"{session.workdir}/in/b/c")) == b"1"
    run(session.write_file("/etc/own", b"2"))
    assert environment.files == {"in/b/c": b"1", "/etc/own": b"2"}
    with pytest.raises(FileNotFoundError):
        run(session.read_file("in"))
    with pytest.raises(ValueError, match="larger"):
        run(session.read_file("in/b/c", max_bytes=0))


def test_programs_are_what_the_test_says_and_every_call_is_kept() -> None:
    def programs(call: ExecCall) -> ExecResult:
        return ExecResult(0, b" ".join(word.encode() for word in call.argv), b"")

    environment = FakeEnvironment(programs)
    session = _open(environment)
    done = run(session.exec(["echo", "x"], env={"A": "1"}, timeout_s=3))
    assert done.stdout == b"echo x"
    assert environment.calls == [ExecCall(("echo", "x"), b"", {"A": "1"}, None, 3)]


def test_a_closed_session_says_so() -> None:
    session = _open(FakeEnvironment())
    run(session.close())
    for call in (session.exec(["true"]), session.read_file("x"), session.write_file("x", b"")):
        with pytest.raises(EnvironmentFault):
            run(call)


def test_a_model_gives_its_answers_in_order_and_then_the_last_one() -> None:
    model = ScriptedModel("a", response("b"), AttemptFault(IssueCode.MODEL_UNAVAILABLE, "gone"))
    client: ModelClient = model
    ask = ModelRequest([Message("user", "?")])
    assert [run(client.generate(ask)).text for _ in range(2)] == ["a", "b"]
    for _ in range(2):
        with pytest.raises(AttemptFault, match="gone"):
            run(client.generate(ask))
    assert (client.usage.requests, client.calls_succeeded, len(model.requests)) == (2, 2, 4)


def test_a_context_opens_one_session_with_the_workspace_in_it(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(b"x")
    made = FakeHarnessContext(TaskInput((Message("user", "?"),), workspace=(tmp_path,)))
    context: HarnessContext = made
    environment = made.environment
    assert isinstance(environment, FakeEnvironment)
    first = run(context.session())
    assert run(context.session()) is first
    assert run(first.read_file("given")) == b"x"
    assert run(context.model_access()).url
    run(made.close())
    assert environment.sessions[0].closed == 1


def test_an_attempt_goes_through_the_engine() -> None:
    benchmark, log = Sound(Sound.Params()), EventLog()
    task = benchmark.load_tasks()[0]
    right = benchmark.reference(task)
    assert right is not None
    done = run(
        run_attempt(benchmark, task, FixedAnswer(right.answer), FakeEnvironment(), observer=log)
    )
    assert (done.outcome, done.metrics["correct"]) == (Outcome.SCORED, True)
    assert [phase.value for phase in log.phases] == ["setup", "run", "evaluate"]
    wrong = run_attempt_now(benchmark, task, FixedAnswer("no"), FakeEnvironment())
    assert wrong.metrics["correct"] is False
