"""A folder of Harbor tasks as a benchmark: what its files say, in the engine's terms."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from steelyard.benchmarks.harbor.begin import begin_step, begin_task
from steelyard.benchmarks.harbor.folder import SOLVE_SCRIPT, Part
from steelyard.benchmarks.harbor.inputs import (
    carried_paths,
    collect_command,
    collect_seconds,
    excluded_patterns,
    steps_artifacts,
)
from steelyard.benchmarks.harbor.layout import IN_FOLDER, IN_IMAGE, Layout
from steelyard.benchmarks.harbor.load import LoadedTask, load_folder
from steelyard.benchmarks.harbor.needs import (
    VerifierPlace,
    agent_needs,
    is_separate,
    resolved,
    verifier_of,
    verifier_place,
)
from steelyard.benchmarks.harbor.phases import (
    agents_networks,
    check_networks,
    give_agents_network,
    verifiers_network,
    verifiers_networks,
)
from steelyard.benchmarks.harbor.ready import wait_until_healthy
from steelyard.benchmarks.harbor.reward import REWARD, NoReward, chosen
from steelyard.benchmarks.harbor.steps import combined_rewards, reaches
from steelyard.benchmarks.harbor.verify import left_usable, verdict
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    EnvironmentNeeds,
    Evaluation,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    TaskLimits,
    binary,
    scalar,
)
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.path_params import WrittenPath
from steelyard.components.values import Message

log = logging.getLogger(__name__)

_OPENING_S: Final = 300.0
"""Granted to a verifier's own environment beside the time of its tests and its build."""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SOLVE: Final = """inside() { case "$1" in /*) printf %s "$1" ;; *) printf %s "$PWD/$1" ;; esac; }
STEELYARD_TESTS_DIR=$(inside "$1")
STEELYARD_LOGS_DIR=$(inside "$2")
STEELYARD_SOLUTION_DIR=$(inside "$3")
export STEELYARD_TESTS_DIR STEELYARD_LOGS_DIR STEELYARD_SOLUTION_DIR
script=$STEELYARD_SOLUTION_DIR/$4
chmod +x "$script" 2>/dev/null
"$script" || echo "$4 ended with exit code $?"
"""
"""Whether a solution solves is for the tests to say, not for its exit code."""


class TaskParams(BaseModel):
    """What every benchmark of task folders takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    images: Literal["task", "none"] = "task"
    """`none`: without the tasks' images, with the programs that the environment has; for
    `sandbox`, and for tasks whose Dockerfile only brings files."""
    variables: dict[str, str] = Field(default_factory=dict)
    """What `${NAME}` in a task's `env` tables stands for."""
    pass_at: float = Field(default=1.0, allow_inf_nan=False)
    """The reward from which an attempt has passed."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest reward that a task may give; another is the scorer's fault."""

    @model_validator(mode="after")
    def _range_holds(self) -> TaskParams:
        lowest, highest = self.reward_range
        if not lowest < highest:
            raise ValueError("reward_range: the first must be below the second")
        if not lowest <= self.pass_at <= highest:
            raise ValueError("pass_at must lie in reward_range")
        return self


class HarborParams(TaskParams):
    """Parameters of `harbor`."""

    path: Annotated[str, Field(min_length=1), WrittenPath()]
    """A folder of task folders, or one task folder."""

    @field_validator("path")
    @classmethod
    def _from_base(cls, path: str, info: ValidationInfo) -> str:
        base = (info.context or {}).get("base_dir")
        return path if base is None else str(Path(base) / path)


