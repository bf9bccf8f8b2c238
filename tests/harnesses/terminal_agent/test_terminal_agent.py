"""The built-in agent at work: for real in a sandbox, and turn by turn against scripted answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steelyard.components.benchmark import TaskInput, TaskLimits
from steelyard.components.environment import ExecResult, NoParams
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import AttemptFault, IssueCode, Outcome
from steelyard.components.model import ModelRequest, ModelResponse, ToolCall, ToolTurn
from steelyard.components.values import Message, Trust, Usage
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.terminal_agent import TerminalAgent
from steelyard.harnesses.terminal_agent.params import TerminalAgentParams
from steelyard.testing.checks import Check
from steelyard.testing.endpoint import MockEndpoint
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel
from steelyard.testing.harness_suite import harness_suite
from tests.engine.fakes import Watch
from tests.harnesses.cli_agent.running import ComponentSpec, model, run_agent
from tests.harnesses.terminal_agent.scripted_model import COMMANDS, DONE

pytestmark = pytest.mark.integration

TASK = TaskInput((Message("system", "You are careful."), Message("user", "Do it.")))
PROTOCOLS = ["openai-chat", "openai-responses", "anthropic"]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    function = f"{__file__.rpartition('/')[0]}/scripted_model.py:answer"
    with MockEndpoint("--function", function, "--model", "m") as served:
        yield served


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("style", ["tools", "fenced"])
def test_a_file_is_mended_in_a_sandbox_and_scored(
    endpoint: MockEndpoint, protocol: str, style: str
) -> None:
    (result,) = run_agent(
        "terminal_agent",
        {"style": style},
        endpoint=model(endpoint.url, protocol),
        watch=Watch(),
    )
    assert result.issues == ()
    assert result.outcome is Outcome.SCORED
    assert result.metrics["score"] == 1
    assert result.trust is Trust.CONTAINED  # the scorer runs programs beside the work
    assert result.answer == DONE
    agent = [step for step in result.steps if step.source == "agent"]
    assert len(agent) == len(COMMANDS) + 1
    assert "hello\nLinux" in agent[2].results[0].content
    assert result.usage.requests == len(COMMANDS) + 1
    assert result.usage.input_tokens == sum(
        step.usage.input_tokens for step in agent if step.usage is not None
    )
    if style == "tools":
        assert [call.name for step in agent for call in step.tool_calls] == ["run"] * 3 + ["done"]


def test_it_works_in_a_container(docker_host: str, debian_image: str) -> None:
    function = f"{__file__.rpartition('/')[0]}/scripted_model.py:answer"
    with MockEndpoint("--function", function, "--model", "m") as served:
        (result,) = run_agent(
            "terminal_agent",
            environment=ComponentSpec("docker", {"host": docker_host, "image": debian_image}),
            endpoint=model(served.url),
        )
    assert result.issues == ()
    assert result.metrics["score"] == 1


# -- turn by turn ------------------------------------------------------------------------------


def said(
    text: str = "", *commands: str, stop: str = "tool_calls", tokens: int = 5
) -> ModelResponse:
    calls = tuple(
        ToolCall(f"c{number}", "run", f'{{"command": "{command}"}}')
        for number, command in enumerate(commands)
    )
    return ModelResponse(text, calls, stop, Usage(10, tokens, requests=1), True, None, 0.0, 0)


def done(answer: str = "ok") -> ModelResponse:
    call = ToolCall("d", "done", f'{{"answer": "{answer}"}}')
    return ModelResponse("", (call,), "tool_calls", Usage(10, 5, requests=1), True, None, 0.0, 0)


def worked(
    *answers: Any, input: TaskInput = TASK, **params: Any
) -> tuple[HarnessResult, ScriptedModel, FakeHarnessContext]:
    scripted = ScriptedModel(*answers)
    context = FakeHarnessContext(input, model=scripted, environment=HostProcess(NoParams()))

    async def run() -> HarnessResult:
        agent = TerminalAgent(TerminalAgentParams(**params))
        try:
            return await agent.run(context)
        finally:
            await (await context.session()).close()

    return asyncio.run(run()), scripted, context


def results_of(request: ModelRequest) -> list[str]:
    return [
        text for turn in request.messages if isinstance(turn, ToolTurn) for _, text in turn.results
    ]


def test_the_tasks_own_system_message_stands_behind_ours() -> None:
    _, scripted, context = worked(done())
    first, second = scripted.requests[0].messages
    assert first.role == "system"
    assert first.content.startswith("You work on a task")
    assert first.content.endswith("You are careful.")
    assert second == Message("user", "Do it.")
    assert [step.source for step in context.steps] == ["system", "user", "agent"]


def test_several_commands_of_one_answer_are_run_in_order_and_each_answered() -> None:
    _, scripted, _ = worked(said("", "echo 1 > f", "cat f"), done())
    assert results_of(scripted.requests[1]) == ["(no output)\n[exit code 0]", "1\n[exit code 0]"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (ToolCall("x", "run", "not json"), "not JSON"),
        (ToolCall("x", "run", '{"cmd": "ls"}'), "takes {'command': text}"),
        (ToolCall("x", "run", '["ls"]'), "takes {'command': text}"),
        (ToolCall("x", "python", "{}"), "no tool 'python'"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_told_and_nothing_is_run(
    call: ToolCall, told: str
) -> None:
    wrong = ModelResponse("", (call,), None, Usage(requests=1), True, None, 0.0, 0)
    result, scripted, _ = worked(wrong, done())
    assert result.answer == "ok"
    assert told in results_of(scripted.requests[1])[0]


def test_an_answer_that_was_cut_off_runs_nothing() -> None:
    _, scripted, context = worked(said("", "rm -rf important", stop="length"), done())
    assert "cut off" in results_of(scripted.requests[1])[0]
    assert "exit code" not in str(context.steps)


def test_done_beside_commands_counts_after_them() -> None:
    both = ModelResponse(
        "",
        (*said("", "echo late > f").tool_calls, *done("both").tool_calls),
        None,
        Usage(requests=1),
        True,
        None,
        0.0,
        0,
    )
    result, scripted, context = worked(both)
    assert result.answer == "both"
    assert len(scripted.requests) == 1
    assert context.steps[-1].results[0].content.endswith("[exit code 0]")


def test_who_asks_for_nothing_is_told_and_in_the_end_taken_at_its_word() -> None:
    result, scripted, _ = worked("I think it is done.")
    assert len(scripted.requests) == 3
    assert "asked for nothing" in scripted.requests[1].messages[-1].content
    assert result.answer == "I think it is done."
    assert result.issues == ()


@pytest.mark.parametrize("own", [5, 2])
def test_the_lower_limit_of_turns_holds_and_is_said(own: int) -> None:
    limited = TaskInput(TASK.messages, limits=TaskLimits(turns=3))
    result, scripted, _ = worked(said("going on", "true"), input=limited, max_turns=own)
    assert len(scripted.requests) == min(own, 3)
    assert [issue.code for issue in result.issues] == [IssueCode.TURN_LIMIT]
    assert result.answer == "going on"


def test_the_limit_of_output_tokens_holds() -> None:
    result, scripted, _ = worked(said("", "true", tokens=40), max_output_tokens=100)
    assert len(scripted.requests) == 3
    assert [issue.code for issue in result.issues] == [IssueCode.TURN_LIMIT]
    assert "120 of 100 tokens" in result.issues[0].message


def test_a_command_that_takes_too_long_is_told_and_the_agent_goes_on() -> None:
    result, scripted, _ = worked(said("", "sleep 1000"), done(), command_timeout_seconds=0.3)
    assert "longer than 0.3 s" in results_of(scripted.requests[1])[0]
    assert result.answer == "ok"


def test_an_environment_without_a_shell_is_a_fault_of_the_request() -> None:
    with pytest.raises(AttemptFault, match="no shell") as raised:
        _without_shell()
    assert raised.value.request_fault


def _without_shell() -> None:
    from steelyard.testing.fake_environment import FakeEnvironment

    bare = FakeEnvironment(programs=lambda _: ExecResult(127, b"", b"not found"))
    context = FakeHarnessContext(TASK, model=ScriptedModel(done()), environment=bare)
    asyncio.run(TerminalAgent(TerminalAgentParams()).run(context))


# -- a conversation that grows too long ------------------------------------------------------


def overflowing(after: int, then: Callable[[ModelRequest], ModelResponse]) -> Any:
    """A model that refuses more than `after` messages."""

    async def asked(request: ModelRequest) -> ModelResponse:
        if len(request.messages) > after:
            raise AttemptFault(IssueCode.CONTEXT_OVERFLOW, "too long")
        return then(request)

    return asked


def test_a_conversation_that_is_too_long_is_summed_up_and_goes_on() -> None:
    count = 0

    def then(request: ModelRequest) -> ModelResponse:
        nonlocal count
        if not request.tools:
            return said("NOTES: seven lines were written", stop="stop")
        count += 1
        return said(f"turn {count}", f"echo {count} >> f") if count < 12 else done("all")

    result, scripted, context = worked(overflowing(12, then), kept_turns=2)
    assert result.answer == "all"
    cuts = [step for step in context.steps if "summed up" in step.message]
    assert cuts
    after = next(r for r in scripted.requests if "NOTES: seven" in str(r.messages))
    assert after.messages[0].role == "system"
    assert "Do it." in after.messages[1].content, "the task itself stays"
    assert "NOTES: seven lines" in after.messages[1].content
    assert after.messages[2].role == "assistant"
    for request in scripted.requests:  # a result is never parted from its call
        calls = {c.id for turn in request.messages for c in getattr(turn, "tool_calls", ())}
        given = {i for t in request.messages if isinstance(t, ToolTurn) for i, _ in t.results}
        assert given <= calls


def test_above_the_given_size_it_is_summed_up_before_the_endpoint_refuses() -> None:
    count = 0

    async def asked(request: ModelRequest) -> ModelResponse:
        nonlocal count
        if not request.tools:
            return said("NOTES", stop="stop")
        count += 1
        usage = Usage(1000 * len(request.messages), 5, requests=1)
        answer = said("", "true") if count < 10 else done()
        return ModelResponse("", answer.tool_calls, None, usage, True, None, 0.0, 0)

    _, _, context = worked(asked, context_tokens=8_000, kept_turns=1)
    assert sum("summed up" in step.message for step in context.steps) >= 1


def test_a_task_that_is_too_long_by_itself_is_an_overflow_of_the_agent() -> None:
    with pytest.raises(AttemptFault) as raised:
        worked(overflowing(1, lambda _: done()))
    assert raised.value.code is IssueCode.CONTEXT_OVERFLOW


SUITE = harness_suite(TerminalAgent, {}, environment=lambda: HostProcess(NoParams()))


@pytest.mark.parametrize("check", SUITE, ids=str)
def test_it_keeps_every_clause_of_the_contract(check: Check) -> None:
    check()
