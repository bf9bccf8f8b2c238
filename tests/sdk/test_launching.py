"""`run`, `launch`, `resolve`: the command line's own rules, from Python."""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.cli.options import RUN_ONLY, SHARED
from steelyard.sdk.options import SETTINGS, Controls, LaunchOptions, RunOptions
from tests.sdk.parts import Say, Sums, orchestration


def test_run_evaluates_and_gives_typed_figures() -> None:
    result = sy.run(Sums, Say, k=2)
    assert result.outcome is sy.RunOutcome.COMPLETED
    assert result.is_complete
    assert result.planned == 6
    assert result.counts[sy.Outcome.SCORED] == 6
    head = result.headline
    assert head is not None
    assert (head.metric, head.estimator, head.is_official) == ("right", "avg@2", True)
    assert head.value == pytest.approx(1 / 3)
    assert head.interval is not None
    assert head.interval[0] <= 1 / 3 <= head.interval[1]
    assert head.coverage.counted == 6
    assert result.run_dir.is_absolute()
    assert (result.run_dir / "attempts.jsonl").exists()


@pytest.mark.integration
def test_run_calls_a_model(model_url: str) -> None:
    result = sy.run(Sums, "chat", sy.Model("small", base_url=model_url, params={"seed": 1}))
    assert result.require_completed() is result
    assert result.name == "small_Sums_chat"
    assert result.usage.requests == 3
    assert result.score("right").value == pytest.approx(1 / 3)


def test_a_launch_takes_a_path_a_mapping_and_values_alike(own_folder: Path) -> None:
    written = {
        "name": "three",
        "task_concurrency": 2,
        "requests": [
            {
                "name": "a",
                "benchmark": {"id": "humaneval", "prompt": "completion"},
                "harness": {"id": "oracle"},
                "model": {"id": "none"},
                "execution": {"attempts": {"k": 3}, "limit": 2},
                "budget": {"tokens": 5},
            }
        ],
    }
    (own_folder / "three.json").write_text(json.dumps(written))
    values = sy.Orchestration(
        [
            sy.Request(
                {"id": "humaneval", "prompt": "completion"},
                "oracle",
                name="a",
                k=3,
                execution={"limit": 2},
                budget={"tokens": 5},
            )
        ],
        name="three",
        task_concurrency=2,
    )
    found = [sy.resolve(source) for source in ("three.json", written, values)]
    assert found[0] == found[1] == found[2]
    assert found[0].requests[0].k == 3
    assert found[0].requests[0].settings["execution"]["limit"] == 2
    assert not (own_folder / "results").exists()


def test_results_come_by_name_and_in_order() -> None:
    source = orchestration()
    source["requests"].append({**source["requests"][0], "name": "other"})
    result = sy.launch(source)
    assert result.names == ("r", "other")
    assert [run.name for run in result] == ["r", "other"]
    assert result["other"] is result[1]
    assert len(result) == 2
    assert result.exit_status == 0
    with pytest.raises(KeyError, match=r"'x'.*r, other"):
        result["x"]


def test_a_launch_that_failed_is_a_result_and_raises_only_when_asked() -> None:
    result = sy.launch(orchestration(harness=Say(Say.Params(text="crash"))))
    assert result.outcome is sy.RunOutcome.FAILED
    assert result.exit_status == 1
    with pytest.raises(sy.NotCompleted, match=r"r: failed.*FATAL") as caught:
        result.require_completed()
    assert caught.value.result is result
    with pytest.raises(sy.NotCompleted):
        result["r"].require_completed()


