"""The schema of the validator that asks a model: `judge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveFloat, model_validator

from steelyard.benchmarks.pack.judging.form import Form, Levels, Numbers, Scale, TrueOrFalse
from steelyard.benchmarks.pack.judging.settings import Samples
from steelyard.benchmarks.pack.schema_validators.base import (
    OnFile,
    Scalar,
    Strict,
    Text,
    TextValidatorSpec,
    ValidatorName,
)
from steelyard.components.judging.agreement import Rule

Share = Annotated[float, Field(ge=0, le=1)]
LevelName = Annotated[str, Field(min_length=1, max_length=40)]
Range = Annotated[list[int], Field(min_length=2, max_length=2)]
NamedLevels = Annotated[dict[LevelName, Share], Field(min_length=2, max_length=20)]
Shows = Literal["prompt", "reference", "answer"] | OnFile

DEFAULT_RANGE = (1, 5)


class CriterionSpec(Strict):
    """One thing that a rubric grades by itself."""

    name: ValidatorName
    text: Text
    """What it asks; a template."""
    weight: PositiveFloat = 1.0


class JudgeValidatorSpec(TextValidatorSpec):
    """A model grades the text by a rubric, or says whether an assertion about it is true."""

    waits_for_others: ClassVar[bool] = True

    type: Literal["judge"]
    rubric: Text | None = None
    """What to grade by; a template."""
    assertion: Text | None = None
    """A statement about the work that is true or false; a template."""
    scale: Range | NamedLevels | None = None
    """`[1, 5]` (the default of a rubric): whole numbers; or names with what each counts, 0 to 1."""
    criteria: Annotated[list[CriterionSpec], Field(min_length=1, max_length=20)] | None = None
    """Graded one by one on the scale; the value is their mean by weight."""
    reference: Scalar | None = None
    """A known good answer that the judge is shown; a template."""
    show: list[Shows] = Field(default=["prompt"])
    """What else the judge sees: the prompt, the pack's reference, the answer, collected files."""
    samples: Samples | None = None
    """How often the judge is asked; the pack's `judge.samples` by default."""
    aggregate: Rule | None = None
    """`majority` by default for an assertion, `median` for a rubric."""
    threshold: float | LevelName | None = None
    """From here on the value is 1, below it 0; a grade of the scale, or a share of samples."""
    min_agreement: Share | None = None
    """Below this share the samples count as in disagreement, which is recorded."""

    @model_validator(mode="after")
    def _is_one_question(self) -> JudgeValidatorSpec:
        if (self.rubric is None) == (self.assertion is None):
            raise ValueError("give one of rubric and assertion")
        if self.assertion is not None and (self.scale is not None or self.criteria is not None):
            raise ValueError("an assertion is true or false: scale and criteria are of a rubric")
        if isinstance(self.scale, list) and not 0 < self.scale[1] - self.scale[0] <= 100:
            raise ValueError("a scale runs from a lower to a higher number, at most 100 steps")
        if isinstance(self.scale, dict) and len(set(self.scale.values())) < 2:
            raise ValueError("the levels of a scale all count the same")
        names = [criterion.name for criterion in self.criteria or ()]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have one name")
        if self.threshold is not None:
            self.graded_on.bar(self.threshold)
        return self

    @property
    def graded_on(self) -> Scale:
        """The scale of one grade."""
        if self.assertion is not None:
            return TrueOrFalse()
        if isinstance(self.scale, dict):
            return Levels(self.scale)
        low, high = self.scale or DEFAULT_RANGE
        return Numbers(low, high)

    @property
    def form(self) -> Form:
        """What one verdict must hold."""
        return Form(self.graded_on, {item.name: item.weight for item in self.criteria or ()})

    @property
    def rule(self) -> Rule:
        """How samples become one value."""
        return self.aggregate or ("majority" if self.assertion is not None else "median")

    @property
    def bar(self) -> float | None:
        """The threshold as a value from 0 to 1."""
        return None if self.threshold is None else self.graded_on.bar(self.threshold)

    @property
    def shown_files(self) -> Sequence[str]:
        """The collected files that the judge sees beside the text."""
        return [item.file for item in self.show if isinstance(item, OnFile)]

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the file that is judged and the files that are shown."""
        shown = (
            (item.file, ("show", number, "file"))
            for number, item in enumerate(self.show)
            if isinstance(item, OnFile)
        )
        return (*super().collected(), *shown)
