"""`terminus2`: Terminus 2 of the `harbor` package, over our session and with our model client.

The package runs in a process of its own. It asks us for programs, files and the model's answers,
so limits, retries, budget, usage and steps are as with every other harness.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from steelyard.components.environment import ExecResult, Session
from steelyard.components.harness import (
    Harness,
    HarnessContext,
    HarnessResult,
    HarnessTraits,
)
from steelyard.components.issues import AttemptFault, Issue, IssueCode, Phase
from steelyard.harnesses.command.words import prompt_of
from steelyard.harnesses.terminus2 import interpreter, server
from steelyard.harnesses.terminus2.asking import Asking
from steelyard.harnesses.terminus2.params import Terminus2Params
from steelyard.harnesses.terminus2.terminal import EXEC_S, Terminal, lacks, terminal_folder
from steelyard.harnesses.terminus2.trajectory import step_of

SETUP_S: Final = 360.0
"""For the terminal, installing tmux included; Harbor's own bound."""
_OF_THE_MACHINE: Final = frozenset({"python", "install_timeout_seconds"})
_ENDS: Final[Mapping[str, str]] = {
    "done": "the model said twice that it is done",
    "turns": "all turns were used",
    "no shell": "the agent ended its own terminal",
}


class Terminus2(Harness):
    """Terminus 2, as published in the package."""

    id: ClassVar[str] = interpreter.ID
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True, runs_model_code=True)
    Params: ClassVar[type[BaseModel]] = Terminus2Params

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, Terminus2Params):
            raise TypeError(f"terminus2 takes Terminus2Params, not {type(params).__name__}")
        self._params = params
        self._server: server.Server | None = None
        self._starting = asyncio.Lock()

    def generation_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out which interpreter has the package: its version says what runs."""
        return {name: value for name, value in filled.items() if name not in _OF_THE_MACHINE}

    # -- the package --------------------------------------------------------------------------

    @property
    def _home(self) -> interpreter.Home:
        return interpreter.Home(self._params.version, self.data_dir)

    def lacking(self) -> str | None:
        """Say that no interpreter has the package, with the command that makes one."""
        python = self._params.python
        if python is None:
            return interpreter.lacking(self._home)
        return None if python.is_file() else f"python: there is no interpreter {python}"

    def installation(self) -> Callable[[], str] | None:
        """Give what makes an interpreter with the package; None where there is one."""
        if self._params.python is not None or self.lacking() is None:
            return None
        return self.install_package

    def install_package(self) -> str:
        """Make an interpreter with the package. Blocking, minutes.

        Raises:
            Fault: it cannot be made.
        """
        timeout_s = self._params.install_timeout_seconds
        python = interpreter.install(self._home, timeout_s=timeout_s)
        return f"{interpreter.PACKAGE} {self._params.version}, for {python}"

    async def prepare(self) -> None:
        """Start the process that has the package.

        Raises:
            AttemptFault: there is no such interpreter, or it has another version.
        """
        await self._running_server()

    async def close(self) -> None:
        """End the process."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
            self._server = None

    async def _running_server(self) -> server.Server:
        async with self._starting:
            if self._server is None or not self._server.is_alive:
                await self.close()
                self._server = await server.start(await self._python(), self._params.version)
            return self._server

    async def _python(self) -> Path:
        python = self._params.python
        if python is None:
            python = await asyncio.to_thread(interpreter.find_python, self._home)
        if python is None:
            raise AttemptFault(
                IssueCode.DEPENDENCY_MISSING, f"terminus2: {self.lacking()}", request_fault=True
            )
        return python

    # -- running ------------------------------------------------------------------------------

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Let Terminus 2 work on the task's text in the session's terminal.

        Raises:
            AttemptFault: the environment lacks what a terminal takes, the model cannot be asked,
                or the package failed.
        """
        session = await context.session()
        with context.timer.waiting():
            folder = await terminal_folder(session, may_install=self._params.install_tmux)
            packaged = await self._running_server()
            worker = await packaged.begin()
        try:
            async with asyncio.TaskGroup() as group:
                terminal = Terminal(session, group, folder)
                came: HarnessResult | Exception
                try:
                    came = await self._worked(context, session, worker, terminal)
                except Exception as error:  # noqa: BLE001 — raised again: a group would wrap it
                    came = error
                    await terminal.end()
                except asyncio.CancelledError:
                    await packaged.end(worker)  # it sends no key more
                    await terminal.end()
                    raise
                else:
                    await terminal.leave()
        finally:
            await packaged.end(worker)
        if isinstance(came, Exception):
            raise came
        return came

    async def _worked(
        self, context: HarnessContext, session: Session, worker: server.Worker, terminal: Terminal
    ) -> HarnessResult:
        asking = Asking(context)
        await worker.send(self._order(context))
        with context.timer.waiting():
            try:
                async with asyncio.timeout(SETUP_S):
                    said = await self._served(session, worker, terminal, asking)
            except TimeoutError as error:
                raise AttemptFault(
                    IssueCode.CONFIGURATION,
                    f"terminus2's terminal was not set up within {SETUP_S:g} s",
                ) from error
            if said["kind"] == "end":
                raise await self._not_started(session, said)
            await worker.send({})
        return self._result(asking, await self._served(session, worker, terminal, asking))

    def _order(self, context: HarnessContext) -> dict[str, Any]:
        params = self._params
        limits = [n for n in (params.max_turns, context.input.limits.turns) if n is not None]
        return {
            "model_id": context.model.model_id,
            "instruction": prompt_of(context.input.messages, with_system=True),
            "context_tokens": params.model_info.max_input_tokens,
            "output_tokens": params.model_info.max_output_tokens,
            "installs_tmux": params.install_tmux,
            "options": {
                "max_turns": min(limits, default=None),
                "parser_name": params.parser_name,
                "enable_summarize": params.enable_summarize,
                "proactive_summarization_threshold": params.proactive_summarization_threshold,
                "tmux_pane_width": params.tmux_pane_width,
                "tmux_pane_height": params.tmux_pane_height,
                "record_terminal_session": False,
                "suppress_max_turns_warning": True,
            },
        }

    async def _served(
        self, session: Session, worker: server.Worker, terminal: Terminal, asking: Asking
    ) -> Mapping[str, Any]:
        """Do what the package asks for, until it is ready to work, or at its end."""
        while True:
            said = await worker.receive()
            match said["kind"]:
                case "model":
                    await worker.send(await asking.answer(said["messages"]))
                case "step":
                    asking.tell(step_of(said["step"], said.get("subagent")))
                case "exec":
                    timeout_s = said["timeout_s"] or EXEC_S
                    ran = await terminal.run(
                        said["command"], env=said["env"], cwd=said["cwd"], timeout_s=timeout_s
                    )
                    await worker.send(_ran(ran))
                case "serve":
                    await worker.send(_ran(await terminal.serve(said["command"])))
                case "upload" | "download" as way:
                    await worker.send(await _copied(session, way, said["source"], said["target"]))
                case _:
                    return said

    async def _not_started(self, session: Session, said: Mapping[str, Any]) -> AttemptFault:
        has_tmux = (await session.exec(["tmux", "-V"], timeout_s=60)).exit_code == 0
        if not has_tmux:
            return lacks("tmux", ", and it could not be installed there")
        if said["reason"] == "crashed":
            return AttemptFault(IssueCode.HARNESS_CRASHED, f"terminus2: {said['error']}")
        return AttemptFault(
            IssueCode.CONFIGURATION,
            f"terminus2: tmux cannot be started in the environment: {said.get('error')}",
            request_fault=True,
        )

    def _result(self, asking: Asking, said: Mapping[str, Any]) -> HarnessResult:
        reason = said["reason"]
        issues: tuple[Issue, ...] = ()
        if reason == "crashed":
            raise AttemptFault(IssueCode.HARNESS_CRASHED, f"terminus2: {said['error']}")
        if reason == "context":
            raise asking.overflow or AttemptFault(
                IssueCode.CONTEXT_OVERFLOW, "the conversation is too long for the model"
            )
        if reason == "turns":
            why = f"terminus2 used all of its {said['turns']} turns"
            issues = (Issue.of(IssueCode.TURN_LIMIT, Phase.RUN, why),)
        details = {
            "harbor_version": self._params.version,
            "ended": _ENDS.get(reason, reason),
            "turns": said.get("turns"),
            "summaries": said.get("summaries"),
        }
        return HarnessResult(asking.last_text, issues=issues, details=details)


def _ran(ran: ExecResult) -> dict[str, Any]:
    code = 124 if ran.timed_out else ran.exit_code
    return {"exit_code": code, "stdout": ran.stdout_text, "stderr": ran.stderr_text}


async def _copied(session: Session, way: str, source: str, target: str) -> dict[str, Any]:
    try:
        if way == "upload":
            await session.upload(Path(source), target)
        else:
            await session.download(source, Path(target))
    except (OSError, ValueError) as error:
        return {"error": str(error)}
    return {}
