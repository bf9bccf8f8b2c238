"""Errors that leave a call say no secret, nor do the errors that they came of.

On the command line what is printed passes one boundary; here the caller prints a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from steelyard.config.errors import SteelyardError


@contextmanager
def hiding(redact: Callable[[str], str]) -> Iterator[None]:
    """Redact the errors for people that leave the block."""
    try:
        yield
    except SteelyardError as error:
        hide(error, redact)
        raise


def hide(error: SteelyardError, redact: Callable[[str], str]) -> None:
    """Redact an error's problems; what it came of is dropped where it says a secret."""
    error.problems = tuple(
        replace(
            problem,
            message=redact(problem.message),
            remedy=None if problem.remedy is None else redact(problem.remedy),
        )
        for problem in error.problems
    )
    error.args = tuple(redact(each) if isinstance(each, str) else each for each in error.args)
    if any(redact(str(each)) != str(each) for each in _origins(error)):
        error.__cause__ = error.__context__ = None


def _origins(error: BaseException) -> Iterator[BaseException]:
    """Iterate over the errors that a traceback would show above one."""
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [found.__cause__, found.__context__]
