"""Classes and instances of a script as components."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

import steelyard as sy
from steelyard.environments.host_process import HostProcess
from steelyard.harnesses.nop import Nop
from tests.sdk.parts import Say, Sums


def _document(run: sy.RunResult) -> Any:
    return json.loads((run.run_dir / "run.json").read_text())


def test_the_very_instance_works_on_the_tasks_and_is_closed_once() -> None:
    harness = Say(Say.Params(text="1"))
    result = sy.run(Sums(Sums.Params(tasks=2)), harness)
    assert harness.seen == ["sum-0", "sum-1"]
    assert harness.closed == 1
    assert result.planned == 2


def test_an_instance_s_params_stand_in_the_run_and_make_its_identity() -> None:
    same = [sy.run(Sums, Say(Say.Params(text=text))) for text in ("1", "1", "2")]
    assert _document(same[0])["request"]["harness"] == {
        "id": "tests.sdk.parts:Say", "text": "1", "sleep_s": 0.0, "api_key": None,
    }  # fmt: skip
    made = [next(run.attempts()).generation for run in same]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("text", ["${HOME}", "echo ${x} $${y}", "$${z", "$"])
def test_an_instance_s_params_are_taken_as_they_are(text: str) -> None:
    run = sy.run({"id": Sums, "tasks": 1}, Say(Say.Params(text=text)))
    assert _document(run)["request"]["harness"]["text"] == text
    assert next(run.attempts()).answer == text


def test_a_class_takes_its_fields_from_settings() -> None:
    result = sy.run({"id": Sums, "tasks": 1}, {"id": Say, "text": "9"})
    assert [record.answer for record in result.attempts()] == ["9"]


def test_a_class_of_a_function_can_be_given_too() -> None:
    class Local(Say):
        """Lives in this test."""

        api = 1
        id = "local"

    result = sy.run(Sums, {"id": Local, "text": "1"})
    assert _document(result)["request"]["harness"]["id"].endswith("can_be_given_too.Local")
    assert result.name.endswith("can_be_given_too.Local")
    with pytest.raises(sy.BadInput, match=r"harness\.txt: unknown field 'txt'"):
        sy.run(Sums, {"id": Local, "txt": "1"})


def test_two_instances_of_one_class_are_told_apart() -> None:
    one, two = Say(Say.Params(text="1")), Say(Say.Params(text="2"))
    result = sy.launch(
        sy.Orchestration(
            [sy.Request(Sums, harness, name=f"r{n}") for n, harness in enumerate((one, two, one))]
        )
    )
    answers = [{record.answer for record in run.attempts()} for run in result]
    assert answers == [{"1"}, {"2"}, {"1"}]
    ids = [_document(run)["request"]["harness"]["id"] for run in result]
    assert ids == ["tests.sdk.parts:Say", "tests.sdk.parts:Say-2", "tests.sdk.parts:Say"]


def test_an_instance_never_stands_for_its_class_or_for_an_id_that_is_written_out() -> None:
    harness, name = Say(Say.Params(text="mine")), "tests.sdk.parts:Say"
    for others in ((name, Say), (Say, name)):
        result = sy.launch(
            sy.Orchestration(
                [
                    sy.Request(Sums, each, name=f"r{n}")
                    for n, each in enumerate((harness, others[0], harness, others[1]))
                ]
            )
        )
        answers = [next(run.attempts()).answer for run in result]
        assert answers == ["mine", "1", "mine", "1"]
    assert len(harness.seen) == 12


def test_a_built_in_s_class_goes_by_its_id() -> None:
    found = sy.resolve(sy.Request(Sums, Nop, environment=HostProcess, name="r"))
    assert found.requests[0].harness == "nop"
    assert found.requests[0].environment == "host_process"


def test_a_pack_may_be_given_as_a_path(own_folder: Path) -> None:
    (own_folder / "pack").mkdir()
    (own_folder / "pack" / "pack.yaml").write_text(
        "schema: pack/v1\nslug: p\nversion: 1\nprompt: say a\ncases: [{id: c}]\n"
        "scoring: {validators: [{type: exact, expected: a}]}\n"
    )
    for benchmark in (Path("pack"), Path("./pack"), own_folder / "pack", "./pack"):
        assert sy.run(benchmark, Say(Say.Params(text="a"))).score().value == 1


def test_what_breaks_the_contract_is_refused_with_its_place() -> None:
    class Forgetful(Say):
        api = 1
        id = "forgetful"

        def __init__(self) -> None:
            self.seen = []

    class Old(Say):
        api = 7
        id = "old"

    class Odd(Say):
        api = 1
        id = "odd"

        class Params(BaseModel):  # type: ignore[misc]
            model_config = ConfigDict(arbitrary_types_allowed=True)
            text: str = "1"
            sleep_s: float = 0
            tool: object = None

    for harness, said in (
        (Forgetful(), r"harness: .*has no params[\s\S]*super\(\)\.__init__"),
        (Old(Say.Params()), r"harness: .*declares api = 7"),
        (Odd(Odd.Params(tool=print)), r"harness: the params of .* are no plain data"),
        (object(), r"harness: a value of type object is no harness"),
        (Say.Params(), r"harness: a value of type SayParams is no harness"),
    ):
        with pytest.raises(sy.BadInput, match=said):
            sy.run(Sums, harness)  # type: ignore[arg-type]


def test_a_field_that_is_no_data_can_be_kept_out_of_records() -> None:
    class WithTool(Say):
        api = 1
        id = "with-tool"

        class Params(BaseModel):  # type: ignore[misc]
            model_config = ConfigDict(arbitrary_types_allowed=True)
            text: str = "1"
            sleep_s: float = 0
            tool: Any = Field(default=None, exclude=True)

    result = sy.run(Sums, WithTool(WithTool.Params(tool=print)))
    assert result.is_complete
    assert "tool" not in _document(result)["request"]["harness"]


SCRIPT = """
import steelyard as sy
from tests.sdk.parts import Say, Sums

