"""What went wrong in an execution, as the log says it."""

from __future__ import annotations

import logging

from steelyard.components.issues import Severity
from steelyard.results.records import AttemptRecord

log = logging.getLogger(__name__)


def log_issues(record: AttemptRecord, then: str = "") -> None:
    """Say what went wrong in an attempt's last execution, and what follows.

    `cause` is the same for all it met, so that a terminal can say each once.
    """
    for issue in record.last_issues:
        level = logging.WARNING if issue.severity is Severity.FATAL else logging.INFO
        log.log(
            level,
            "%s attempt %d, %s: %s %s: %s%s",
            record.task_id,
            record.attempt,
            issue.phase,
            issue.severity,
            issue.code,
            issue.message,
            then,
            extra={"cause": issue.message},
        )
