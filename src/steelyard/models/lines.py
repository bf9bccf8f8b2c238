"""What requests to one endpoint share: its connections, its limit, its rates.

Two requests for two models at one address, with one key, meet one endpoint: its 429s are about
both.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from steelyard.models.adaptive import AdaptiveLimit
from steelyard.models.address import Address
from steelyard.models.machine_limits import (
    REQUESTS,
    TOKENS,
    MachineBucket,
    MachineLimit,
    MachineTable,
)
from steelyard.models.rates import REQUEST_BURST_S, TOKEN_BURST_S, Bucket
from steelyard.models.slots import Slots
from steelyard.models.upstream import Upstream


@dataclass(slots=True)
class Line:
    """One endpoint's connections and limits; closed by the last of its users."""

    upstream: Upstream
    slots: Slots
    requests: Bucket | MachineBucket | None
    tokens: Bucket | MachineBucket | None
    users: int = 0

    async def leave(self) -> None:
        """Give up one use; the last closes the connections."""
        self.users -= 1
        if not self.users:
            await self.upstream.close()


@dataclass(slots=True)
class Lines:
    """The lines that are open, by address, headers and limits."""

    machine: MachineTable | None = None
    """Shared with other processes; None: limits are those of this one alone."""
    _open: dict[Hashable, Line] = field(default_factory=dict)

    def join(
        self,
        address: Address,
        headers: tuple[tuple[bytes, bytes], ...],
        *,
        max_connections: int,
        rpm: float | None,
        tpm: float | None,
        now_s: float,
    ) -> Line:
        """Give the line for these settings, a new one where none is in use."""
        key = (address, headers, max_connections, rpm, tpm)
        line = self._open.get(key)
        if line is None or not line.users:
            rates = (address, headers, rpm, tpm)
            line = self._open[key] = Line(
                Upstream(address),
                Slots(self._limit((address, headers), max_connections)),
                self._rate(rates, REQUESTS, _bucket(rpm, REQUEST_BURST_S, now_s)),
                self._rate(rates, TOKENS, _bucket(tpm, TOKEN_BURST_S, now_s)),
            )
        line.users += 1
        return line

    def _limit(self, key: Hashable, maximum: int) -> AdaptiveLimit:
        machine = self.machine
        return (
            AdaptiveLimit(maximum) if machine is None else MachineLimit(maximum, machine.slot(key))
        )

    def _rate(
        self, key: Hashable, part: int, bucket: Bucket | None
    ) -> Bucket | MachineBucket | None:
        machine = self.machine
        if machine is None or bucket is None:
            return bucket
        return MachineBucket(bucket, machine.slot(key), part)


def _bucket(per_minute: float | None, burst_s: float, now_s: float) -> Bucket | None:
    return None if per_minute is None else Bucket(per_minute, burst_s=burst_s, now_s=now_s)
