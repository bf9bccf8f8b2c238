"""Hold what people plug in against the contracts, before anything runs.

Whatever breaks them is the component's fault: it is named with its class, its file and what to
write. An exception of a user's code is never passed on as one of ours.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from steelyard.config.errors import BadInput, Problem, SteelyardError

if TYPE_CHECKING:
    from steelyard.components.benchmark import BenchmarkInfo, Task

T = TypeVar("T")

SUPPORTED_API: Final = 1
_MAX_NAMED: Final = 5
_MODULES: Final = {
    "benchmark": "Benchmark",
    "harness": "Harness",
    "environment": "Environment",
    "analyzer": "Analyzer",
    "scanner": "Scanner",
}


class UnusableComponent(BadInput):
    """A component that was found but breaks the contract, or cannot be imported."""


class UnusableTasks(BadInput):
    """What a benchmark loaded is no list of tasks with ids of their own."""


def check_class(
    kind: str, name: str, found: object, *, declared_id: str | None = None
) -> type[Any]:
    """Check a class against the contract of its kind.

    Args:
        kind: `benchmark`, `harness`, `environment`, `analyzer` or `scanner`; of others only the
            declared `api` counts.
        name: the id it was found by, for messages.
        found: what stands where the id leads.
        declared_id: the id that the class must call itself; None where any will do.

    Raises:
        UnusableComponent: all that is missing or wrong, each with what to write.
    """
    contract = _contract(kind)
    if not inspect.isclass(found) or (contract is not None and not issubclass(found, contract)):
        raise UnusableComponent(
            f"the {kind} {name!r} is not a {kind}",
            remedy=f"subclass steelyard.components.{kind}.{_MODULES.get(kind, kind.title())}",
        )
    said = f"the {kind} {name!r}: {_place(found)}"
    problems = [Problem(f"{said} {wrong}", remedy=remedy) for wrong, remedy in _faults(kind, found)]
    own_id = getattr(found, "id", None)
    if declared_id is not None and isinstance(own_id, str) and own_id not in ("", declared_id):
        # Records go by the class's own id, settings by the declared one.
        wrong = f"calls itself {own_id!r}, and is installed as {declared_id!r}"
        remedy = f"write `id = {declared_id!r}` in the class, or rename the entry point"
        problems.append(Problem(f"{said} {wrong}", remedy=remedy))
    if problems:
        raise UnusableComponent.of(problems)
    return found


def _contract(kind: str) -> type[Any] | None:
    if kind not in _MODULES:
        return None
    # Imported here: `list` and the checks of ids need no contract.
    from steelyard.components import analyzer, benchmark, environment, harness, scanner

    contracts: dict[str, type[Any]] = {
        "benchmark": benchmark.Benchmark,
        "harness": harness.Harness,
        "environment": environment.Environment,
        "analyzer": analyzer.Analyzer,
        "scanner": scanner.Scanner,
    }
    return contracts[kind]


def _place(found: type[Any]) -> str:
    """Name a class and its file."""
    try:
        file = inspect.getsourcefile(found)
    except (TypeError, OSError):  # OSError: it was typed into an interpreter
        file = None
    return f"{found.__qualname__} ({_shown(file)})" if file else found.__qualname__


def _shown(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _faults(kind: str, found: type[Any]) -> Iterator[tuple[str, str]]:
    """What a class leaves out or has wrong, each with what to write."""
    yield from _api_faults(kind, found)
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        yield f"leaves out {', '.join(missing)}", "implement them"
    if kind not in _MODULES:
        return
    named = getattr(found, "id", None)
    if not isinstance(named, str) or not named:
        yield (
            "declares no id" if named is None else f"has the id {named!r}, which is no text",
            f'write `id = "{found.__name__.lower()}"` in the class',
        )
    if not _is_model(getattr(found, "Params", None)):
        yield (
            "has Params that are no pydantic model",
            'write `class Params(BaseModel): model_config = ConfigDict(extra="forbid")`, or leave '
            "Params out",
        )
    if kind == "harness":
        yield from _harness_faults(found)
    if kind == "environment" and not isinstance(found.is_local, bool):
        yield "has an is_local that is neither True nor False", "write `is_local = True`"
    if kind in ("analyzer", "scanner") and not isinstance(found.version, str):
        yield "has a version that is no text", 'write `version = "1"` in the class'


def _api_faults(kind: str, found: type[Any]) -> Iterator[tuple[str, str]]:
    api = getattr(found, "api", None)
    if _is_ours(found):
        return
    own = [base for base in found.__mro__ if "api" in vars(base) and not _is_ours(base)]
    if not own:
        yield "declares no api", f"write `api = {SUPPORTED_API}` in the class"
    elif type(api) is not int or api != SUPPORTED_API:
        yield (
            f"declares api = {api!r}; this version supports {SUPPORTED_API}",
            "install a version of it made for this steelyard, or write "
            f"`api = {SUPPORTED_API}` once it is",
        )


def _is_ours(found: type[Any]) -> bool:
    return found.__module__.partition(".")[0] == "steelyard"


def _is_model(params: object) -> bool:
    from pydantic import BaseModel

    return inspect.isclass(params) and issubclass(params, BaseModel)


def _harness_faults(found: type[Any]) -> Iterator[tuple[str, str]]:
    from steelyard.components.harness import HarnessTraits

    traits = getattr(found, "traits", None)
    if not isinstance(traits, HarnessTraits):
        yield (
            "declares no traits" if traits is None else "has traits that are no HarnessTraits",
            "write `traits = HarnessTraits(calls_model=True)` in the class, False where it calls "
            "none (from steelyard.components.harness import HarnessTraits)",
        )
    if not isinstance(found.version, str):
        yield "has a version that is no text", 'write `version = "1"` in the class'


def own_code(what: str, owner: object, call: Callable[[], T]) -> T:
    """Call a component's own code; an exception of it names its file and line.

    Args:
        what: for the message: "the harness 'x': its constructor".
        owner: the class or instance whose code it is.
        call: the call.

    Raises:
        UnusableComponent: it raised anything but an error that is already for people.
    """
    try:
        return call()
    except SteelyardError:
        raise
    except (Exception, SystemExit) as error:
        place = where_raised(error, owner)
        raise UnusableComponent(
            f"{what} failed: {said(error)}{f' ({place})' if place else ''}",
            remedy="mend it there; `--debug` shows the traceback",
        ) from error


def said(error: BaseException) -> str:
    """Name an exception and what it says."""
    # Python adds the place to a syntax error's text; `where_raised` gives it in our form.
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    words = " ".join(text.split())[:500]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def where_raised(error: BaseException, owner: object = None) -> str | None:
    """Give `file:line` of the last frame in the owner's file, else of the last frame of all."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{_shown(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return None
    files: set[str | None] = {owner if isinstance(owner, str) else None}
    if owner is not None and not isinstance(owner, str):
        for base in (owner if inspect.isclass(owner) else type(owner)).__mro__:
            if not _is_ours(base) and base.__module__ != "builtins":
                try:
                    files.add(inspect.getsourcefile(base))
                except (TypeError, OSError):
                    continue
    frame = next((frame for frame in reversed(frames) if frame.filename in files), frames[-1])
    return f"{_shown(frame.filename)}:{frame.lineno}"


