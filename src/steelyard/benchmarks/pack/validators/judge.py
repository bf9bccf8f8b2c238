"""The validator that asks a model: `judge`.

Each sample is a conversation of its own, with marks of its own. A reply that is no verdict is
asked for once more; without a majority of verdicts the scorer has failed, and nothing is a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from steelyard.benchmarks.pack.judging.form import Said
from steelyard.benchmarks.pack.judging.prompt import (
    Question,
    Shown,
    asked_again,
    judge_messages,
    shortened,
)
from steelyard.benchmarks.pack.judging.verdict import NotAVerdict, read_verdict
from steelyard.benchmarks.pack.schema_validators.base import OnFile
from steelyard.benchmarks.pack.schema_validators.judging import JudgeValidatorSpec
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import (
    ReadsText,
    Verdict,
    Work,
    collected_text,
    rendered,
)
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.judging.agreement import aggregate, agreement, is_quorate
from steelyard.components.judging.sampling import Draw, together, unguessable
from steelyard.components.model import ModelClient, ModelRequest, ModelResponse
from steelyard.components.values import NO_USAGE, Message, Usage

T = TypeVar("T")

_TRIES: Final = 2
"""Of each sample: a reply that is no verdict is asked for once more."""
_KEPT_CHARS: Final = 3000
"""Of the judge's reasons, in the record: of all samples together."""
_REASON_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of asking once."""

    said: Said | None
    """None where it gave no verdict."""
    faults: tuple[str, ...]
    """What was wrong with its replies."""
    usage: Usage


class ModelJudge(ReadsText):
    """A model grades the text by a rubric, or says whether an assertion about it is true."""

    def __init__(
        self,
        name: str,
        spec: JudgeValidatorSpec,
        stdout_of: str | None,
        rule: Template,
        criteria: Sequence[tuple[str, Template]],
        reference: Template | None,
        draw: Draw,
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._spec, self._form = spec, spec.form
        self._rule, self._criteria, self._reference = rule, criteria, reference
        self._draw = draw
        says_yes_or_no = self._form.is_assertion and spec.rule in ("majority", "all")
        self.is_scalar = spec.threshold is None and not says_yes_or_no

    async def verdict(self, work: Work) -> Verdict:
        """Ask for each sample at the same time, then make one value of them.

        Raises:
            AttemptFault: SCORER_CRASHED, the judge was out of reach or too few of its replies
                were verdicts.
        """
        text = self.text_of(work)
        if text is None:
            return Verdict(0.0, self.absence())
        question = self._question(text, work)
        client = work.judge_client()
        asked = self._spec.samples or work.judge().samples
        samples = await together([self._sample(client, question) for _ in range(asked)])
        return self._settled(samples, client.model_id)

    def _question(self, text: str, work: Work) -> Question:
        show, fields = self._spec.show, work.fields
        given = []
        if "prompt" in show:
            given.append(Shown("task", shortened(work.given["prompt"]())))
        if self._reference is not None:
            given.append(Shown("reference", shortened(rendered(self._reference, fields))))
        elif "reference" in show:
            given.append(Shown("reference", shortened(work.given["reference"]())))
        judged = [Shown(self._name_of_text(), shortened(text))]
        if "answer" in show and self._spec.on != "answer":
            judged.append(Shown("answer", shortened(work.answer or "(no answer)")))
        for path in self._spec.shown_files:
            found = collected_text(work, path)
            judged.append(Shown(path, "(no such file)" if found is None else shortened(found)))
        criteria = [(name, rendered(asks, fields)) for name, asks in self._criteria]
        return Question(self._form, rendered(self._rule, fields), criteria, given, judged)

    def _name_of_text(self) -> str:
        on = self._spec.on
        return on.file if isinstance(on, OnFile) else on

    async def _sample(self, client: ModelClient, question: Question) -> Sample:
        first, code = self._messages(question)
        messages: tuple[Message, ...] = first
        faults: list[str] = []
        usage = NO_USAGE
        for _ in range(_TRIES):
            response = await _asked(client, messages)
            usage += response.usage
            try:
                said = read_verdict(response.text, self._form, code)
            except NotAVerdict as fault:
                faults.append(str(fault))
                messages = (*first, *asked_again(response.text, str(fault)))
            else:
                return Sample(said, tuple(faults), usage)
        return Sample(None, tuple(faults), usage)

    def _messages(self, question: Question) -> tuple[tuple[Message, ...], str]:
        mark, code = self._draw(), self._draw()
        try:
            return judge_messages(question, mark=mark, code=code), code
        except ValueError as error:
            raise AttemptFault(IssueCode.SCORER_CRASHED, f"the judge was not asked: {error}") from (
                error
            )

    def _settled(self, samples: Sequence[Sample], model_id: str) -> Verdict:
        valid = [sample.said for sample in samples if sample.said is not None]
        if not is_quorate(len(valid), len(samples)):
            faults = [sample.faults[-1] for sample in samples if sample.said is None]
            raise AttemptFault(
                IssueCode.SCORER_CRASHED,
                f"{len(valid)} of {len(samples)} replies of the judge {model_id} were verdicts, "
                f"fewer than a majority: {faults[0]}",
            )
        value = aggregate([said.value for said in valid], self._spec.rule)
        share = agreement([said.position for said in valid], self._form.scale.tolerance)
        bar, least = self._spec.bar, self._spec.min_agreement
        # Grades are fractions of a scale: 3 of [1, 4] must meet a threshold of 3.
        final = value if bar is None else float(value >= bar - 1e-9)
        agreed = least is None or share >= least - 1e-9
        details = {
            "model": model_id,
            "value": value,
            "agreement": share,
            **({} if least is None else {"agreed": agreed}),
            "samples": [self._kept(said, len(valid)) for said in valid],
            "invalid": [fault for sample in samples for fault in sample.faults],
            "usage": _total(samples).as_json(),
        }
        return Verdict(final, self._reason(valid, value, share, final, agreed=agreed), details)

    def _kept(self, said: Said, samples: int) -> Mapping[str, Any]:
        most = min(1000, _KEPT_CHARS // samples)
        return {self._form.grade_field: said.grades, "reason": said.reason[:most]}

    def _reason(
        self, valid: Sequence[Said], value: float, share: float, final: float, *, agreed: bool
    ) -> str | None:
        doubt = "" if agreed else f"the judge's samples disagree (agreement {share:.2g}); "
        if final >= 1:
            return doubt.rstrip("; ") or None
        nearest = min(valid, key=lambda said: abs(said.value - value))
        return f"{doubt}judged {value:.3g}: {nearest.reason[:_REASON_CHARS]}"


async def _asked(client: ModelClient, messages: Sequence[Message]) -> ModelResponse:
    """Ask once; whatever fails is the scorer's failure, but for an attempt that has spent all."""
    try:
        return await client.generate(ModelRequest(messages))
    except AttemptFault as fault:
        if fault.code is IssueCode.ATTEMPT_BUDGET:
            # Else an agent that spends all but a cent would never be judged, nor counted.
            words = f"nothing is left for the judge {client.model_id}: {fault.message}"
            raise AttemptFault(fault.code, words) from fault
        raise AttemptFault(
            IssueCode.SCORER_CRASHED,
            f"the judge {client.model_id} could not be asked: {fault.message}",
            request_fault=fault.request_fault,
        ) from fault


def _total(samples: Sequence[Sample]) -> Usage:
    usage = NO_USAGE
    for sample in samples:
        usage += sample.usage
    return usage


def make_judge(making: Making, spec: JudgeValidatorSpec, draw: Draw = unguessable) -> ModelJudge:
    """Make a `judge`."""
    rule = "rubric" if spec.rubric is not None else "assertion"
    criteria = [
        (item.name, making.compiled(item.text, "criteria", number, "text"))
        for number, item in enumerate(spec.criteria or ())
    ]
    return ModelJudge(
        making.name,
        spec,
        making.stdout_of(spec),
        making.compiled(getattr(spec, rule), rule),
        criteria,
        making.maybe(spec.reference, "reference"),
        draw,
    )
