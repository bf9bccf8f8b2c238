"""In which order trials run where candidates and baseline are interleaved. Pure.

What changes with time (a warming machine, a busy neighbour) then falls on all of them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.fix.verify.chance import shuffled


@dataclass(frozen=True, slots=True)
class Block:
    """One repetition of everybody, in the order to be run."""

    index: int
    repetition: int
    seed: int
    order: tuple[str, ...]


def interleaved(
    participants: Sequence[str], seeds: Sequence[int], *, seed: int, run: str, first: int = 0
) -> tuple[Block, ...]:
    """Give a block for each seed: baseline and candidates once each, in an order of its own.

    Args:
        participants: the baseline and the candidates.
        seeds: one a repetition.
        seed: the run's, where chance comes from.
        run: the run's long id.
        first: the number of the first block; blocks of a run are counted through.
    """
    return tuple(
        Block(
            first + repetition,
            repetition,
            trial_seed,
            shuffled(participants, seed=seed, run=run, decision=first + repetition, label="block"),
        )
        for repetition, trial_seed in enumerate(seeds)
    )
