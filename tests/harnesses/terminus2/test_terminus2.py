"""Terminus 2 itself at work: in a sandbox, in containers, and on answers that lead astray."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import TaskInput, TaskLimits
from steelyard.components.environment import Environment, NoParams, OpenRequest
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import AttemptFault, IssueCode, Outcome
from steelyard.components.model import ModelRequest, ModelResponse
from steelyard.components.registry import Kind, find
from steelyard.components.values import Message, Trust, Usage
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.terminus2 import Terminus2, server
from steelyard.harnesses.terminus2.asking import MAX_REFUSED
from steelyard.testing.checks import Check
from steelyard.testing.endpoint import MockEndpoint
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel, response
from steelyard.testing.harness_suite import harness_suite
from tests.harnesses.cli_agent.running import ComponentSpec, model, run_agent
from tests.harnesses.terminus2.package import DONE, HOME, installed, typed
from tests.harnesses.terminus2.scripted_model import DONE as MENDED
from tests.harnesses.terminus2.shared import Apart, SharedTerminus2

pytestmark = pytest.mark.integration

FUNCTION = f"{Path(__file__).with_name('scripted_model.py')}:answer"
SHARED = Path(__file__).with_name("shared.py")
TASK = TaskInput((Message("user", "Do it."),))
KEY = "sk-canary-84ac91be2d0f7735"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--function", FUNCTION, "--model", "m", "--require-key", KEY) as served:
        yield served


@pytest.fixture
def terminus() -> Callable[..., Terminus2]:
    return lambda **params: SharedTerminus2(Terminus2.Params(**params))


def server_of(harness: Terminus2) -> server.Server:
    return asyncio.run(harness._running_server())


def host() -> Environment:
    return Apart(HostProcess.Params())


def sandbox() -> Environment:
    found = find(Kind.ENVIRONMENT, "sandbox").component
    made: Environment = found(found.Params())
    return made


def docker(image: str) -> Environment:
    found = find(Kind.ENVIRONMENT, "docker").component
    made: Environment = found(found.Params(image=image))
    return made


def context(*answers: Any, environment: Environment | None = None, **more: Any) -> Any:
    return FakeHarnessContext(
        more.pop("input", TASK),
        model=ScriptedModel(*answers),
        environment=environment or host(),
        **more,
    )


def work(
    harness: Terminus2,
    found: Any,
    then: Callable[[Any], Awaitable[Any]] | None = None,
) -> tuple[HarnessResult, Any]:
    """Run one attempt; what `then` sees of the session after it is given back as well."""

    async def main() -> tuple[HarnessResult, Any]:
        try:
            result = await harness.run(found)
            return result, None if then is None else await then(await found.session())
        finally:
            await found.close()
            await found.environment.close()

    return asyncio.run(main())


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# -- end to end -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "protocol", "parser", "trust"),
    [
        ("sandbox", "openai-chat", "json", Trust.CONTAINED),
        ("docker", "anthropic", "xml", Trust.CONTAINED),
    ],
)
def test_it_edits_a_file_and_runs_a_command_and_is_scored_for_it(
    kind: str,
    protocol: str,
    parser: str,
    trust: Trust,
    endpoint: MockEndpoint,
    request: pytest.FixtureRequest,
) -> None:
    installed()
    environment = ComponentSpec("sandbox")
    if kind == "docker":
        where = request.getfixturevalue("docker_host")
        image = request.getfixturevalue("debian_image")
        environment = ComponentSpec("docker", {"host": where, "image": image})
    results = run_agent(
        "terminus2",
        {"parser_name": parser},
        environment=environment,
        endpoint=model(endpoint.url, protocol, api_key=KEY),
        attempts=2,
        bounds={"prices": {"m": {"input_per_mtok": 1.0, "output_per_mtok": 10.0}}},
    )
    for result in results:
        assert (result.outcome, result.issues) == (Outcome.SCORED, ()), str(result.issues)
        assert result.metrics["score"] == 1.0
        assert result.trust is trust
        assert MENDED in (result.answer or "")
        user, *agent = result.steps
        assert "GREETING-JOB" in user.message
        called = [call.name for step in agent for call in step.tool_calls]
        assert called[:-2] == ["bash_command"] * (len(agent) - 2)
        assert called[-2:] == ["mark_task_complete"] * 2
        assert "sed -i s/helo/hello/ note.txt" in agent[0].tool_calls[0].arguments
        assert any("line-0-has-ended" in step.results[0].content for step in agent)
        assert result.usage.requests == len(agent) >= 4
        assert result.usage.cost_usd
        told = [step.usage for step in agent if step.usage is not None]
        assert sum(usage.input_tokens for usage in told) == result.usage.input_tokens
        assert KEY not in str(result)


# -- how it ends ------------------------------------------------------------------------------


def test_its_turns_are_bounded_by_the_lower_of_two_limits(
    terminus: Callable[..., Terminus2],
) -> None:
    limited = TaskInput(TASK.messages, limits=TaskLimits(turns=2))
    found = context(typed("echo more\n"), input=limited)
    result, _ = work(terminus(max_turns=5), found)
    assert [issue.code for issue in result.issues] == [IssueCode.TURN_LIMIT]
    assert result.details["turns"] == 2
    assert len(found.model.requests) == 2


def test_the_end_must_be_confirmed_and_no_turn_more_is_taken(
    terminus: Callable[..., Terminus2],
) -> None:
    found = context(DONE, DONE, typed("echo more\n"))
    result, _ = work(terminus(max_turns=2), found)
    assert (result.issues, result.details["turns"]) == ((), 2)


def test_an_agent_that_leaves_its_shell_has_ended(terminus: Callable[..., Terminus2]) -> None:
    result, _ = work(terminus(), context(typed("exit\n", duration=1.0)))
    assert result.issues == ()
    assert result.details["ended"] == "the agent ended its own terminal"


def test_an_agent_that_kills_its_terminal_has_ended(terminus: Callable[..., Terminus2]) -> None:
    keys = typed("tmux kill-server\n", "echo more\n", duration=1.0)
    result, _ = work(terminus(), context(keys))
    assert result.issues == ()
    assert result.details["ended"] == "the agent ended its own terminal"


def test_an_answer_in_no_form_is_told_to_the_model_and_stands_in_the_trajectory(
    terminus: Callable[..., Terminus2],
) -> None:
    found = context("I would rather not.", DONE, DONE)
    work(terminus(), found)
    assert found.steps[1].message == "I would rather not."
    assert "parsing errors" in found.steps[1].results[0].content
    assert "parsing errors" in found.model.requests[1].messages[-1].content


def test_a_fault_of_the_model_ends_the_attempt_at_once(terminus: Callable[..., Terminus2]) -> None:
    fault = AttemptFault(IssueCode.ATTEMPT_BUDGET, "the budget is used up")
    found = context(typed("echo one\n"), fault)
    with pytest.raises(AttemptFault) as caught:
        work(terminus(), found)
    assert caught.value is fault
    assert len(found.model.requests) == 2, "the package would have asked nine times"
    assert [step.source for step in found.steps] == ["user", "agent"]


def test_a_conversation_too_long_is_summed_up_by_the_model(
    terminus: Callable[..., Terminus2],
) -> None:
    overflow = AttemptFault(IssueCode.CONTEXT_OVERFLOW, "too long")
    asked = [typed("echo one\n"), overflow, "a summary", "questions", "answers", DONE, DONE]
    found = context(*asked)
    result, _ = work(terminus(), found)
    assert (result.issues, result.details["summaries"]) == ((), 1)
    names = [step.extra["subagent"] for step in found.steps if "subagent" in step.extra]
    assert names[::2] == [
        f"terminus-2-summarization-{n}" for n in ("summary", "questions", "answers")
    ]
    told = [step.usage for step in found.steps if step.usage is not None]
    assert sum(usage.requests for usage in told) == found.model.usage.requests == 6


def test_without_summaries_a_conversation_too_long_is_the_end(
    terminus: Callable[..., Terminus2],
) -> None:
    overflow = AttemptFault(IssueCode.CONTEXT_OVERFLOW, "too long")
    with pytest.raises(AttemptFault) as caught:
        work(terminus(enable_summarize=False), context(overflow))
    assert caught.value is overflow


def test_a_model_that_never_ends_its_answers_is_asked_so_often_only(
    terminus: Callable[..., Terminus2],
) -> None:
    cut = ModelResponse("{", (), "length", Usage(9, 9, requests=1), True, "m", 0.0, 0)
    found = context(cut)
    with pytest.raises(AttemptFault) as caught:
        work(terminus(), found)
    assert caught.value.code is IssueCode.MODEL_OUTPUT_TOO_LARGE
    assert len(found.model.requests) == MAX_REFUSED


# -- what is left -----------------------------------------------------------------------------


def test_where_services_stay_so_does_what_runs_in_the_terminal(
    terminus: Callable[..., Terminus2], docker_host: str, debian_image: str
) -> None:
    async def listed(session: Any) -> str:
        return str((await session.exec(["ps", "-eo", "args"])).stdout_text)

    keys = typed("sleep 4711\n")
    _, said = work(terminus(), context(keys, DONE, environment=docker(debian_image)), listed)
    assert "sleep 4711" in said


def test_a_cancelled_attempt_leaves_neither_terminal_nor_process(
    terminus: Callable[..., Terminus2],
    docker_host: str,
    debian_image: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))  # short, as a socket's path must be
    harness = terminus()
    pid = server_of(harness).pid

    async def main(environment: Environment, see: list[str]) -> str:
        reached = asyncio.Event()

        async def hang(_request: ModelRequest) -> ModelResponse:
            if len(found.model.requests) == 1:
                return response(typed("sleep 4712\n"))
            reached.set()
            await asyncio.sleep(600)
            raise AssertionError

        found = context(hang, environment=environment)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(harness.run(found))
                await asyncio.wait_for(reached.wait(), 60)
                assert len(children_of(pid)) == 1
                task.cancel()
            return str((await (await found.session()).exec(see)).stdout_text)
        finally:
            await found.close()
            await environment.close()

    monkeypatch.setenv("TMPDIR", str(temporary))
    for environment in (host(), docker(debian_image)):
        said = asyncio.run(main(environment, ["ps", "-eo", "args"]))
        assert "sleep 4712" not in said
        # Dead at once; the process that forked it takes note a moment later.
        deadline_s = time.monotonic() + 10
        while children_of(pid):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


def test_what_runs_the_package_holds_no_variable_of_ours(
    terminus: Callable[..., Terminus2], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    started = server._started(installed(), os.open(os.devnull, os.O_WRONLY))
    try:
        while not (found := Path(f"/proc/{started.pid}/environ").read_bytes()):
            assert started.is_alive
    finally:
        started.close()
    assert b"LITELLM_LOCAL_MODEL_COST_MAP" in found
    assert KEY.encode() not in found


def test_an_attempts_process_that_is_killed_is_our_fault(
    terminus: Callable[..., Terminus2],
) -> None:
    harness = terminus()
    pid = server_of(harness).pid

    async def kill(_request: ModelRequest) -> ModelResponse:
        for child in children_of(pid):
            os.kill(child, signal.SIGKILL)
        return response(DONE)

    with pytest.raises(AttemptFault) as caught:
        work(harness, context(kill))
    assert caught.value.code is IssueCode.HARNESS_CRASHED
    assert work(harness, context(DONE))[0].issues == ()


def test_where_the_package_has_died_the_next_attempt_has_another() -> None:
    harness = Terminus2(Terminus2.Params(python=installed()))

    async def main() -> None:
        await harness.prepare()
        first = harness._server
        assert first is not None
        os.kill(first.pid, signal.SIGKILL)
        while first.is_alive:
            await asyncio.sleep(0.01)
        found = context(DONE)
        try:
            assert (await harness.run(found)).issues == ()
            assert harness._server is not first
        finally:
            await found.close()
            await harness.close()

    asyncio.run(main())


# -- what is missing --------------------------------------------------------------------------


def test_an_environment_without_bash_is_refused_with_the_remedy(
    terminus: Callable[..., Terminus2], docker_host: str, busybox_image: str
) -> None:
    with pytest.raises(AttemptFault, match=r"has no bash.*apt-get install -y bash") as caught:
        work(terminus(), context(DONE, environment=docker(busybox_image)))
    assert caught.value.request_fault


@pytest.mark.parametrize("installs", [True, False])
def test_an_environment_without_tmux_is_refused_with_the_remedy(
    installs: bool, terminus: Callable[..., Terminus2], docker_host: str, debian_image: str
) -> None:
    class Bare:
        """Containers in which nobody can find tmux, nor what could install it."""

        def __init__(self) -> None:
            self.inner = docker(debian_image)

        async def open(self, request: OpenRequest) -> Any:
            session = await self.inner.open(request)
            gone = "rm $(command -v tmux) $(command -v apt-get)"
            assert (await session.exec(["sh", "-c", gone])).exit_code == 0
            return session

        async def close(self) -> None:
            await self.inner.close()

    with pytest.raises(AttemptFault, match=r"has no tmux.*apt-get install -y tmux") as caught:
        work(terminus(install_tmux=installs), context(DONE, environment=Bare()))  # type: ignore[arg-type]
    assert caught.value.request_fault


def test_an_interpreter_without_the_package_is_refused_before_any_session() -> None:
    harness = Terminus2(Terminus2.Params(python=sys.executable))
    with pytest.raises(AttemptFault, match="cannot import the package harbor") as caught:
        asyncio.run(harness.prepare())
    assert (caught.value.code, caught.value.request_fault) == (IssueCode.DEPENDENCY_MISSING, True)


def test_another_version_than_asked_for_is_refused() -> None:
    harness = Terminus2(Terminus2.Params(python=installed(), version="0.25.9"))
    with pytest.raises(AttemptFault, match=r"has harbor 0\.26\.0, and 0\.25\.9 is asked for"):
        asyncio.run(harness.prepare())


def test_its_parameters_are_its_own() -> None:
    with pytest.raises(TypeError, match="Terminus2Params"):
        Terminus2(NoParams())


PARAMS = {"python": str(HOME.python), "max_turns": 3}
WHOLE = ("it_leaves_no_process_behind", "closing_is_safe", "it_leaves_the_process_as_it_was")
"""Clauses that are about the process: held by the harness itself, the others by one that shares."""


def suite(component: type[Terminus2], **more: Any) -> tuple[Check, ...]:
    return harness_suite(component, PARAMS, environment=host, answers=(DONE,), **more)


SHARING = suite(SharedTerminus2, id=f"{SHARED}:SharedTerminus2", leave_out=WHOLE)
ITSELF = tuple(check for check in suite(Terminus2) if check.name in WHOLE)


@pytest.mark.parametrize("check", SHARING + ITSELF, ids=str)
def test_it_keeps_every_clause_of_the_contract(check: Check) -> None:
    installed()
    server_of(SharedTerminus2(Terminus2.Params()))
    check()
