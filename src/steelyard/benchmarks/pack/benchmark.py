"""A pack as a benchmark: what its files say, in the engine's terms."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from steelyard.benchmarks.pack.case_checks import case_problems, load_cases
from steelyard.benchmarks.pack.digest import DIGEST_CHARS, folder_digest
from steelyard.benchmarks.pack.judging.settings import (
    Judge,
    judge_identity,
    judge_of,
)
from steelyard.benchmarks.pack.judging.settings import (
    JudgeParams as JudgeParams,
)
from steelyard.benchmarks.pack.load import CASES_FOLDER, Pack, read_pack
from steelyard.benchmarks.pack.matching import last_group
from steelyard.benchmarks.pack.paths import PathProblem, folder_in
from steelyard.benchmarks.pack.scoring import Weighed, score_of
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.benchmarks.pack.tool_calling.expected import filled
from steelyard.benchmarks.pack.validators.contract import PASSED, Validator, Verdict, Work
from steelyard.benchmarks.pack.validators.judge import ModelJudge
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    binary,
    scalar,
)
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.judging.sampling import together
from steelyard.components.model import ToolCall
from steelyard.components.values import Message, Trust
from steelyard.config.errors import BadInput, Where
from steelyard.config.validation import in_order


class PackParams(BaseModel):
    """Parameters of a pack: where it lies, and who judges."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    path: str = Field(min_length=1)
    """The pack's folder."""
    judge: JudgeParams | None = None
    """The model that judges: over the pack's own `judge`, with key and address."""


