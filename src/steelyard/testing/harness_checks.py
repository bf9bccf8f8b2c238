"""Clauses of the harness contract: what a harness declares, answers, leaves behind and shares."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError

from steelyard.components.contract import check_class
from steelyard.components.environment import EnvironmentFault
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import AttemptFault, Issue, Outcome, Severity
from steelyard.components.steps import Step
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel, response
from steelyard.testing.harness_suite import (
    CLAUSES,
    HarnessRun,
    HarnessSubject,
    WatchedContext,
    run_harness,
)

_SEAM_S = 110.0


def check_params(params_model: type[Any], params: Mapping[str, Any]) -> None:
    """Parameters come through JSON as they are, can be written into an identity, and a misspelt
    one is an error.
    """
    checked = params_model.model_validate(dict(params))
    arrived = params_model.model_validate(json.loads(json.dumps(dict(params), allow_nan=False)))
    assert arrived == checked, f"{checked} arrives as {arrived}"
    for made in (checked, arrived):
        json.dumps(made.model_dump(mode="json"), allow_nan=False)
    try:
        params_model.model_validate({**params, "no_such_parameter_of_it": 1})
    except ValidationError:
        return
    raise AssertionError('a misspelt parameter is taken: write ConfigDict(extra="forbid")')


def check_unavailable(component: type[Any]) -> None:
    """What a machine lacks is said in words."""
    lacks = component.unavailable()
    assert lacks is None or (isinstance(lacks, str) and lacks.strip()), (
        f"unavailable() gave {lacks!r}, not None or what is missing"
    )


@CLAUSES.add
async def it_declares_what_it_is(subject: HarnessSubject) -> None:
    """Its class has `api`, `id`, `version`, `traits` and `Params`, and implements `run`."""
    check_class("harness", subject.component.__name__, subject.component)


@CLAUSES.add
async def its_parameters_are_json(subject: HarnessSubject) -> None:
    """Parameters come through JSON as they are, and a misspelt one is an error."""
    check_params(subject.component.Params, subject.params)


@CLAUSES.add
async def it_says_what_a_machine_lacks(subject: HarnessSubject) -> None:
    """`unavailable()` gives None, or says what is missing."""
    check_unavailable(subject.component)


@CLAUSES.add
async def it_answers_text_or_nothing(subject: HarnessSubject) -> None:
    """`run` gives a `HarnessResult` whose answer is text or None."""
    result: object = (await run_harness(subject)).result
    assert isinstance(result, HarnessResult), f"run() gave {type(result).__name__}"
    answer: object = result.answer
    assert answer is None or isinstance(answer, str), f"the answer is {type(answer).__name__}"


@CLAUSES.add
async def its_details_are_json(subject: HarnessSubject) -> None:
    """`details` can be written into a record."""
    details: object = (await run_harness(subject)).result.details
    assert isinstance(details, Mapping), f"details are {type(details).__name__}"
    json.dumps(dict(details), allow_nan=False)


@CLAUSES.add
async def it_reports_errors_and_warnings_alone(subject: HarnessSubject) -> None:
    """Issues are ERRORs and WARNINGs: whoever has a FATAL cause raises it."""
    for issue in (await run_harness(subject)).result.issues:
        assert isinstance(issue, Issue), issue
        assert issue.severity is not Severity.FATAL, issue


@CLAUSES.add
async def its_steps_are_well_formed(subject: HarnessSubject) -> None:
    """Steps are `user`, `agent` or `system`, hold text, and go through JSON unchanged."""
    for step in (await run_harness(subject)).context.steps:
        assert isinstance(step, Step), f"a step is {type(step).__name__}"
        assert step.source in ("user", "agent", "system"), f"a step of {step.source!r}"
        assert isinstance(step.message, str), f"a message is {type(step.message).__name__}"
        written = json.dumps(step.as_json(), allow_nan=False)
        assert Step.from_json(json.loads(written)).as_json() == json.loads(written), written


@CLAUSES.add
async def it_uses_only_its_context(subject: HarnessSubject) -> None:
    """It touches what `HarnessContext` has, and sets nothing there."""
    context = subject.context()
    watch = WatchedContext(context)
    harness = subject.make()
    failure: Exception | None = None
    try:
        await harness.run(watch)
    except Exception as error:  # noqa: BLE001 — most likely of what it did not find
        failure = error
    finally:
        await context.close()
        await harness.close()
    assert not watch.foreign, f"a HarnessContext has no {', '.join(sorted(watch.foreign))}"
    if failure is not None:
        raise failure


@CLAUSES.add
async def it_keeps_to_its_traits(subject: HarnessSubject) -> None:
    """What the traits deny it does not touch: the model, the gateway, the reference."""
    traits, touched = subject.component.traits, (await run_harness(subject)).watch.touched
    for name, allowed in (
        ("model", traits.calls_model),
        ("model_access", traits.uses_gateway),
        ("reference", traits.needs_reference),
    ):
        assert allowed or name not in touched, f"it uses context.{name}, which its traits deny"


@CLAUSES.add
async def it_leaves_the_process_as_it_was(subject: HarnessSubject) -> None:
    """Working folder, variables, signal handlers and the global generator are everybody's."""
    before = _process_state()
    await run_harness(subject)
    for name, value in _process_state().items():
        assert value == before[name], f"it changed {name}"


