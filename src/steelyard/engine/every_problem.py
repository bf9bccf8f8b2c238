"""Say what planning finds wrong together with what the settings alone showed.

Without this a person would mend the settings first and be told the rest afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

from steelyard.components.clock import SystemClock
from steelyard.config.errors import Problem, SteelyardError
from steelyard.config.redaction import Redactor
from steelyard.config.resolve import InvalidSettings, Resolution
from steelyard.config.validation import in_order
from steelyard.engine.plan import plan_requests
from steelyard.engine.services import Maker


def with_plan_problems(
    error: InvalidSettings, make_maker: Callable[[Resolution], Maker] | None = None
) -> InvalidSettings:
    """Add what planning finds in the settings that are left without their faults.

    What follows from a fault that is said already is left out. Blocking; touches nothing but the
    files that packs consist of.

    Args:
        error: what the settings showed.
        make_maker: gives what makes the components; by default one that knows ids alone.
    """
    if error.healed is None:
        return error
    said = {(problem.where.file, problem.where.field) for problem in error.problems}
    found = [
        problem
        for problem in _found(error.healed, make_maker)
        if (problem.where.file, problem.where.field) not in said
    ]
    return InvalidSettings.healable(in_order([*error.problems, *found]), None)


def _found(healed: Resolution, make_maker: Callable[[Resolution], Maker] | None) -> list[Problem]:
    secret_env = healed.orchestration.runtime.secret_env
    try:
        maker = None if make_maker is None else make_maker(healed)
        found = plan_requests(healed, clock=SystemClock(), maker=maker).problems
    except SteelyardError:
        # The machine failed: what the settings showed is to be said all the same.
        return []
    text = Redactor(healed.secrets, secret_env=secret_env).text
    return [Problem(text(p.message), p.where, text(p.remedy) if p.remedy else None) for p in found]