class TaskFolders(Benchmark):
    """Tasks in Harbor's format, wherever they come from."""

    Params: ClassVar[type[BaseModel]] = TaskParams
    params: TaskParams

    @abstractmethod
    def root(self) -> Path:
        """Give the folder of the tasks.

        Raises:
            BadInput: it is not there.
        """

    @cached_property
    def tasks(self) -> Mapping[str, LoadedTask]:
        """Every task; raises `BadInput` with all that is wrong."""
        return load_folder(self.root(), self.params.variables, with_images=self._with_images)

    @property
    def _with_images(self) -> bool:
        return self.params.images == "task"

    @property
    def _layout(self) -> Layout:
        return IN_IMAGE if self._with_images else IN_FOLDER

    def info(self) -> BenchmarkInfo:
        """Describe the benchmark; its tasks are not looked at."""
        lowest, highest = self.params.reward_range
        return BenchmarkInfo(
            id=self.id,
            version="1",
            metrics=(
                binary("passed"),
                scalar(REWARD, bounds=(lowest, highest), on_failure=lowest),
            ),
            primary="passed",
            runs_model_code=True,
            wants_images=self._with_images,
        )

    def load_tasks(self) -> Sequence[Task]:
        """Read and check every task folder."""
        refused = [name for name, loaded in self.tasks.items() if loaded.refusals]
        if refused:
            log.warning(
                "%d of %d tasks cannot be run as things are (`task_invalid` says why): %s",
                *(len(refused), len(self.tasks), ", ".join(refused[:20])),
            )
        return [self._task(name, loaded) for name, loaded in self.tasks.items()]

    def task_ids(self) -> Sequence[str] | None:
        """Give the names of the task folders."""
        return list(self.tasks)

    def _task(self, name: str, loaded: LoadedTask) -> Task:
        table = loaded.folder.table
        category = table.metadata.get("category")
        return Task(
            name,
            {"step": None},
            category=category if isinstance(category, str) and category else None,
        )

    def _found(self, task: Task) -> tuple[LoadedTask, Part]:
        loaded = self.tasks.get(task.id)
        if loaded is None:
            raise AttemptFault(
                IssueCode.TASK_INVALID, f"there is no task {task.id!r} in {self.root()}"
            )
        step = task.data["step"]
        return loaded, loaded.folder.parts[0 if step is None else step]

    # -- what the agent gets -----------------------------------------------------------------

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Show the instruction; of a task with steps, each step's in its stage."""
        loaded, part = self._found(task)
        if loaded.refusals:
            said = "; ".join(str(problem) for problem in loaded.refusals[:3])
            raise AttemptFault(IssueCode.TASK_INVALID, said)
        folder = loaded.folder
        agent = folder.table.agent
        run_s = agent.timeout_sec
        if part.step is not None and part.step.agent.timeout_sec is not None:
            run_s = part.step.agent.timeout_sec
        verifier = verifier_of(folder, part)
        whole = TaskInput(
            (Message("user", part.instruction),),
            needs=self._needs(loaded),
            limits=TaskLimits(run_seconds=run_s, evaluation_seconds=verifier.timeout_sec),
            evaluation=EvaluationMode.REUSE,
            scores_timed_out=True,
        )
        if folder.has_steps and task.data["step"] is None:
            stages = tuple(
                replace(task, data={"step": number}) for number in range(len(folder.parts))
            )
            return replace(whole, stages=stages)
        if not is_separate(folder, part):
            return whole
        place = self._place(loaded, part)
        build_s = 0.0 if place.needs.build is None else place.needs.build.timeout_s or 0.0
        return replace(
            whole,
            evaluation=EvaluationMode.FRESH,
            collect=carried_paths(folder, part, self._layout, self._workdir(loaded)),
            collect_command=collect_command(folder, part),
            collect_command_s=collect_seconds(folder, part),
            scorer_needs=place.needs,
            limits=replace(
                whole.limits, evaluation_seconds=verifier.timeout_sec + build_s + _OPENING_S
            ),
        )

    def _needs(self, loaded: LoadedTask) -> EnvironmentNeeds:
        needs = agent_needs(loaded.folder, self.params.variables, with_image=self._with_images)
        if loaded.plain is None or not loaded.plain.env:
            return needs
        return replace(needs, env={**loaded.plain.env, **needs.env})

    def _place(self, loaded: LoadedTask, part: Part) -> VerifierPlace:
        variables = self.params.variables
        return verifier_place(loaded.folder, part, variables, with_image=self._with_images)

    def _workdir(self, loaded: LoadedTask) -> str:
        """The working folder as the task knows it."""
        if loaded.plain is None:
            return "/"
        return loaded.folder.table.environment.workdir or loaded.plain.workdir

    async def begin(self, task: Task, session: Session) -> None:
        """Bring the files that an image would have; before a step, its own files and setup."""
        loaded, part = self._found(task)
        if task.data["step"] is None:
            await check_networks(session, loaded.folder)
            await begin_task(session, self._layout, loaded)
        else:
            await give_agents_network(session, loaded.folder, part)
            await begin_step(session, self._layout, part)

    def reference(self, task: Task) -> Reference | None:
        """Give the solution's script, with its folder in place."""
        loaded, part = self._found(task)
        if part.solution is None:
            return None
        layout = self._layout
        return Reference(
            files=part.solution,
            files_into=layout.solution,
            command=(
                *("/bin/sh", "-c", _SOLVE, "sh"),
                *(layout.tests, layout.logs, layout.solution, SOLVE_SCRIPT),
            ),
            env={
                "DEBIAN_FRONTEND": "noninteractive",
                **resolved(loaded.folder.table.solution.env, self.params.variables),
            },
        )

    # -- identity ----------------------------------------------------------------------------

    def generation_content(self, task: Task) -> Any:
        """Give what the agent is shown and works in; neither tests nor solution nor time."""
        loaded, _ = self._found(task)
        folder, needs = loaded.folder, self._needs(loaded)
        return {
            "shown": folder.shown_digest,
            "environment": "" if needs.image is not None else folder.environment_digest,
            "needs": needs.as_json(),
            "env": dict(folder.table.environment.env),
            "images": self.params.images,
            "thresholds": [part.step.thresholds for part in folder.parts if part.step is not None],
            **agents_networks(folder),
        }

    def evaluation_content(self, task: Task) -> Any:
        """Give what decides the score: tests, where they run, and what they are given."""
        loaded, _ = self._found(task)
        table = loaded.folder.table
        places = [
            self._place(loaded, part).needs.as_json() if is_separate(loaded.folder, part) else None
            for part in loaded.folder.parts
        ]
        return {
            "task": self.generation_content(task),
            "tests": loaded.folder.tests_digest,
            "places": places,
            "verifier": [
                [dict(one.env), [hook.command for hook in one.collect]]
                for one in (verifier_of(loaded.folder, part) for part in loaded.folder.parts)
            ],
            "artifacts": [one.model_dump() for one in table.artifacts],
            **steps_artifacts(loaded.folder),
            **verifiers_networks(loaded.folder),
            "strategy": table.multi_step_reward_strategy,
        }

    def scoring_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what decides whether a reward passes."""
        return {name: filled[name] for name in ("images", "pass_at", "reward_range")}

    # -- scoring -----------------------------------------------------------------------------

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Run the tests where the task wants them run, and read their reward."""
        loaded, part = self._found(task)
        folder = loaded.folder
        verifier, session = verifier_of(folder, part), await context.session()
        tests, excluded = part.tests, list[tuple[str, str]]()
        if is_separate(folder, part):
            if self._place(loaded, part).brings_tests:
                tests = ()
            excluded = excluded_patterns(folder, part, self._layout, self._workdir(loaded))
            check = verifier.environment.healthcheck if verifier.environment else None
            if check is not None:
                await wait_until_healthy(session, check)
        elif (command := collect_command(folder, part)) is not None:
            limit_s = collect_seconds(folder, part)
            await session.exec(command, cwd=session.workdir, timeout_s=limit_s)
        async with verifiers_network(session, folder, part), left_usable(folder, part):
            found = await verdict(
                session,
                self._layout,
                tests,
                env=resolved(verifier.env, self.params.variables),
                excluded=excluded,
            )
        try:
            reward = chosen(found.rewards, *self.params.reward_range)
        except NoReward as error:
            raise AttemptFault(
                IssueCode.SCORER_CRASHED, f"the tests left no verdict: {found.file} {error}"
            ) from error
        details = {
            "rewards": found.rewards,
            "exit_code": found.exit_code,
            "output": found.output,
        }
        return Evaluation(self._metrics(reward, found.rewards), details=details)

    def _metrics(self, reward: float, rewards: Mapping[str, float]) -> dict[str, float | bool]:
        # Rewards are decimal fractions: the mean of 0.7, 0.7 and 0.7 must meet 0.7.
        passed = reward >= self.params.pass_at - 1e-9
        more = {
            f"{REWARD}.{name}": value
            for name, value in rewards.items()
            if name != REWARD and _NAME.fullmatch(name)
        }
        return {"passed": passed, REWARD: reward, **more}

    def goes_on(self, stage: Task, evaluation: Evaluation) -> bool:
        """True where the step's rewards meet its `min_reward`."""
        _, part = self._found(stage)
        return part.step is None or reaches(evaluation.details["rewards"], part.step.thresholds)

    def combined(self, task: Task, evaluations: Sequence[Evaluation]) -> Evaluation:
        """Combine the steps' rewards as the task says."""
        loaded, _ = self._found(task)
        folder = loaded.folder
        rewards = combined_rewards(
            [{REWARD: float(one.metrics[REWARD]), **one.details["rewards"]} for one in evaluations],
            [part.step for part in folder.parts if part.step is not None],
            folder.table.multi_step_reward_strategy or "mean",
        )
        details = {
            "steps": [
                {"name": part.name, **one.details}
                for part, one in zip(folder.parts, evaluations, strict=False)
            ]
        }
        return Evaluation(self._metrics(rewards[REWARD], rewards), details=details)


class Harbor(TaskFolders):
    """The tasks of a folder that the user names."""

    id: ClassVar[str] = "harbor"
    Params: ClassVar[type[BaseModel]] = HarborParams
    params: HarborParams

    def root(self) -> Path:
        """Give the folder as it is named."""
        return Path(self.params.path).absolute()

    def info(self) -> BenchmarkInfo:
        """Describe the benchmark; what is wrong with its tasks is said at once."""
        _ = self.tasks
        return super().info()
