"""A real launch whose every step can be watched, and something killed in the middle of it.

A step is a call into an agent's or a scorer's sandbox, a model call through the gateway, a judge's
call: `agent.open`, `agent.exec`, `agent.call`, `scorer.upload` … The second task's are counted;
what is killed then is the driver, the sandbox or the gateway.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    ScoringContext,
    Task,
    TaskInput,
    binary,
)
from steelyard.components.environment import OpenRequest, Session
from steelyard.components.model import ModelRequest
from steelyard.components.values import Message
from steelyard.config.schema.request import ModelSettings
from steelyard.engine.events import LaunchResult
from steelyard.engine.launch import launch, prepare
from steelyard.engine.work import AGENT_SUFFIX
from steelyard.environments.process_trees import find_marked
from steelyard.environments.sandbox import Sandbox
from steelyard.environments.tree_copy import remove_tree
from steelyard.models.gateway import server
from steelyard.models.gateway.connection import Connection
from steelyard.models.gateway.relay import ModelCall
from tests.engine.flaky import NO_WAIT
from tests.engine.launching import request, resolved

Victim = Literal["driver", "sandbox", "gateway", "connection"]
SLOW = "STEELYARD_TEST_SLOW"
"""How long a program waits before it works: until it is killed, where that is due."""
AGENT = """
import json, os, socket
host, _, port = os.environ["OPENAI_BASE_URL"][7:-3].partition(":")
asked = {"model": os.environ["STEELYARD_MODEL"], "messages": [{"role": "user", "content": "go"}]}
body = json.dumps(asked)
with socket.create_connection((host, int(port))) as way:
    way.sendall((
        "POST /v1/chat/completions HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\nconnection: close\\r\\n"
        f"authorization: Bearer {os.environ['OPENAI_API_KEY']}\\r\\n"
        f"content-length: {len(body)}\\r\\n\\r\\n{body}"
    ).encode())
    said = way.makefile("rb").read()
assert said.startswith(b"HTTP/1.1 200"), said[:200]
print("done")
"""
SCRIPT = f"""set -e
[ -z "${SLOW}" ] || sleep "${SLOW}"
python3 -I -S - <<'AGENT'
{AGENT}
AGENT
echo made > out
"""
WATCHED_TASK = 1


@dataclass(frozen=True, slots=True)
class Kill:
    """What is killed, and in which step of the watched task."""

    step: str
    victim: Victim
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.step}:{self.victim}:{self.nth}"

    @classmethod
    def parse(cls, text: str) -> Kill:
        step, victim, nth = text.split(":")
        return cls(step, victim, int(nth))  # type: ignore[arg-type]  # one of those


@dataclass
class Watch:
    """What a launch did, and what is still to be killed in it."""

    kills: list[Kill] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    sessions: dict[str, Any] = field(default_factory=dict)
    """By token, in the order of their opening."""
    gates: list[Any] = field(default_factory=list)
    closing: asyncio.Task[None] | None = None

    def due(self, step: str, token: str) -> Kill | None:
        """Count a step of the watched task; give the kill that is due in it."""
        if int(token.split("-")[2]) != WATCHED_TASK:
            return None
        self.seen[step] += 1
        for kill in self.kills:
            if (kill.step, kill.nth) == (step, self.seen[step]):
                return kill
        return None

    @property
    def agent(self) -> str:
        """The token of the agent that was opened last; one attempt runs at a time."""
        return next(token for token in reversed(self.sessions) if token.endswith(AGENT_SUFFIX))

    @property
    def newest(self) -> str:
        """The token of the session that was opened last."""
        return next(reversed(self.sessions))


watch = Watch()


def kill_sandbox(token: str) -> bool:
    """SIGKILL the sandboxes of a session in which a program runs; False where there is none."""
    running = list(watch.sessions[token]._running)
    if not running or len(find_marked([token])) < 2:  # bubblewrap has not started anything yet
        return False
    for process in running:
        os.kill(process.pid, signal.SIGKILL)
    return True


async def kill_once_it_runs(token: str) -> None:
    """Wait until a program of a session runs, and kill the sandbox around it."""
    while not kill_sandbox(token):
        await asyncio.sleep(0.005)


async def close_gates() -> None:
    """End the gateway with all its listeners and calls."""
    for gate in watch.gates:
        await gate.close()


@asynccontextmanager
async def during(kill: Kill | None, token: str) -> AsyncIterator[None]:
    """Do what is due in a step: before it, or while its program runs."""
    if kill is None:
        yield
    elif kill.victim == "sandbox" and kill.step.endswith(".exec"):
        # No group: what the step raises is to leave it as it is.
        killing = asyncio.get_running_loop().create_task(kill_once_it_runs(token))
        try:
            yield
        finally:
            killing.cancel()
            await asyncio.wait((killing,))
    else:
        if kill.victim == "driver":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kill.victim == "gateway":
            await close_gates()
        elif token in watch.sessions and watch.sessions[token]._folder.exists():
            remove_tree(watch.sessions[token]._folder)  # no program runs: what it stands on goes
        yield


class Watched(Sandbox):
    """A sandbox whose sessions say what is done with them."""

    api = 1
    id = "watched"

    async def open(self, request: OpenRequest) -> Session:
        if request.gate is not None and request.gate not in watch.gates:
            watch.gates.append(request.gate)
        step = f"{_role(request.token)}.open"
        async with during(watch.due(step, request.token), request.token):
            session = await super().open(request)
        watch.sessions[request.token] = session
        made: Any = WatchedSession(session, request.token)
        return made  # type: ignore[no-any-return]  # it is one in all that it does


def _role(token: str) -> str:
    return "agent" if token.endswith(AGENT_SUFFIX) else "scorer"


class WatchedSession:
    """Passes everything on; every call that waits is a step."""

    def __init__(self, session: Session, token: str) -> None:
        self._session, self._token = session, token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def ways_in() -> set[str]:
    """Name all that can be asked of a session and is waited for."""
    found = inspect.getmembers(Session, inspect.iscoroutinefunction)
    return {name for name, _ in found if not name.startswith("_")}


def _watched(name: str) -> Any:
    async def call(self: Any, *args: Any, **options: Any) -> Any:
        kill = watch.due(f"{_role(self._token)}.{name}", self._token)
        if kill is not None and kill.victim == "sandbox" and name == "exec":
            options["env"] = {**(options.get("env") or {}), SLOW: "60"}
        async with during(kill, self._token):
            return await getattr(self._session, name)(*args, **options)

    return call


for _name in ways_in():
    setattr(WatchedSession, _name, _watched(_name))


class WatchedCall(ModelCall):
    """A model call of an agent, which is a step; what is killed is so while it waits."""

    async def run(self, body: bytes, out: Connection) -> None:
        kill = watch.due("agent.call", watch.agent)
        if kill is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(0.03, _kill_in_call, kill, watch.agent, out)
        await super().run(body, out)


def _kill_in_call(kill: Kill, token: str, out: Any) -> None:
    if kill.victim == "driver":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kill.victim == "sandbox":
        assert kill_sandbox(token)
    elif kill.victim == "connection":
        out._transport._force_close(ConnectionAbortedError(103, "cut by the system"))
    else:
        watch.closing = asyncio.get_running_loop().create_task(close_gates())


class StepParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    mode: EvaluationMode = EvaluationMode.NONE
    judge: str
    """The URL of the judge's endpoint."""