class PackBenchmark(Benchmark):
    """A benchmark written as files."""

    id: ClassVar[str] = "pack"
    Params: ClassVar[type[BaseModel]] = PackParams
    params: PackParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self._folder_digests: dict[str, str] = {}
        self._cases: list[tuple[Task, ...]] = []
        """One entry, once they are read; shared by those that share the pack."""
        self.asks_judges = True
        """False: a judge that would have to be asked counts as satisfied; for `pack check`."""
        self.judge_faults: dict[str, str] | None = None
        """By task, why a judge gave no verdict; kept where a mapping is put here, as `pack check`
        does."""

    def share(self, earlier: Self) -> None:
        """Take over the pack, and its cases once they are read; what is wrong is found anew."""
        if isinstance(earlier, PackBenchmark) and "pack" in earlier.__dict__:
            self.__dict__["pack"] = earlier.pack
            self._cases = earlier._cases

    @cached_property
    def pack(self) -> Pack:
        """The loaded pack; raises `BadInput` with all that is wrong, its cases included."""
        pack, problems = read_pack(Path(self.params.path))
        if not problems and pack is not None:
            return pack
        more = case_problems(pack) if pack is not None else []
        # How many more there are has no place, and stands last.
        placed = in_order([*problems, *(problem for problem in more if problem.where != Where())])
        raise BadInput.of([*placed, *(problem for problem in more if problem.where == Where())])

    @cached_property
    def _workspace(self) -> tuple[Path, ...]:
        return (self.pack.workspace,) if self.pack.workspace is not None else ()

    @cached_property
    def _uses_session(self) -> bool:
        return any(validator.uses_session for validator in self.pack.validators)

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """The names of the validators that ask a model."""
        return tuple(v.name for v in self.pack.validators if isinstance(v, ModelJudge))

    @cached_property
    def _judge(self) -> Judge:
        return judge_of(self.pack.file.judge, self.params.judge)

    def info(self) -> BenchmarkInfo:
        """Describe the pack; its id is its slug."""
        pack = self.pack
        score = scalar("score", bounds=(0.0, 1.0), on_failure=0.0)
        validators = tuple(
            replace(score, name=f"validator.{v.name}")
            if v.is_scalar
            else binary(f"validator.{v.name}")
            for v in pack.validators
        )
        is_binary = pack.file.scoring.threshold is not None
        return BenchmarkInfo(
            id=pack.file.slug,
            version=f"{pack.file.version}+{pack.digest[:DIGEST_CHARS]}",
            metrics=((binary("correct"),) if is_binary else ()) + (score, *validators),
            primary="correct" if is_binary else "score",
            runs_model_code=self._uses_session or pack.file.answer.command is not None,
        )

    def missing_extra(self) -> str | None:
        """Name what reading this pack's files needs and this installation lacks."""
        cases = self.pack.file.cases
        files = [cases] if isinstance(cases, str) else cases
        is_parquet = any(isinstance(f, str) and f.lower().endswith(".parquet") for f in files)
        return "parquet" if is_parquet and importlib.util.find_spec("pyarrow") is None else None

    def load_tasks(self) -> Sequence[Task]:
        """Read and check every case."""
        if not self._cases:
            self._cases.append(tuple(load_cases(self.pack)))
        return self._cases[0]

    def task_ids(self) -> Sequence[str] | None:
        """Give the ids of all cases, where they can be read here."""
        return None if self.missing_extra() else [task.id for task in self.load_tasks()]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        """Render the prompt."""
        pack = self.pack
        values = {**task.data, "attempt": attempt, "seed": seed}
        workspace = self._workspace
        if task.id in pack.case_folders:
            workspace = (*workspace, pack.root / CASES_FOLDER / task.id)
        return TaskInput(
            tuple(Message(role, _shown(template, values)) for role, template in pack.messages),
            workspace,
            pack.needs,
            pack.limits,
            pack.file.answer.file,
            tuple(map(str, pack.file.answer.command)) if pack.file.answer.command else None,
            pack.collect,
            pack.reads_steps,
            evaluation=EvaluationMode(mode) if (mode := pack.file.scoring.mode) else None,
            scores_timed_out=pack.file.scoring.timed_out == "score",
        )

    def generation_content(self, task: Task) -> Any:
        """Give what the agent can see: the pack's part as a digest, the case's fields as they are.

        Attempt and seed are left as variables: the templates' source stands for them.
        """
        pack, data = self.pack, task.data
        return {
            "pack": pack.shown_digest,
            "fields": {name: data[name] for name in pack.shown_fields if name in data},
            "files": self._folder_digest(task.id) if task.id in pack.case_folders else None,
        }

    def evaluation_content(self, task: Task) -> Any:
        """Give the scoring rules as a digest, and the case."""
        return {"scoring": self.pack.scoring_digest, "case": dict(task.data)}

    def scoring_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what of the judge can change a score; neither its address nor its key."""
        if not self.judges:
            return {}
        return {"judge": judge_identity(self.pack.file.judge, filled.get("judge"))}

    def scoring_models(self) -> Sequence[Mapping[str, Any]]:
        """Give the judging model, where a validator asks one."""
        if self.judges:
            return (self._judge.model,)
        if self.params.judge is not None:
            raise BadInput(
                f"`judge` is given, and the pack {self.pack.file.slug} has no validator of that "
                "type",
                remedy="leave it out",
            )
        return ()

    def reference(self, task: Task) -> Reference | None:
        """Give what `oracle` plays."""
        pack, found = self.pack, self.pack.reference
        if found is None:
            return None
        try:
            files = None
            if found.files is not None:
                files = folder_in(pack.root, found.files.render(task.data))
            return Reference(
                answer=found.answer.render(task.data) if found.answer is not None else None,
                files=files,
                command=(
                    tuple(part.render(task.data) for part in found.command)
                    if found.command is not None
                    else None
                ),
                tool_calls=tuple(
                    ToolCall(f"reference-{number}", name, _json_text(filled(arguments, task.data)))
                    for number, (name, arguments) in enumerate(found.tool_calls, 1)
                ),
            )
        except (TemplateProblem, PathProblem) as error:
            raise AttemptFault(IssueCode.TASK_INVALID, f"the reference: {error}") from error

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        """Let every validator look, then weigh what they found."""
        pack, scoring = self.pack, self.pack.file.scoring
        answer = context.answer
        if pack.extract is not None and answer is not None:
            answer = await last_group(pack.extract, answer)
        given = {
            "prompt": lambda: self._prompt_text(task),
            "reference": lambda: self._reference_text(task),
        }
        work = Work(task.data, answer, context, judge=lambda: self._judge, given=given)
        found: list[Weighed] = []
        metrics: dict[str, float | bool] = {}
        reasons: dict[str, str] = {}
        more: dict[str, Any] = {}
        for validator, verdict in await self._verdicts(work, task.id):
            found.append(Weighed(verdict.value, validator.weight, validator.is_gate))
            metrics[f"validator.{validator.name}"] = (
                verdict.value if validator.is_scalar else verdict.value >= 1
            )
            if verdict.reason is not None:
                reasons[validator.name] = verdict.reason[:2000]
            if verdict.details is not None:
                more[validator.name] = verdict.details
        score = score_of(found, scoring.strategy)
        metrics["score"] = score
        if scoring.threshold is not None:
            # Weights are decimal fractions: 0.7 + 0.2 + 0.1 must meet a threshold of 1.
            metrics["correct"] = score >= scoring.threshold - 1e-9
        return Evaluation(
            metrics,
            trust=Trust.CONTAINED if self._uses_session else None,
            details={
                **({"reasons": reasons} if reasons else {}),
                **({"validators": more} if more else {}),
            },
        )

    async def _verdicts(self, work: Work, task_id: str) -> list[tuple[Validator, Verdict]]:
        """Let every validator look: programs one after the other, then the judges side by side.

        A judge may look at what a program printed; none looks at what another says. They are asked
        last, so that none is paid where a program could not run.
        """
        validators = self.pack.validators
        found = {
            one.name: await self._verdict(one, work, task_id)
            for one in validators
            if not isinstance(one, ModelJudge)
        }
        if judges := [one for one in validators if isinstance(one, ModelJudge)]:
            said = await together([self._verdict(one, work, task_id) for one in judges])
            found |= {one.name: verdict for one, verdict in zip(judges, said, strict=True)}
        return [(one, found[one.name]) for one in validators]

    async def _verdict(self, validator: Validator, work: Work, task_id: str) -> Verdict:
        if not isinstance(validator, ModelJudge):
            return await validator.verdict(work)
        if not self.asks_judges and validator.text_of(work) is not None:
            return PASSED
        try:
            return await validator.verdict(work)
        except AttemptFault as fault:
            if self.judge_faults is not None:
                self.judge_faults[task_id] = fault.message
            raise

    def _prompt_text(self, task: Task) -> str:
        """Give the prompt, whoever says what in it; it does not depend on the attempt."""
        messages = [(role, _shown(item, task.data)) for role, item in self.pack.messages]
        if len(messages) == 1:
            return messages[0][1]
        return "\n\n".join(f"{role}: {text}" for role, text in messages)

    def _reference_text(self, task: Task) -> str:
        reference = self.reference(task)
        return (reference.answer if reference is not None else None) or ""

    def _folder_digest(self, name: str) -> str:
        if name not in self._folder_digests:
            self._folder_digests[name] = folder_digest(self.pack.root / CASES_FOLDER / name)
        return self._folder_digests[name]


def _json_text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _shown(template: Template, values: Mapping[str, Any]) -> str:
    try:
        return template.render(values)
    except TemplateProblem as error:
        raise AttemptFault(IssueCode.TASK_INVALID, f"the prompt: {error}") from error