def _process_state() -> dict[str, object]:
    return {
        "the working folder": Path.cwd(),
        "the environment's variables": dict(os.environ),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
        "the handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        "the global random generator": random.getstate(),
        "the module path": list(sys.path),
    }


@CLAUSES.add
async def it_leaves_no_task_behind(subject: HarnessSubject) -> None:
    """Every task it starts has ended with `run`."""
    before = asyncio.all_tasks()
    await run_harness(subject)
    left = asyncio.all_tasks() - before
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert not left, f"still running: {left}"


@CLAUSES.add
async def it_leaves_no_process_behind(subject: HarnessSubject) -> None:
    """Every process it starts has ended with `run`."""
    before = set(psutil.Process().children(recursive=True))
    await run_harness(subject)
    left = set(psutil.Process().children(recursive=True)) - before
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            process.wait(10)
    assert not left, f"still running: {left}"


@CLAUSES.add
async def equal_instances_do_the_same(subject: HarnessSubject) -> None:
    """Two made of one set of parameters, shown the same, ask, answer and note the same."""
    first = await run_harness(subject)
    second = await run_harness(subject)
    assert _said(first) == _said(second), f"{_said(first)} then {_said(second)}"


@CLAUSES.add
async def nothing_of_an_attempt_stays(subject: HarnessSubject) -> None:
    """An instance that has run before does what a new one does."""
    used = subject.make()
    try:
        first = await run_harness(subject, harness=used)
        again = await run_harness(subject, harness=used)
    finally:
        await used.close()
    assert _said(first) == _said(again), f"{_said(first)} then {_said(again)}"


def _said(run: HarnessRun) -> tuple[object, ...]:
    model = run.context.model
    asked = [tuple(r.messages) for r in model.requests] if isinstance(model, ScriptedModel) else []
    # What a step's `extra` holds may be measured: durations, exit codes.
    steps = [(s.source, s.message, s.tool_calls, s.results) for s in run.context.steps]
    return run.result.answer, asked, steps


@CLAUSES.add
async def attempts_at_once_do_not_mix(subject: HarnessSubject) -> None:
    """One instance serves several attempts at once: each keeps its own answer and steps."""
    names = ("alpha", "beta", "gamma")
    alone = [_said(await run_harness(subject, _named(subject, name))) for name in names]
    shared = subject.make()
    try:
        runs = await asyncio.gather(
            *(run_harness(subject, _named(subject, name), shared) for name in names)
        )
    finally:
        await shared.close()
    together = [_said(run) for run in runs]
    assert together == alone, f"alone {alone}, at once {together}"