class Judged(Benchmark):
    """Two tasks, scored by a program in a sandbox and by a judge, in the mode that is asked for."""

    api = 1
    id = "judged-steps"
    Params = StepParams

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo(
            "judged-steps", "1", (binary("passed"),), "passed", runs_model_code=False
        )

    def load_tasks(self) -> Sequence[Task]:
        return [Task("t0", {}), Task("t1", {})]

    def scoring_models(self) -> Sequence[dict[str, Any]]:
        asked: Any = self.params
        return [ModelSettings(id="judge", base_url=asked.judge).model_dump(mode="json")]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        asked: Any = self.params
        return TaskInput(
            (Message("user", task.id),),
            collect=("out",) if asked.mode is EvaluationMode.FRESH else (),
            evaluation=asked.mode,
        )

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        asked: Any = self.params
        session = await context.session()
        words = "true" if asked.mode is EvaluationMode.NONE else "test -s out"
        done = await session.exec(["sh", "-c", f'[ -z "${SLOW}" ] || sleep "${SLOW}"; {words}'])
        token = watch.newest
        async with during(watch.due("judge.call", token), token):
            said = await context.model(self.scoring_models()[0]).generate(
                ModelRequest((Message("user", "Is it right?"),))
            )
        return Evaluation({"passed": done.exit_code == 0 and bool(said.text)})


def play(
    folder: Path,
    agent_url: str,
    judge_url: str,
    scenario: str,
    *kills: Kill,
    reuse: bool = False,
    retries: int = 0,
) -> LaunchResult:
    """Launch a scenario: an evaluation mode, or `keep` (mode `fresh`, environments kept)."""
    global watch
    watch = Watch(list(kills))
    mode = "fresh" if scenario == "keep" else scenario
    one = request(
        benchmark={"id": f"{__name__}:Judged", "mode": mode, "judge": judge_url},
        harness={"id": "command", "script": SCRIPT},
        model={"id": "m", "base_url": agent_url},
        environment={"id": f"{__name__}:Watched"},
        execution={
            "max_retries": retries,
            "save_artifacts": ["out"],
            "analysis": True,
            "keep_environment": scenario == "keep",
        },
        runtime={"reuse": reuse},
    )
    real = server.ModelCall
    server.ModelCall = WatchedCall  # type: ignore[misc]
    try:
        prepared = prepare(resolved(folder, one, task_concurrency=1))
        return asyncio.run(launch(prepared, backoff=NO_WAIT))
    finally:
        server.ModelCall = real  # type: ignore[misc]
