"""Say what planning finds wrong together with what the settings alone showed.

Without this a person would mend the settings first and be told the rest afterwards.
"""

from __future__ import annotations

from steelyard.components.clock import SystemClock
from steelyard.config.errors import Problem, SteelyardError
from steelyard.config.redaction import Redactor
from steelyard.config.resolve import InvalidSettings, Resolution
from steelyard.config.validation import in_order
from steelyard.engine.plan import plan_requests


def with_plan_problems(error: InvalidSettings) -> InvalidSettings:
    """Add what planning finds in the settings that are left without their faults.

    What follows from a fault that is said already is left out. Blocking; touches nothing but the
    files that packs consist of.
    """
    if error.healed is None:
        return error
    said = {(problem.where.file, problem.where.field) for problem in error.problems}
    found = [
        problem
        for problem in _found(error.healed)
        if (problem.where.file, problem.where.field) not in said
    ]
    return InvalidSettings.healable(in_order([*error.problems, *found]), None)


def _found(healed: Resolution) -> list[Problem]:
    secret_env = healed.orchestration.runtime.secret_env
    try:
        found = plan_requests(healed, clock=SystemClock()).problems
    except SteelyardError:
        # The machine failed: what the settings showed is to be said all the same.
        return []
    text = Redactor(healed.secrets, secret_env=secret_env).text
    return [Problem(text(p.message), p.where, text(p.remedy) if p.remedy else None) for p in found]