def test_options_lie_over_settings_and_those_over_the_files(own_folder: Path) -> None:
    (own_folder / "steelyard.yaml").write_text("execution: {limit: 1, task_concurrency: 3}\n")
    (own_folder / "more.yaml").write_text("execution: {limit: 2}\n")
    request = sy.Request(Sums, Say, name="r")

    def limit(**options: Any) -> object:
        found = sy.resolve(request, **options)
        return found.requests[0].settings["execution"]["limit"]

    assert limit() == 1
    assert limit(config="more.yaml") == 2
    assert limit(config=[Path("more.yaml")], settings={"execution": {"limit": 3}}) == 3
    assert limit(settings={"execution": {"limit": 3}}, limit=4) == 4
    assert limit(limit=None) == 1
    assert limit(use_config_files=False) is None
    assert limit(use_config_files=False, config="more.yaml") == 2
    assert sy.resolve(request).task_concurrency == 3
    assert sy.resolve(request, task_concurrency=7).task_concurrency == 7


def test_reuse_takes_finished_work_over() -> None:
    harness = Say(Say.Params(text="2"))
    first = sy.run(Sums, harness, run_id="first")
    again = sy.run(Sums, harness, reuse=True)
    named = sy.run(Sums, harness, reuse_run_id="first", checkpoint_resume=False)
    assert harness.seen == ["sum-0", "sum-1", "sum-2"]
    assert all(record.reused_from is not None for record in again.attempts())
    assert {record.reused_from["run_id"] for record in named.attempts()} == {first.run_id}  # type: ignore[index]
    assert first.run_id == "first"


def test_the_async_forms_run_beside_each_other_on_one_loop() -> None:
    async def both() -> list[Any]:
        slow = {"benchmark": Sums, "harness": Say(Say.Params(sleep_s=0.1)), "model": "none"}
        return await asyncio.gather(
            sy.alaunch({"requests": [{"name": "a", **slow}]}),
            sy.arun(Sums, Say(Say.Params(text="3", sleep_s=0.1)), run_name="b"),
            sy.aresolve(sy.Request(Sums, Say)),
        )

    launched, ran, resolved = asyncio.run(both())
    assert launched["a"].is_complete
    assert ran.is_complete
    assert resolved.requests[0].benchmark == "tests.sdk.parts:Sums"