class Mine(Say):
    api = 1
    id = "mine"

if __name__ == "__main__":
    result = sy.run(Sums, {"id": Mine, "text": "1"})
    print(result.require_completed().score(), result.name)
"""


@pytest.mark.integration
def test_a_class_of_the_script_itself_goes_by_its_name(own_folder: Path) -> None:
    (own_folder / "script.py").write_text(SCRIPT)
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "script.py"],
        env={"PATH": "", "PYTHONPATH": str(root), "HOME": str(own_folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout == "right avg@1: 0.333 [0.061, 0.792] (3/3) none_Sums_Mine\n"
    found = json.loads(next(own_folder.glob("results/*/*/run.json")).read_text())
    assert found["request"]["harness"] == {"id": "__main__:Mine", "text": "1"}


def test_what_is_wrong_beside_a_lent_object_is_all_that_is_said() -> None:
    class Local(Say):
        """Known to nobody by its name."""

        api = 1
        id = "local"

    for harness in (Local, Local(Local.Params()), {"id": Local, "text": "x"}):
        with pytest.raises(sy.BadInput) as caught:
            sy.run(Sums, harness, k=0)
        assert [str(problem.where) for problem in caught.value.problems] == ["k"]
    with pytest.raises(sy.BadInput) as caught:
        sy.run(Sums, {"id": Local, "txt": "x"}, k=0)
    assert [str(problem.where) for problem in caught.value.problems] == ["k", "harness.txt"]


def test_an_environment_can_be_given_too() -> None:
    class Counting(HostProcess):
        """Counts the sessions that it opens."""

        api = 1
        id = "counting"
        opened = 0

        async def open(self, request: Any) -> sy.Session:
            self.opened += 1
            return await super().open(request)

    class Asking(Say):
        """Needs an environment."""

        api = 1
        id = "asking"

        async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
            done = await (await context.session()).exec(["echo", "1"])
            return sy.HarnessResult(done.stdout_text.strip())

    environment = Counting(Counting.Params())
    run = sy.run(Sums, Asking, environment=environment)
    assert environment.opened == 3
    assert run.score().value == pytest.approx(1 / 3)
    assert run.metrics is not None
    assert run.metrics["trust"] == {"host": 3}
