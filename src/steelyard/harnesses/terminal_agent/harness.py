"""`terminal_agent`: turn by turn, a model asks for commands of one shell and sees what they bring.

It runs in the driver: the environment needs a shell, no program of ours and no network.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from pydantic import BaseModel

from steelyard.components.harness import (
    Harness,
    HarnessContext,
    HarnessResult,
    HarnessTraits,
    Step,
)
from steelyard.components.issues import AttemptFault, Issue, IssueCode, Phase
from steelyard.components.model import ModelRequest, ModelResponse, Turn
from steelyard.components.steps import ToolResult
from steelyard.harnesses.terminal_agent.compaction import compacted
from steelyard.harnesses.terminal_agent.dialogue import (
    Dialogue,
    FencedDialogue,
    ToolDialogue,
    Wish,
    opening,
)
from steelyard.harnesses.terminal_agent.params import TerminalAgentParams
from steelyard.harnesses.terminal_agent.shell import Shell, as_observation, find_shell

_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
"""Stop reasons of an answer that was cut off: what it asks for is not whole."""
_MAX_IDLE_TURNS: Final = 3
"""Answers in a row that ask for nothing; then the last one's text is the answer."""


@dataclass(slots=True)
class _Run:
    """Where one attempt stands."""

    context: HarnessContext
    dialogue: Dialogue
    shell: Shell
    turns: list[Turn]
    head: int
    """How many messages of the beginning no compaction touches."""
    output_tokens: int = 0
    idle: int = 0
    last_text: str = ""
    issues: list[Issue] = field(default_factory=list)

    def stop(self, code: IssueCode, why: str) -> HarnessResult:
        """End with what there is."""
        self.issues.append(Issue.of(code, Phase.RUN, why))
        return HarnessResult(self.last_text or None, tuple(self.issues))


class TerminalAgent(Harness):
    """A model, a shell, and nothing to install."""

    id: ClassVar[str] = "terminal_agent"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True, runs_model_code=True)
    Params: ClassVar[type[BaseModel]] = TerminalAgentParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, TerminalAgentParams):
            raise TypeError(
                f"terminal_agent takes TerminalAgentParams, not {type(params).__name__}"
            )
        self._params = params

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Work until the model says it is done, or a limit is met.

        Raises:
            AttemptFault: the environment has no shell, or the model cannot be asked.
        """
        params = self._params
        session = await context.session()
        with context.timer.waiting():
            program = await find_shell(session, params.shell)
        if program is None:
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                "the environment has no shell for terminal_agent; take an image with sh",
                request_fault=True,
            )
        dialogue: Dialogue = ToolDialogue() if params.style == "tools" else FencedDialogue()
        turns = opening(context.input.messages, dialogue, params.system)
        for message in turns:
            context.step(Step(message.role, message.content))
        shell = Shell(session, program=program, shown_chars=params.shown_chars)
        return await self._work(_Run(context, dialogue, shell, turns, len(turns)))

    async def _work(self, run: _Run) -> HarnessResult:
        most_turns = _least(self._params.max_turns, run.context.input.limits.turns)
        most_tokens = _least(self._params.max_output_tokens, run.context.input.limits.output_tokens)
        turn = 0
        while most_turns is None or turn < most_turns:
            turn += 1
            response = await self._asked(run)
            run.output_tokens += response.usage.output_tokens
            run.last_text = response.text or run.last_text
            wish = run.dialogue.wish(response)
            if response.stop_reason in _CUT:
                # Half a command may do harm: nothing of it is run.
                wish = Wish()
            came, results = await self._carried_out(run, response, wish)
            run.context.step(_step(response, results))
            if wish.answer is not None:
                return HarnessResult(wish.answer or run.last_text, tuple(run.issues))
            run.idle = 0 if wish.commands else run.idle + 1
            if run.idle >= _MAX_IDLE_TURNS:
                return HarnessResult(run.last_text, tuple(run.issues))
            run.turns += run.dialogue.turns(response, came)
            if most_tokens is not None and run.output_tokens >= most_tokens:
                return run.stop(
                    IssueCode.TURN_LIMIT,
                    f"the agent wrote {run.output_tokens} of {most_tokens} tokens",
                )
            limit = self._params.context_tokens
            if limit is not None and response.usage.input_tokens >= limit:
                await self._shorten(run)
        return run.stop(IssueCode.TURN_LIMIT, f"the agent used all of its {most_turns} turns")

    async def _asked(self, run: _Run) -> ModelResponse:
        """Ask the model; where the conversation is too long for it, again with a shorter one."""
        try:
            return await self._call(run)
        except AttemptFault as fault:
            if fault.code is not IssueCode.CONTEXT_OVERFLOW or not await self._shorten(run):
                raise
        return await self._call(run)

    async def _call(self, run: _Run) -> ModelResponse:
        return await run.context.model.generate(
            ModelRequest(tuple(run.turns), tools=run.dialogue.tools)
        )

    async def _shorten(self, run: _Run) -> bool:
        shorter = await compacted(
            run.context.model, run.turns, head=run.head, kept_turns=self._params.kept_turns
        )
        if shorter is None:
            return False
        dropped = len(run.turns) - len(shorter)
        run.context.step(
            Step("system", "the conversation was cut and summed up", {"dropped_turns": dropped})
        )
        run.turns = shorter
        return True

    async def _carried_out(
        self, run: _Run, response: ModelResponse, wish: Wish
    ) -> tuple[dict[str | None, str], tuple[ToolResult, ...]]:
        """Run what was asked for, one after the other; give what came of each call."""
        came: dict[str | None, str] = {}
        timeout_s = self._params.command_timeout_seconds
        for command in wish.commands:
            if command.problem is not None:
                came[command.call_id] = command.problem
                continue
            ran = await run.shell.run(command.text, timeout_s=timeout_s)
            came[command.call_id] = as_observation(command.text, ran, timeout_s)
        if response.stop_reason in _CUT:
            told = "Your answer was cut off: it was too long. Nothing of it was run."
            came = dict.fromkeys((call.id for call in response.tool_calls), told) or {None: told}
        return came, tuple(ToolResult(call_id, text) for call_id, text in came.items())


def _step(response: ModelResponse, results: tuple[ToolResult, ...]) -> Step:
    extra = {} if response.stop_reason is None else {"stop_reason": response.stop_reason}
    return Step(
        "agent",
        response.text,
        extra,
        response.tool_calls,
        results,
        response.reasoning,
        usage=response.usage if response.usage_known else None,
    )


def _least(*limits: int | None) -> int | None:
    given = [limit for limit in limits if limit is not None]
    return min(given) if given else None