def _named(subject: HarnessSubject, name: str) -> FakeHarnessContext:
    """A context whose model's answers tell whose they are."""
    texts = [a if isinstance(a, str) else getattr(a, "text", "") for a in subject.answers]
    context = subject.context(ScriptedModel(*(f"{text} {name}" for text in texts)))
    context.task_id = name
    return context


@CLAUSES.add
async def closing_is_safe(subject: HarnessSubject) -> None:
    """`close()` works on an instance that has run, and on one that never has."""
    await subject.make().close()
    used = subject.make()
    await run_harness(subject, harness=used)
    await used.close()


@CLAUSES.add
async def it_runs_in_a_fresh_interpreter(subject: HarnessSubject) -> None:
    """Another process, handed its id and its parameters as JSON, runs it just as well."""
    from steelyard.components.registry import Kind, find
    from steelyard.engine.spec import ComponentSpec, ExecutionSpec, RequestSpec
    from steelyard.engine.spec_json import result_from_bytes, spec_to_bytes
    from steelyard.models.mock.answers import fixed
    from steelyard.testing.endpoint import mock_endpoint
    from steelyard.testing.probe import probe_task

    found = find(Kind.HARNESS, subject.id).component
    assert found.__qualname__ == subject.component.__qualname__, f"{subject.id} leads to {found}"
    text = next((a for a in subject.answers if isinstance(a, str)), "42")
    async with mock_endpoint(sources=(fixed(text),)) as endpoint:
        traits = subject.component.traits
        calls = traits.calls_model or traits.uses_gateway
        request = RequestSpec(
            "suite",
            ComponentSpec("steelyard.testing.probe:ProbeBenchmark"),
            ComponentSpec(subject.id, dict(subject.params)),
            ComponentSpec("host_process"),
            _model_settings(endpoint.url) if calls else None,
        )
        task = probe_task(subject.input, subject.reference)
        token = f"suite{os.getpid():x}{id(request):x}"
        spec = ExecutionSpec(request, task, 1, 1, token, 1)
        done = await asyncio.to_thread(_worker, spec_to_bytes(spec))
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    result = result_from_bytes(done.stdout)
    assert result.outcome in (Outcome.SCORED, Outcome.FAILED_ERROR), [
        f"{issue.code}: {issue.message}" for issue in result.issues
    ]


def _model_settings(url: str) -> dict[str, Any]:
    from steelyard.config.schema.request import ModelSettings

    return ModelSettings(id="mock", base_url=url).model_dump(mode="json")


def _worker(spec: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the worker; its streams are files, which nobody whom it leaves behind can hold open."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    new = tempfile.TemporaryFile
    with new() as given, new() as out, new() as errors:
        given.write(spec)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.engine.worker"],
            stdin=given,
            stdout=out,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        try:
            status = process.wait(_SEAM_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it leaves is another clause's matter
            process.wait()
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(process.args, status, out.read(), errors.read())


ODD_ANSWERS: Sequence[str] = ("", "\x00\ud800", "null", "{", "[]", "x" * 1_000_000)
"""What a model may say, whatever it was asked."""


@CLAUSES.add
async def odd_answers_of_the_model_are_no_crash(subject: HarnessSubject) -> None:
    """Whatever a model says ends in a result or an `AttemptFault`, and in time."""
    from steelyard.components.model import ToolCall

    calls = (ToolCall("", "no_such_tool", "{"), ToolCall("", "", "[[["))
    odd = [response(text) for text in ODD_ANSWERS]
    for answer in (*odd, _with_tools(calls)):
        try:
            async with asyncio.timeout(30):
                await run_harness(subject, subject.context(ScriptedModel(answer)))
        except (AttemptFault, EnvironmentFault):
            continue
        except Exception as error:
            raise AssertionError(f"the model said {answer.text[:40]!r}: {error!r}") from error


def _with_tools(calls: tuple[Any, ...]) -> Any:
    from dataclasses import replace

    return replace(response(""), tool_calls=calls)
