"""How the tables of ledger.db are made: one step for each version, never changed afterwards.

A new file takes every step from the first on, an old one those it lacks, so that both are the
same. Moments are seconds since 1970, documents JSON, digests SHA-256; no path is absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Step:
    """What brings the tables from one version to the next."""

    summary: str
    statements: tuple[str, ...]


_RUNS: Final = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    goal TEXT NOT NULL,
    digest TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    frozen TEXT NOT NULL,
    policy TEXT NOT NULL,
    policy_revision INTEGER NOT NULL DEFAULT 0,
    epoch_start INTEGER NOT NULL DEFAULT 0,
    decisions INTEGER NOT NULL DEFAULT 0,
    selected TEXT,
    active_host TEXT,
    revision INTEGER NOT NULL DEFAULT 1,
    created_at REAL NOT NULL,
    clock_from REAL,
    detail TEXT NOT NULL
) STRICT
"""
_BUDGET: Final = """
CREATE TABLE budget (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    name TEXT NOT NULL,
    ceiling REAL NOT NULL,
    spent REAL NOT NULL DEFAULT 0 CHECK (spent >= 0),
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID
"""
_SPENT_STAYS: Final = """
CREATE TRIGGER spent_stays BEFORE UPDATE OF spent ON budget WHEN NEW.spent < OLD.spent
BEGIN SELECT RAISE(ABORT, 'what is spent stays spent'); END
"""
_LEASES: Final = """
CREATE TABLE leases (
    run TEXT PRIMARY KEY REFERENCES runs (run) ON DELETE CASCADE,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    expires_at REAL NOT NULL,
    is_released INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID
"""
_TOKENS_GROW: Final = """
CREATE TRIGGER tokens_grow BEFORE UPDATE OF token ON leases WHEN NEW.token < OLD.token
BEGIN SELECT RAISE(ABORT, 'a fencing token never goes back'); END
"""
_CANDIDATES: Final = """
CREATE TABLE candidates (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    candidate TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    parent TEXT REFERENCES candidates (candidate),
    round INTEGER NOT NULL,
    stage TEXT NOT NULL,
    ended_as TEXT,
    reason TEXT,
    hypothesis TEXT NOT NULL,
    author TEXT,
    request TEXT NOT NULL,
    origin TEXT,
    tree_id TEXT,
    manifest TEXT,
    duplicate_of TEXT,
    is_released INTEGER NOT NULL DEFAULT 0,
    invalidated TEXT,
    exhausted TEXT,
    last_decision INTEGER,
    created_at REAL NOT NULL,
    detail TEXT NOT NULL
) STRICT
"""
_TRIALS: Final = """
CREATE TABLE trials (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    trial TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    candidate TEXT NOT NULL REFERENCES candidates (candidate),
    purpose TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    block INTEGER NOT NULL DEFAULT -1,
    try INTEGER NOT NULL,
    seed TEXT NOT NULL,
    outcome TEXT,
    trust TEXT,
    reason TEXT,
    token INTEGER NOT NULL,
    owner TEXT,
    reserved_at REAL NOT NULL,
    launched_at REAL,
    ended_at REAL,
    result TEXT,
    result_at TEXT,
    digest TEXT
) STRICT
"""
_DECISIONS: Final = """
CREATE TABLE decisions (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    candidate TEXT NOT NULL REFERENCES candidates (candidate),
    parent TEXT NOT NULL,
    at REAL NOT NULL,
    document TEXT,
    document_at TEXT,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID
"""
_CHECKS: Final = """
CREATE TABLE checks (
    trial TEXT NOT NULL REFERENCES trials (trial) ON DELETE CASCADE,
    name TEXT NOT NULL,
    place INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    as_expected INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (trial, name)
) STRICT, WITHOUT ROWID
"""
_OPERATIONS: Final = """
CREATE TABLE operations (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    operation_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    digest TEXT NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    document TEXT NOT NULL,
    answer TEXT NOT NULL,
    host_id TEXT,
    is_retryable INTEGER NOT NULL DEFAULT 0,
    sent_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    PRIMARY KEY (run, operation_id)
) STRICT, WITHOUT ROWID
"""
_REVIEWS: Final = """
CREATE TABLE reviews (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    candidate TEXT NOT NULL REFERENCES candidates (candidate),
    digest TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    verdict TEXT NOT NULL,
    at REAL NOT NULL,
    document TEXT,
    document_at TEXT,
    UNIQUE (candidate, digest)
) STRICT
"""
_EVENTS: Final = """
CREATE TABLE events (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID
"""
_INDEXES: Final = (
    "CREATE INDEX candidates_of_run ON candidates (run)",
    "CREATE UNIQUE INDEX one_baseline ON candidates (run) WHERE parent IS NULL",
    "CREATE UNIQUE INDEX one_candidate_an_origin ON candidates (run, origin)"
    " WHERE origin IS NOT NULL",
    "CREATE INDEX trials_of_run ON trials (run)",
    "CREATE INDEX trials_of_candidate ON trials (candidate)",
    # What a repetition gave is decided once, and only one trial at a time may decide it.
    "CREATE UNIQUE INDEX one_completion ON trials (candidate, purpose, repetition, block)"
    " WHERE outcome IN ('completed', 'failed', 'timed_out')",
    "CREATE UNIQUE INDEX one_open_trial ON trials (candidate, purpose, repetition, block)"
    " WHERE outcome IS NULL OR outcome = 'inconclusive'",
)

STEPS: Final = (
    Step(
        "the tables of the first version",
        (
            _RUNS,
            _BUDGET,
            _SPENT_STAYS,
            _LEASES,
            _TOKENS_GROW,
            _CANDIDATES,
            _TRIALS,
            _CHECKS,
            _DECISIONS,
            _OPERATIONS,
            _REVIEWS,
            _EVENTS,
            *_INDEXES,
        ),
    ),
)
"""In order; the version of a file counts those it has taken."""
