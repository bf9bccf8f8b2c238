"""What breaks a contract is the component's fault, and is named with its class, file and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.benchmark import Task
from steelyard.components.clock import SystemClock
from steelyard.components.contract import (
    UnusableComponent,
    UnusableTasks,
    checked_tasks,
    described,
    own_code,
)
from steelyard.components.registry import Kind, find
from steelyard.config.errors import BadInput
from steelyard.config.secrets import SecretStore
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec

HARNESS = """
from steelyard.components.harness import Harness, HarnessResult, HarnessTraits
class Mine(Harness):
{fields}
    async def run(self, context):
        return HarnessResult("x")
"""
GOOD = {
    "api": "api = 1",
    "id": "id = 'mine'",
    "traits": "traits = HarnessTraits(calls_model=False)",
}

BENCHMARK = """
import json
from steelyard.components.benchmark import Benchmark, BenchmarkInfo, binary, scalar
class Mine(Benchmark):
    api = 1
    id = "mine"
    def __init__(self, params):
        super().__init__(params)
        {constructor}
    def info(self):
        return {info}
    def load_tasks(self): return []
    def task_input(self, task, *, attempt, seed): ...
    async def evaluate(self, task, context): ...
"""


def harness(folder: Path, **fields: str) -> None:
    lines = (GOOD | fields).values()
    text = HARNESS.format(fields="\n".join(f"    {line}" for line in lines if line))
    (folder / "h.py").write_text(text)
    found = find(Kind.HARNESS, "./h.py:Mine", base_dir=folder)
    assert found.component.__name__ == "Mine"


def test_a_class_that_keeps_the_contract_is_found(tmp_path: Path) -> None:
    harness(tmp_path)


@pytest.mark.parametrize(
    ("fields", "said", "remedy"),
    [
        ({"api": ""}, "declares no api", "`api = 1`"),
        ({"api": "api = 2"}, "declares api = 2", "`api = 1`"),
        ({"api": "api = True"}, "declares api = True", "`api = 1`"),
        ({"id": ""}, "declares no id", '`id = "mine"`'),
        ({"id": "id = 3"}, "has the id 3", '`id = "mine"`'),
        ({"traits": ""}, "declares no traits", "HarnessTraits(calls_model=True)"),
        ({"traits": "traits = {}"}, "no HarnessTraits", "HarnessTraits(calls_model=True)"),
        ({"version": "version = 2"}, "version that is no text", 'version = "1"'),
        ({"params": "Params = dict"}, "Params that are no pydantic model", "BaseModel"),
    ],
)
def test_a_broken_contract_names_class_file_and_what_to_write(
    tmp_path: Path, fields: dict[str, str], said: str, remedy: str
) -> None:
    with pytest.raises(UnusableComponent) as caught:
        harness(tmp_path, **fields)
    (problem,) = caught.value.problems
    assert said in problem.message
    assert "Mine (" in problem.message
    assert "h.py)" in problem.message
    assert remedy in str(problem.remedy)


def test_everything_that_a_class_leaves_out_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnusableComponent) as caught:
        harness(tmp_path, api="", id="", traits="")
    assert len(caught.value.problems) == 3


def test_a_plug_in_that_extends_a_built_in_declares_its_api_itself(tmp_path: Path) -> None:
    for declared in ("api = 1", "pass"):
        (tmp_path / f"{declared[:3]}.py").write_text(
            f"from steelyard.harnesses.nop import Nop\nclass Mine(Nop):\n    {declared}\n"
        )
    assert find(Kind.HARNESS, "./api.py:Mine", base_dir=tmp_path)
    with pytest.raises(UnusableComponent, match="declares no api"):
        find(Kind.HARNESS, "./pas.py:Mine", base_dir=tmp_path)


def benchmark(folder: Path, info: str, constructor: str = "pass") -> None:
    (folder / "b.py").write_text(BENCHMARK.format(info=info, constructor=constructor))
    store, clock = SecretStore({}), SystemClock()
    maker = Maker(store, clock, EndpointPool(store, clock), folder)
    described("./b.py:Mine", maker.component(Kind.BENCHMARK, ComponentSpec("./b.py:Mine")))


RIGHT = 'BenchmarkInfo("mine", "1", (binary("a"), scalar("b")), "a", False)'


def test_an_info_that_holds_together_is_taken(tmp_path: Path) -> None:
    benchmark(tmp_path, RIGHT)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ('BenchmarkInfo("mine", "1", (binary("a"),), "b", False)', "'b' is none of its metrics"),
        ('BenchmarkInfo("mine", "1", (), "b", False)', "names no metric"),
        ('BenchmarkInfo("mine", "1", (binary("a"), binary("a")), "a", False)', "share the name"),
        ('BenchmarkInfo("mine", "1", ("a",), "a", False)', "a value of type str"),
        ('BenchmarkInfo("", "1", (binary("a"),), "a", False)', "its id is ''"),
        ("None", "gave nothing (None), not a BenchmarkInfo"),
        ("{}", "gave a value of type dict, not a BenchmarkInfo"),
    ],
)
def test_an_info_that_does_not_hold_together_is_named(tmp_path: Path, info: str, said: str) -> None:
    with pytest.raises(UnusableComponent) as caught:
        benchmark(tmp_path, info)
    assert said in str(caught.value)
    assert "Mine (" in str(caught.value)


def test_an_exception_of_info_is_blamed_on_the_users_own_line(tmp_path: Path) -> None:
    with pytest.raises(UnusableComponent, match=r"info\(\) failed: JSONDecodeError.*b\.py:11\)"):
        benchmark(tmp_path, 'json.loads("{")')


def test_an_exception_of_a_constructor_is_blamed_on_its_line(tmp_path: Path) -> None:
    said = r"its constructor failed: ZeroDivisionError.*b\.py:9\)"
    with pytest.raises(UnusableComponent, match=said):
        benchmark(tmp_path, RIGHT, "1 / 0")


def test_a_component_that_ends_the_process_only_fails() -> None:
    with pytest.raises(UnusableComponent, match="SystemExit: 3"):
        own_code("it", None, lambda: exit(3))


def test_what_a_component_finds_wrong_itself_is_passed_on() -> None:
    def refuse() -> None:
        raise BadInput("there is no such split")

    with pytest.raises(BadInput, match=r"^there is no such split$"):
        own_code("it", None, refuse)


def test_tasks_with_ids_of_their_own_are_taken() -> None:
    tasks = [Task("a", {}), Task("b", {})]
    assert checked_tasks("mine", tasks) is tasks


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([Task("a", {}), Task("b", {}), Task("a", {})], "tasks share the id 'a'"),
        ([Task("", {})], "the id of task number 1 is empty"),
        ([Task("a", {}), Task(7, {})], "the id of task number 2 is 7"),  # type: ignore[arg-type]
        ([Task("a", {}), {"id": "b"}], "number 2 is a value of type dict, not a Task"),
        ([], "loaded no tasks: the list is empty"),
        (None, "loaded nothing (None), not a list of tasks"),
        (iter([Task("a", {})]), "not a list of tasks"),
    ],
)
def test_what_is_no_list_of_tasks_with_ids_of_their_own_is_named(tasks: object, said: str) -> None:
    with pytest.raises(UnusableTasks) as caught:
        checked_tasks("mine", tasks)
    assert said in str(caught.value)
    assert "'mine'" in str(caught.value)


def test_many_wrong_tasks_are_counted_not_listed() -> None:
    with pytest.raises(UnusableTasks) as caught:
        checked_tasks("mine", [Task("", {})] * 1000)
    assert "995 more tasks are wrong" in str(caught.value)
    assert len(caught.value.problems) == 6