def described(name: str, benchmark: Any) -> BenchmarkInfo:
    """Ask a benchmark what it is, and hold the answer against the contract.

    Args:
        name: the id it was found by.
        benchmark: the instance.

    Raises:
        UnusableComponent: `info()` raised, or what it says does not hold together.
        BadInput: what `info()` itself found wrong with the parameters.
    """
    from steelyard.components.benchmark import BenchmarkInfo

    who = f"the benchmark {name!r}"
    info = own_code(f"{who}: info()", benchmark, benchmark.info)
    whose = f"{who}: info() of {_place(type(benchmark))}"
    if not isinstance(info, BenchmarkInfo):
        raise UnusableComponent(
            f"{whose} gave {_article(info)}, not a BenchmarkInfo", remedy="return a BenchmarkInfo"
        )
    problems = [Problem(f"{whose}: {wrong}", remedy=remedy) for wrong, remedy in _info_faults(info)]
    if problems:
        raise UnusableComponent.of(problems)
    return info


def _article(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def _info_faults(info: BenchmarkInfo) -> Iterator[tuple[str, str]]:
    from steelyard.components.benchmark import MetricSpec

    for field in ("id", "version"):
        value = getattr(info, field)
        if not isinstance(value, str) or not value:
            yield f"its {field} is {value!r}", f"give {field} as text that is not empty"
    metrics = info.metrics
    wrong = "name each metric with binary(NAME) or scalar(NAME)"
    if not isinstance(metrics, tuple | list):
        yield f"its metrics are {_article(metrics)}", f"give a tuple; {wrong}"
        return
    if not metrics:
        yield "it names no metric", wrong
        return
    if odd := [metric for metric in metrics if not isinstance(metric, MetricSpec)]:
        yield f"one of its metrics is {_article(odd[0])}", wrong
        return
    names = [metric.name for metric in metrics]
    for name in names:
        if not isinstance(name, str) or not name:
            yield f"a metric has the name {name!r}", "give text that is not empty"
            return
    if twice := _repeated(names):
        yield f"metrics share the name {_listed(twice)}", "give each metric a name of its own"
    for metric in metrics:
        if metric.kind not in ("binary", "scalar"):
            yield f"the metric {metric.name!r} is of kind {metric.kind!r}", wrong
        bounds = metric.bounds
        if bounds is not None and not (bounds[0] <= bounds[1]):
            yield f"the metric {metric.name!r} has the bounds {bounds!r}", "give (lowest, highest)"
        if metric.on_failure is not None and not math.isfinite(metric.on_failure):
            yield f"the metric {metric.name!r} counts a failure as no number", "give a finite one"
    if info.primary not in names:
        yield (
            f"its primary metric {info.primary!r} is none of its metrics",
            f"write primary={names[0]!r}, or another of: {', '.join(names)}",
        )


def checked_tasks(benchmark_id: str, found: object) -> Sequence[Task]:
    """Hold what `load_tasks` gave against the contract: tasks, each with an id of its own.

    Raises:
        UnusableTasks: all that is wrong, the ids named.
    """
    from steelyard.components.benchmark import Task

    who = f"the benchmark {benchmark_id!r}"
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise UnusableTasks(
            f"{who} loaded {_article(found)}, not a list of tasks",
            remedy="return a list of Task from load_tasks()",
        )
    odd = [(n, task) for n, task in enumerate(found) if not isinstance(task, Task)]
    problems = [
        Problem(
            f"{who}: what load_tasks() gave as number {n + 1} is {_article(task)}, not a Task",
            remedy="make it with Task(id, data)",
        )
        for n, task in odd[:_MAX_NAMED]
    ]
    tasks = [(n, task) for n, task in enumerate(found) if isinstance(task, Task)]
    nameless = [
        (n, task.id) for n, task in tasks if not isinstance(task.id, str) or not task.id.strip()
    ]
    problems += [
        Problem(
            f"{who}: the id of task number {n + 1} is {_id_said(task_id)}",
            remedy="give every task an id: text that is not empty",
        )
        for n, task_id in nameless[:_MAX_NAMED]
    ]
    more = len(odd) + len(nameless) - len(problems)
    if more:
        problems.append(Problem(f"{who}: {more} more tasks are wrong in the same way"))
    if twice := _repeated([task.id for _, task in tasks if isinstance(task.id, str)]):
        problems.append(
            Problem(
                f"{who}: tasks share the id {_listed(twice)}",
                remedy="give each task an id of its own: records and reuse go by it",
            )
        )
    if problems:
        raise UnusableTasks.of(problems)
    if not found:
        raise UnusableTasks(
            f"{who} loaded no tasks: the list is empty",
            remedy="look at its parameters and at the data it reads",
        )
    return found


def _id_said(task_id: object) -> str:
    if isinstance(task_id, str):
        return "empty"
    return f"{task_id!r}, {_article(task_id)}" if task_id is not None else _article(task_id)


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1 and name.strip()]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 80 else f"{name[:79]}…") for name in names[:5])
    more = len(names) - 5
    return f"{shown} and {more} more" if more > 0 else shown
