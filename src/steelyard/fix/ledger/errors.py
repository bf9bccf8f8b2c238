"""What the ledger refuses, and what may be wrong with it: a class for each kind.

LedgerFault           the file cannot be used, or the disk failed (exit status 1)
LedgerRefused         what was asked does not fit what is recorded; nothing was changed
"""

from __future__ import annotations

from steelyard.config.errors import BadInput, Fault


class LedgerFault(Fault):
    """The ledger cannot be read or written."""


class LedgerDamaged(LedgerFault):
    """What the file holds is not what was written."""


class LedgerNewer(LedgerFault):
    """The file was written by a newer version."""


class LedgerMisplaced(LedgerFault):
    """The file lies where it cannot be kept safely, or is not ours."""


class LedgerBusy(LedgerFault):
    """Another process kept the file locked for longer than we wait."""


class LedgerFull(LedgerFault):
    """The disk took no more; what was recorded before is kept."""


class LedgerRefused(BadInput):
    """What was asked does not fit what is recorded."""


class NoSuchRow(LedgerRefused):
    """Nothing is recorded under this id."""

    def __init__(self, word: str, name: str) -> None:
        super().__init__(
            f"the ledger has no {word} {name!r}",
            remedy="`fix list` and `status` show what there is",
        )


class TooLarge(LedgerRefused):
    """A text is too large for a row."""

    def __init__(self, what: str, size_bytes: int, most_bytes: int) -> None:
        super().__init__(
            f"{what} has {size_bytes} bytes, a row takes {most_bytes}",
            remedy="shorten it, or keep it as evidence and name its digest",
        )


class Fenced(LedgerRefused):
    """Another process has taken the run over: this one may not write to it any more."""

    def __init__(self, run: str, token: int, current: int | None) -> None:
        now = "nobody holds it" if current is None else f"it is at {current}"
        super().__init__(
            f"the run {run} is not held under token {token} any more: {now}",
            remedy="leave it to its new owner, or run the command again to take it over",
        )


class RunBusy(LedgerRefused):
    """Another process that may live is at work on the run."""

    def __init__(self, run: str, holder: str, left_s: float) -> None:
        super().__init__(
            f"{holder} is at work on the run {run}",
            remedy=f"wait for it, or `fix stop` the run; free in {left_s:.0f} s at the latest",
        )


class RevisionConflict(LedgerRefused):
    """The run changed since it was looked at."""

    def __init__(self, run: str, expected: int, current: int) -> None:
        super().__init__(
            f"the run {run} is at revision {current}, not {expected}: it changed meanwhile",
            remedy="look at `status`, then ask again",
        )
        self.current = current


class OperationIdReused(LedgerRefused):
    """An operation id came again with other contents."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(
            f"the operation id {operation_id} was used with other contents",
            remedy="send the very same file, or use a new id for a new request",
        )


class BudgetExhausted(LedgerRefused):
    """A limit is used up."""

    def __init__(self, limit: str, spent: float, ceiling: float) -> None:
        super().__init__(
            f"{limit} is used up: {spent:g} of {ceiling:g}",
            remedy="`fix run RUN --continue --limits-file FILE` extends it; what is spent stays so",
        )
        self.limit = limit


class NotNow(LedgerRefused):
    """The row is not at a stage where this can be done."""


class Unresolved(LedgerRefused):
    """A trial of the same repetition is open, and nobody knows yet how it ended."""

    def __init__(self, short: str) -> None:
        super().__init__(
            f"{short} of the same repetition is not resolved",
            remedy=f"`fix run` resolves what it can; `fix resolve {short} --lost` what no rule can",
        )


class MayNotRepeat(LedgerRefused):
    """The repetition has been tried as often as it may be."""


class OtherContent(LedgerRefused):
    """The same thing was recorded before, and said something else."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is recorded with other contents",
            remedy="what is recorded stands; look at it with `fix show`",
        )
