"""Where an attempt is scored, what is carried there, what is kept of the agent's environment."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.artifacts import ArtifactSpec, EvaluationMode
from steelyard.components.benchmark import Evaluation, Task, TaskInput, TaskLimits
from steelyard.components.environment import Environment, NoParams
from steelyard.components.harness import HarnessContext, HarnessResult
from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.registry import Kind, find
from steelyard.components.values import Trust
from steelyard.engine.attempt import execute
from steelyard.engine.services import Services, Storage
from steelyard.engine.spec import AttemptPlace, ExecutionResult, ExecutionSpec, SavedWork
from steelyard.engine.spec_json import result_from_bytes, result_to_bytes, spec_to_bytes
from steelyard.environments.host_process import HostProcess
from steelyard.results.checkpoints import read_checkpoint
from steelyard.results.reader import RunReader
from tests.engine.fakes import FakeBenchmark, FakeHarness, Watch, services, spec
from tests.engine.launching import records, request, run_all

pytestmark = pytest.mark.integration

Run = Callable[[HarnessContext], Awaitable[Any]]


class Moded(FakeBenchmark):
    """A benchmark whose task input is changed by a test."""

    def __init__(self, changes: dict[str, Any], on_evaluate: Any = None) -> None:
        super().__init__(on_evaluate=on_evaluate)
        self.changes = changes

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        shown = super().task_input(task, attempt=attempt, seed=seed)
        return replace(shown, **self.changes)


def played(
    root: Path,
    changes: dict[str, Any],
    on_run: Run,
    on_evaluate: Any = None,
    *,
    environment: Environment | None = None,
    wanted: tuple[ArtifactSpec, ...] = (),
    saved: SavedWork | None = None,
    watch: Watch | None = None,
    storage: Storage | None = None,
) -> ExecutionResult:
    one = spec()
    one = ExecutionSpec(
        replace(one.request, save_artifacts=wanted),
        one.task,
        1,
        1,
        f"modes-{secrets.token_hex(6)}",
        1,
        saved=saved,
        place=AttemptPlace(str(root), "g"),
    )
    spec_to_bytes(one)

    async def main() -> ExecutionResult:
        made: Services = replace(
            services(Moded(changes, on_evaluate), FakeHarness(on_run)),
            environment=environment or HostProcess(NoParams()),
            storage=storage or Storage(),
        )
        return await execute(one, made, watch or Watch())

    result = asyncio.run(main())
    assert result_from_bytes(result_to_bytes(result)) == result
    return result


def runs(path: Path, words: str) -> bool:
    try:
        return words.encode() in path.read_bytes()
    except OSError:
        return False


def writes(**files: str) -> Run:
    async def run(context: HarnessContext) -> str:
        session = await context.session()
        for name, text in files.items():
            await session.write_file(name.replace("__", "/").replace("_dot_", "."), text.encode())
        return "right"

    return run


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({}, EvaluationMode.NONE),
        ({"collect": ("out",)}, EvaluationMode.FRESH),
        ({"artifacts": ArtifactSpec(globs=("*.txt",))}, EvaluationMode.FRESH),
        ({"evaluation": EvaluationMode.REUSE}, EvaluationMode.REUSE),
    ],
)
def test_what_a_task_needs_decides_where_it_is_scored(
    changes: dict[str, Any], mode: EvaluationMode, tmp_path: Path
) -> None:
    assert played(tmp_path, changes, writes(out="x")).mode is mode


def test_an_answer_that_is_scored_at_once_leaves_no_file(tmp_path: Path) -> None:
    result = played(tmp_path, {}, writes())
    assert result.outcome is Outcome.SCORED
    assert result.checkpoint is None
    assert list(tmp_path.iterdir()) == []


def test_a_scorer_that_opens_a_session_or_takes_its_time_finds_the_work_on_the_disk(
    tmp_path: Path,
) -> None:
    async def opens(context: Any) -> None:
        await context.session()
        assert read_checkpoint(tmp_path / "a", "t", 1) is not None

    async def is_slow(context: Any) -> None:
        for _ in range(500):
            await asyncio.sleep(0.01)
            if read_checkpoint(tmp_path / "b", "t", 1) is not None:
                return
        raise AssertionError("no checkpoint")

    for name, scorer in (("a", opens), ("b", is_slow)):
        watch = Watch()
        result = played(tmp_path / name, {}, writes(), scorer, watch=watch)
        assert result.outcome is Outcome.SCORED, result.issues
        found = read_checkpoint(tmp_path / name, "t", 1)
        assert found is not None
        assert (found.answer, found.generation, found.mode) == ("right", "g", "none")
        assert result.checkpoint is not None
        assert watch.checkpoints == [result.checkpoint["path"]]


def test_fresh_files_are_put_back_at_their_paths(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    async def scorer(context: Any) -> None:
        session = await context.session()
        seen["out"] = await session.read_file("out/a.txt")
        seen["log"] = await session.read_file("logs/deep/x.log")
        seen["paths"] = sorted(context.artifacts)
        with pytest.raises(FileNotFoundError):
            await session.read_file("logs/deep/x.tmp")

    changes = {"collect": ("out",), "artifacts": ArtifactSpec(globs=("logs/**/*.log",))}
    agent = writes(out__a_dot_txt="1", logs__deep__x_dot_log="2", logs__deep__x_dot_tmp="3")
    result = played(tmp_path, changes, agent, scorer)
    assert result.outcome is Outcome.SCORED, result.issues
    assert seen == {"out": b"1", "log": b"2", "paths": ["logs/deep/x.log", "out"]}
    found = read_checkpoint(tmp_path, "t", 1)
    assert found is not None
    assert [one.path for one in found.inputs] == ["out", ""]


@pytest.mark.parametrize("environment", ["host_process", "sandbox"])
def test_reuse_scores_in_the_agents_own_environment_its_programs_ended(
    environment: str, tmp_path: Path
) -> None:
    component = find(Kind.ENVIRONMENT, environment).component
    provider = component(component.Params())
    sleeping = f"600.{secrets.randbelow(10**9)}"
    agents: list[Any] = []

    async def agent(context: HarnessContext) -> str:
        session = await context.session()
        agents.append(session)
        script = f"sleep {sleeping} >/dev/null 2>&1 & echo left > kept"
        await session.exec(["sh", "-c", script])
        return "right"

    async def scorer(context: Any) -> Evaluation:
        session = await context.session()
        assert session is agents[0]
        assert await session.read_file("kept") == b"left\n"
        assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if runs(path, sleeping)]
        return Evaluation({"passed": context.answer == "right"})

    watch = Watch()
    result = played(
        tmp_path,
        {"evaluation": EvaluationMode.REUSE},
        agent,
        scorer,
        environment=provider,
        watch=watch,
    )
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.trust is (Trust.HOST if environment == "host_process" else Trust.CONTAINED)
    assert [state for _, state in watch.sessions] == ["opened", "closed"]
    assert read_checkpoint(tmp_path, "t", 1) is None


def test_a_scorer_that_fails_in_reuse_leaves_nothing_to_score_again(tmp_path: Path) -> None:
    async def scorer(context: Any) -> None:
        raise RuntimeError("as asked")

    reuse = played(tmp_path, {"evaluation": EvaluationMode.REUSE}, writes(), scorer)
    assert (reuse.outcome, reuse.work) == (Outcome.FAILED_FATAL, None)
    fresh = played(tmp_path, {"collect": ("out",)}, writes(out="1"), scorer)
    assert fresh.work is not None
    assert Path(fresh.work.inputs["out"]).read_text() == "1"


def test_saved_work_is_scored_and_no_agent_runs(tmp_path: Path) -> None:
    async def crash(context: Any) -> None:
        raise RuntimeError("as asked")

    async def scorer(context: Any) -> Evaluation:
        return Evaluation({"passed": context.artifacts["out"].read_text() == "1"})

    async def never(context: HarnessContext) -> HarnessResult:
        raise AssertionError("the agent ran")

    first = played(tmp_path, {"collect": ("out",)}, writes(out="1"), crash)
    again = played(tmp_path, {"collect": ("out",)}, never, scorer, saved=first.work)
    assert (again.outcome, again.metrics) == (Outcome.SCORED, {"passed": True})
    assert again.checkpoint == first.checkpoint


def test_inputs_that_are_too_large_are_to_go_once_their_score_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.engine.checkpointing.MAX_KEPT_BYTES", 5)
    large = played(tmp_path / "a", {"collect": ("out",)}, writes(out="123456"))
    assert (large.outcome, large.checkpoint) == (Outcome.SCORED, None)
    assert large.drops_inputs
    small = played(tmp_path / "b", {"collect": ("out",)}, writes(out="12345"))
    assert small.checkpoint is not None
    assert not small.drops_inputs


def test_inputs_that_are_too_large_go_once_their_score_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.engine.checkpointing.MAX_KEPT_BYTES", 5)
    one = request(
        benchmark={"tasks": 2, "collects": True}, harness={"execs": "cp /proc/version out"}
    )
    result = run_all(tmp_path, one)
    assert [(r.outcome, r.checkpoint) for r in records(result)] == [(Outcome.SCORED, None)] * 2
    root = result.requests[0].run_dir
    assert len(list(root.glob("tasks/*/*/checkpoint.json"))) == 2
    assert not list(root.glob("tasks/*/*/inputs-1/*"))


def test_a_timed_out_agents_work_is_scored_where_the_benchmark_says_so(tmp_path: Path) -> None:
    async def agent(context: HarnessContext) -> str:
        await (await context.session()).write_file("out", b"half")
        await asyncio.sleep(60)
        return "never"

    async def scorer(context: Any) -> Evaluation:
        return Evaluation({"passed": context.artifacts["out"].read_text() == "half"})

    changes = {"collect": ("out",), "limits": TaskLimits(run_seconds=0.5)}
    wanted = (ArtifactSpec(paths=("out",)),)
    plain = played(tmp_path / "a", changes, agent, scorer, wanted=wanted)
    assert (plain.outcome, plain.metrics) == (Outcome.TIMED_OUT, {})
    assert [Path(one["path"]).name for one in plain.artifacts] == ["out"]
    scored = played(tmp_path / "b", {**changes, "scores_timed_out": True}, agent, scorer)
    assert (scored.outcome, scored.metrics) == (Outcome.SCORED, {"passed": True})
    assert [issue.code for issue in scored.issues] == [IssueCode.AGENT_TIMED_OUT]


def test_saved_artifacts_are_bounded_and_nothing_is_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret of the host")

    async def agent(context: HarnessContext) -> str:
        session = await context.session()
        folder = Path(session.workdir)
        await session.write_file("keep/a.txt", b"a")
        await session.write_file("keep/.git/config", b"no")
        await session.write_file("big", b"x" * 5000)
        (folder / "keep" / "link").symlink_to(tmp_path / "outside")
        (folder / "keep" / "folder").symlink_to(tmp_path)
        os.mkfifo(folder / "keep" / "fifo")
        with socket.socket(socket.AF_UNIX) as listening:
            here = Path.cwd()
            os.chdir(folder / "keep")
            try:
                listening.bind("s")
            finally:
                os.chdir(here)
        (folder / "keep" / os.fsdecode(b"caf\xe9.txt")).write_text("latin")
        return "right"

    wanted = (
        ArtifactSpec(paths=("keep", "/etc/passwd"), excludes=(".git",)),
        ArtifactSpec(globs=("b*",), max_bytes=100),
        ArtifactSpec(paths=("made",), command=("sh", "-c", "echo made > made")),
    )
    result = played(tmp_path / "run", {}, agent, wanted=wanted)
    assert result.outcome is Outcome.SCORED, result.issues
    names = sorted(one["path"].split("/artifacts/")[1] for one in result.artifacts)
    assert names == ["keep/a.txt", "keep/caf%E9.txt", "made"]
    messages = " ".join(issue.message for issue in result.issues)
    for said in ("2 × link", "1 × FIFO", "1 × socket", "above 100 bytes", "leads out"):
        assert said in messages
    assert {issue.code for issue in result.issues} == {IssueCode.OUTPUT_TRUNCATED}


def test_a_secret_in_an_artifact_is_flagged_and_not_changed(tmp_path: Path) -> None:
    storage = Storage(has_secret=lambda data: b"sk-canary" in data)
    wanted = (ArtifactSpec(paths=("out",)),)
    result = played(tmp_path, {}, writes(out="my sk-canary"), wanted=wanted, storage=storage)
    (artifact,) = result.artifacts
    assert artifact["flagged"] is True
    assert (tmp_path / artifact["path"]).read_text() == "my sk-canary"
    assert [issue.code for issue in result.issues] == [IssueCode.ARTIFACT_FLAGGED]


@pytest.mark.parametrize("where", ["answer", "inputs", "nowhere"])
def test_a_secret_in_a_checkpoint_is_flagged_and_not_changed(where: str, tmp_path: Path) -> None:
    """What is scored must not change because a secret was covered."""
    storage = Storage(has_secret=lambda data: b"sk-canary" in data)

    async def agent(context: HarnessContext) -> str:
        await (await context.session()).write_file(
            "out", b"my sk-canary" if where == "inputs" else b"mine"
        )
        return "my sk-canary" if where == "answer" else "right"

    played(tmp_path, {"collect": ("out",)}, agent, storage=storage)
    found = read_checkpoint(tmp_path, "t", 1)
    assert found is not None
    assert found.flagged is (where != "nowhere")
    assert found.answer == ("my sk-canary" if where == "answer" else "right")


@pytest.mark.parametrize("mode", ["reuse", "fresh", None])
def test_a_pack_says_where_it_is_scored(mode: str | None, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    said = f"mode: {mode}" if mode else "strategy: all"
    (pack / "pack.yaml").write_text(f"""
schema: pack/v1
slug: made
version: 1
prompt: "make it"
cases: [{{id: a}}]
scoring:
  {said}
  validators: [{{type: command, run: [test, -e, made]}}]
  threshold: 1.0
""")
    one = request(benchmark={"id": str(pack)}, harness={"execs": "touch made"})
    result = run_all(tmp_path, one)
    (record,) = records(result)
    assert record.evaluation_mode == (mode or "none")
    # Nothing says that the task is about files: only the agent's own environment has this one.
    assert record.metrics["correct"] is (mode == "reuse")
    kinds = [event["kind"] for event in RunReader(result.requests[0].run_dir).events()]
    assert kinds.count("opened") == kinds.count("closed") == (1 if mode == "reuse" else 2)
    assert kinds.count("checkpoint") == (0 if mode == "reuse" else 1)
