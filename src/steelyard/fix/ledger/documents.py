"""JSON within rows: bounded, in the order it was made; what is larger is kept as evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import orjson

from steelyard.fix.evidence import Evidence
from steelyard.fix.ledger.errors import LedgerDamaged, TooLarge
from steelyard.results.identity import canonical_json
from steelyard.results.lock import OwnerIdentity

MAX_TEXT_BYTES: Final = 16 * 1024
"""Of what people write: goals, hypotheses, reasons."""
MAX_DOCUMENT_BYTES: Final = 64 * 1024
"""Of a control and its answer."""
MAX_DETAIL_BYTES: Final = 2 * 1024
"""Of small facts beside a row or an event."""
MAX_INLINE_BYTES: Final = 3 * 1024
"""Of what may lie in a row; more of it goes to evidence."""


def text(value: str, what: str, most_bytes: int = MAX_TEXT_BYTES) -> str:
    """Give a text back that is small enough.

    Raises:
        TooLarge: it is not.
    """
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > most_bytes:
        raise TooLarge(what, size, most_bytes)
    return value.encode("utf-8", "replace").decode()


def written(value: Mapping[str, Any], what: str, most_bytes: int = MAX_DETAIL_BYTES) -> str:
    """Write a document for a row.

    Raises:
        TooLarge: it is too large.
    """
    found = orjson.dumps(value)
    if len(found) > most_bytes:
        raise TooLarge(what, len(found), most_bytes)
    return found.decode()


def kept(value: Mapping[str, Any], evidence: Evidence) -> tuple[str | None, str | None]:
    """Write a document of any size: (in the row, digest of the evidence), one of them None."""
    found = orjson.dumps(value)
    if len(found) <= MAX_INLINE_BYTES:
        return found.decode(), None
    return None, evidence.put(found)


def read_back(inline: str | None, digest: str | None, evidence: Evidence) -> dict[str, Any]:
    """Read a document that `kept` wrote.

    Raises:
        EvidenceDamaged: it is evidence, and not there.
        LedgerDamaged: the row holds no document.
    """
    return read(inline if digest is None else evidence.get(digest))


def read(value: str | bytes | None) -> dict[str, Any]:
    """Read a document of a row.

    Raises:
        LedgerDamaged: it is none.
    """
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError as error:
        found = error
    if not isinstance(found, dict):
        raise LedgerDamaged(
            "ledger.db: a row holds no document", remedy="put a backup of ledger.db in its place"
        )
    return found


def digest_of(value: Any) -> str:
    """Give the SHA-256 of data, however it is ordered."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def owner_text(owner: OwnerIdentity) -> str:
    """Write who a process is."""
    return orjson.dumps(asdict(owner)).decode()


def owner_from(value: str | None) -> OwnerIdentity | None:
    """Read who a process is; None where nobody is named."""
    return None if value is None else OwnerIdentity(**read(value))
