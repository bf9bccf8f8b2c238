"""Who may write to a run: one holder at a time, each with a token higher than the one before.

A holder that stopped answering may wake up; its token is then too low, and every write refuses it.
"""

from __future__ import annotations

from typing import Final

from steelyard.fix.ledger import documents
from steelyard.fix.ledger.database import Database, Reader
from steelyard.fix.ledger.errors import LedgerDamaged, RunBusy
from steelyard.fix.ledger.run_writing import RunWriting, control_writing, run_writing
from steelyard.fix.ledger.values import Lease, LeaseRow
from steelyard.results.lock import OwnerIdentity

LEASE_S: Final = 60.0
"""How long a holder is believed that can neither be asked nor be proved gone."""


def is_gone(owner: OwnerIdentity, here: OwnerIdentity) -> bool:
    """True where a process provably is no more, as seen from `here`.

    The ledger lies on a local disk, so that another boot means that this machine started again.
    Of another namespace nothing can be said.
    """
    if owner.boot_id is None or here.boot_id is None:
        return False
    if owner.boot_id != here.boot_id:
        return True
    return owner.pid_namespace == here.pid_namespace and not owner.may_live()


def acquire(
    database: Database, run: str, holder: OwnerIdentity, at: float, *, lease_s: float = LEASE_S
) -> Lease:
    """Take a run; who holds it already keeps the token.

    Args:
        database: the ledger.
        run: its long id.
        holder: this process.
        at: now.
        lease_s: how long it is ours without `renew`, as seen by those who cannot see us.

    Raises:
        RunBusy: another process that may live has it.
        NoSuchRow: there is no such run.
    """
    with control_writing(database, run, at) as writing:
        held = lease_of(writing.writer, run)
        if held is None:
            return _take(writing, holder, 1, at + lease_s)
        if not held.is_released and held.holder == holder:
            _set_expiry(writing, at + lease_s)
            return Lease(run, held.token, at + lease_s)
        if not held.is_released and at < held.expires_at and not is_gone(held.holder, holder):
            who = f"process {held.holder.pid} on {held.holder.hostname}"
            raise RunBusy(writing.run.short, who, held.expires_at - at)
        return _take(writing, holder, held.token + 1, at + lease_s)


def renew(database: Database, lease: Lease, at: float, *, lease_s: float = LEASE_S) -> Lease:
    """Keep a run for longer.

    Raises:
        Fenced: it is another's by now.
    """
    with run_writing(database, lease, at) as writing:
        _set_expiry(writing, at + lease_s)
    return Lease(lease.run, lease.token, at + lease_s)


def release(database: Database, lease: Lease, at: float) -> None:
    """Give a run back; nothing is done where it is another's by now, or is given back already."""
    with control_writing(database, lease.run, at) as writing:
        held = lease_of(writing.writer, lease.run)
        if held is not None and held.token == lease.token and not held.is_released:
            writing.writer.execute(
                "UPDATE leases SET is_released = 1 WHERE run = ? AND token = ?",
                lease.run,
                lease.token,
            )


def lease_of(reader: Reader, run: str) -> LeaseRow | None:
    """Read who holds a run."""
    row = reader.row("SELECT * FROM leases WHERE run = ?", run)
    if row is None:
        return None
    holder = documents.owner_from(row["holder"])
    if holder is None:
        raise LedgerDamaged("ledger.db: a lease has no holder", remedy="put a backup in its place")
    return LeaseRow(row["token"], holder, row["expires_at"], bool(row["is_released"]))


def _take(writing: RunWriting, holder: OwnerIdentity, token: int, expires_at: float) -> Lease:
    run = writing.run.run
    writing.writer.execute(
        "INSERT INTO leases (run, token, holder, expires_at, is_released) VALUES (?, ?, ?, ?, 0)"
        " ON CONFLICT (run) DO UPDATE SET token = excluded.token, holder = excluded.holder,"
        " expires_at = excluded.expires_at, is_released = 0",
        run,
        token,
        documents.owner_text(holder),
        expires_at,
    )
    return Lease(run, token, expires_at)


def _set_expiry(writing: RunWriting, expires_at: float) -> None:
    writing.writer.execute(
        "UPDATE leases SET expires_at = ? WHERE run = ?", expires_at, writing.run.run
    )