def test_what_auto_comes_to_is_resolved_and_said() -> None:
    found = sy.resolve(sy.Request(Sums, Say, name="r"))
    assert found.requests[0].environment == "host_process"
    assert found.requests[0].early_stop is False
    assert "tests.sdk.parts:Sums × tests.sdk.parts:Say × none in host_process" in str(found)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a file that is not there": (
        lambda: sy.launch("nope.yaml"), r"nope\.yaml: there is no such file"),
    "a source of another type": (
        lambda: sy.launch(3), r"source: a value of type int is no orchestration"),  # type: ignore[arg-type]
    "an unknown field in a mapping, with its path": (
        lambda: sy.launch(orchestration(modell={"id": "none"})),
        r"requests\[0\]\.modell: unknown field 'modell'\n.*did you mean model\?"),
    "no requests": (lambda: sy.launch({}), r"requests: the required field requests is missing"),
    "a component of another type": (
        lambda: sy.run(5, Say), r"benchmark: a value of type int is no benchmark"),  # type: ignore[arg-type]
    "a harness as a benchmark": (
        lambda: sy.run(Say, Say), r"benchmark: .*is not a benchmark\n.*subclass"),  # type: ignore[arg-type]
    "a mapping without an id": (
        lambda: sy.run({"tasks": 1}, Say), r"benchmark\.id: there is no id"),
    "a model of another type": (
        lambda: sy.run(Sums, Say, 7), r"model: a value of type int is no model"),  # type: ignore[arg-type]
    "an unknown id": (
        lambda: sy.run("humanevel", Say), r"benchmark: unknown benchmark 'humanevel'\n.*humaneval"),
    "an option out of range": (lambda: sy.run(Sums, Say, k=0), r"k: found 0\n.*above 0"),
    "an option of another type": (
        lambda: sy.run(Sums, Say, limit="many"), r"limit: found the text 'many'\n.*whole number"),  # type: ignore[arg-type]
    "settings that are none": (
        lambda: sy.run(Sums, Say, settings=[1]), r"settings: expected a mapping"),  # type: ignore[arg-type]
    "a setting that is unknown": (
        lambda: sy.run(Sums, Say, settings={"execution": {"limt": 1}}),
        r"settings\.execution\.limt: unknown field 'limt'\n.*limit"),
    "a setting that is no plain data": (
        lambda: sy.run(Sums, Say, settings={"execution": {"limit": {1}}}),
        r"settings\.execution\.limit: a value of type set is no setting"),
    "a config that is no path": (
        lambda: sy.run(Sums, Say, config=3), r"config: found a value of type int"),  # type: ignore[arg-type]
    "a config that is not there": (
        lambda: sy.run(Sums, Say, config="c.yaml"), r"c\.yaml: there is no such file"),
    "a progress that there is not": (
        lambda: sy.run(Sums, Say, progress="loud"), r"progress: 'loud' is none of its values"),  # type: ignore[arg-type]
    "a handler that cannot be called": (
        lambda: sy.run(Sums, Say, on_event=3), r"on_event: found a value of type int"),  # type: ignore[arg-type]
    "a component's own field": (
        lambda: sy.run({"id": Sums, "tasks": 0, "task": 1}, Say),
        r"benchmark\.tasks: found 0[\s\S]*benchmark\.task: unknown field"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_said_as_on_the_command_line(what: str, own_folder: Path) -> None:
    call, message = BAD[what]
    with pytest.raises(sy.BadInput, match=message) as caught:
        call()
    assert caught.value.exit_status == 2
    assert all(problem.message for problem in caught.value.problems)
    assert not (own_folder / "results").exists()


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(sy.BadInput) as caught:
        sy.run("humanevel", "chatt", k=0, limit=-1)
    fields = [problem.where.field for problem in caught.value.problems]
    assert fields == ["benchmark", "harness", "k", "limit"]


def test_bad_input_has_the_name_that_callers_know_and_a_short_traceback() -> None:
    with pytest.raises(sy.BadInput) as caught:
        sy.run("./no-such-pack", "oracle")
    assert type(caught.value) is sy.BadInput
    text = "".join(traceback.format_exception(caught.value))
    assert "During handling" not in text
    assert text.count('  File "') <= 4


def test_an_unknown_option_names_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError, match=r"run\(\).*'strategey'; did you mean strategy\?"):
        sy.run(Sums, Say, strategey="pass")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"launch\(\) got an unexpected keyword argument 'k'$"):
        sy.launch("x", k=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"resolve\(\).*'on_event'"):
        sy.resolve("x", on_event=print)  # type: ignore[call-arg]


def test_every_option_names_the_setting_that_it_has_on_the_command_line() -> None:
    flags = {
        "budget_usd": "--budget-usd", "strategy": "--attempt-strategy", "config": "--config",
    }  # fmt: skip
    known = {option.flag: option.path for option in (*SHARED, *RUN_ONLY)}
    for name, path in SETTINGS.items():
        flag = flags.get(name, f"--{name.replace('_', '-')}")
        if flag in known:
            assert known[flag] == path, name
        elif name == "checkpoint_resume":
            assert known["--no-checkpoint-resume"] == path
        else:
            assert name in ("reuse", "reuse_run_id"), name


def test_signatures_are_written_out_for_help_and_notebooks() -> None:
    for call, form in ((sy.run, RunOptions), (sy.alaunch, LaunchOptions), (sy.resolve, Controls)):
        parameters = inspect.signature(call).parameters
        assert set(form.__annotations__) <= set(parameters)
        assert parameters["use_config_files"].default is True
        assert parameters["limit"].default is None
        assert parameters["limit"].annotation == "int | None"
    beside = {"settings", "config", "use_config_files", "progress", "on_event", "on_event_error"}
    assert set(RunOptions.__annotations__) == {*SETTINGS, *beside, "environment"}
