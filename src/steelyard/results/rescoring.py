"""What a present request can do with an agent's saved work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Rescoring:
    """What a present request can do with an agent's saved work."""

    answer_suffices: bool = False
    """Scoring needs the agent's answer and nothing else: a record holds all that it takes."""
    from_checkpoint: bool = True
    """False in evaluation mode `reuse`, where scoring needs an environment that is gone."""
    resumes: bool = True
    """False where an attempt whose scoring is pending or failed is to run whole again."""
    scores_timed_out: bool = False
    """True where what an agent had done when its time ran out is scored."""
    is_thorough: bool = True
    """Whether what lies beside a checkpoint is read and compared, or only looked for."""


class TakenToScore(Protocol):
    """A `Rescoring`, or what finds it out when it is asked."""

    @property
    def answer_suffices(self) -> bool:
        """See `Rescoring`."""
        ...

    @property
    def from_checkpoint(self) -> bool:
        """See `Rescoring`."""
        ...

    @property
    def resumes(self) -> bool:
        """See `Rescoring`."""
        ...

    @property
    def scores_timed_out(self) -> bool:
        """See `Rescoring`."""
        ...

    @property
    def is_thorough(self) -> bool:
        """See `Rescoring`."""
        ...


NO_RESCORING: Final = Rescoring(from_checkpoint=False)
