"""Terminus 2 as the package has it, with the driver's model, session and trajectory put in.

What is overridden is said at each place; prompts, parsers, turns and summaries are the package's.
"""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePosixPath
from typing import Any

from harbor.agents.terminus_2.terminus_2 import Terminus2
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.llms.base import BaseLLM, ContextLengthExceededError
from harbor.models.agent.context import AgentContext
from harbor.models.trajectories import SubagentTrajectoryRef

from .environment import SessionEnvironment
from .link import Link
from .model import DriverModel


class Terminal(TmuxSession):
    """A tmux session; the driver keeps its server until the attempt ends."""

    def __init__(self, environment: SessionEnvironment, *, installs: bool, **more: Any) -> None:
        super().__init__(environment=environment, **more)
        self._session_environment = environment
        self._installs = installs

    async def start(self) -> None:
        """Start tmux; installed first where it is missing and may be."""
        if self._installs:
            await self._attempt_tmux_installation()
        started = await self._session_environment.serve(self._tmux_start_session)
        if started.return_code != 0:
            raise TerminalNotStarted((started.stderr or started.stdout or "").strip())
        await self.environment.exec("tmux set-option -g history-limit 10000000")


class TerminalNotStarted(Exception):
    """No tmux session could be started."""


class Agent(Terminus2):
    """Terminus 2 of one attempt."""

    def __init__(self, link: Link, order: dict[str, Any], folder: Path) -> None:
        self._link = link
        self._order = order
        self._told_steps = 0
        self.is_confirmed = False
        """The model said twice that the task is done."""
        super().__init__(logs_dir=folder, model_name=order["model_id"], **order["options"])

    def _init_llm(self, *_words: Any, **_more: Any) -> BaseLLM:
        """Take the driver's model in place of LiteLLM."""
        return DriverModel(
            self._link,
            self._order["model_id"],
            context_tokens=self._order["context_tokens"],
            output_tokens=self._order["output_tokens"],
            before_call=self.tell_steps,
        )

    async def setup(self, environment: SessionEnvironment) -> None:
        """Start the terminal, with no recording of it."""
        self._session = Terminal(
            environment,
            installs=self._order["installs_tmux"],
            session_name=self.name(),
            logging_path=PurePosixPath("/dev/null"),
            local_asciinema_recording_path=None,
            remote_asciinema_recording_path=None,
            pane_width=self.options.tmux_pane_width,
            pane_height=self.options.tmux_pane_height,
        )
        await self._session.start()

    async def _handle_llm_interaction(self, *words: Any, **more: Any) -> Any:
        """Note whether the end was confirmed: the package does not say."""
        was_pending = self._pending_completion
        came = await super()._handle_llm_interaction(*words, **more)
        _commands, is_complete, feedback, *_rest = came
        self.is_confirmed = was_pending and is_complete and "ERROR:" not in feedback
        return came

    def _dump_trajectory(self) -> None:
        """Tell the steps, in place of writing all of them to a file after each."""
        self.tell_steps()

    def tell_steps(self) -> None:
        """Tell the driver the steps that it has not heard of."""
        for step in self._trajectory_steps[self._told_steps :]:
            self._link.say("step", step=step.model_dump(mode="json", exclude_none=True))
        self._told_steps = len(self._trajectory_steps)

    def _save_subagent_trajectory(
        self, session_id: str, agent_name: str, steps: list[Any], *_words: Any, **more: Any
    ) -> SubagentTrajectoryRef:
        """Tell what a summarising call was asked and said, in place of writing a file."""
        for step in steps[-2:]:
            told = step.model_dump(mode="json", exclude_none=True)
            self._link.say("step", step=told, subagent=agent_name)
        return SubagentTrajectoryRef(
            trajectory_id=session_id,
            session_id=session_id,
            extra={"summary": more.get("summary_text", "")},
        )

    async def has_terminal(self) -> bool:
        """True where the tmux session is alive."""
        return self._session is not None and bool(await self._session.is_session_alive())


def work(link: Link, folder: Path) -> None:
    """Do one attempt, as the driver's first line orders it."""
    order = link.receive()
    try:
        link.say("end", **asyncio.run(_worked(link, order, folder)))
    except Exception as error:  # noqa: BLE001 — the driver says whose fault it is
        link.say("end", reason="crashed", error=f"{type(error).__name__}: {error}"[:2000])


async def _worked(link: Link, order: dict[str, Any], folder: Path) -> dict[str, Any]:
    agent = Agent(link, order, folder)
    environment = SessionEnvironment(link, folder)
    try:
        await agent.setup(environment)
    except TerminalNotStarted as error:
        return {"reason": "no terminal", "error": str(error)[:2000]}
    link.ask("ready")
    try:
        await agent.run(order["instruction"], environment, AgentContext())
    except ContextLengthExceededError:
        return {"reason": "context", "turns": agent._n_episodes}
    except RuntimeError as error:
        # Keys that cannot be sent: the agent may have ended its own terminal.
        if await agent.has_terminal():
            raise
        return {"reason": "no shell", "turns": agent._n_episodes, "error": str(error)[:2000]}
    reason = "turns" if await agent.has_terminal() else "no shell"
    return {
        "reason": "done" if agent.is_confirmed else reason,
        "turns": agent._n_episodes,
        "summaries": agent._summarization_count,
    }
