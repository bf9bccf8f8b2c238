"""The SDK's own faults; what is wrong with settings is `BadInput`, as on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.config.errors import BadInput, SteelyardError

if TYPE_CHECKING:
    from steelyard.sdk.results import LaunchResult, RunResult


class NotCompleted(SteelyardError):
    """A run that was asked to be whole is not; `result` holds what there is."""

    def __init__(self, message: str, result: RunResult | LaunchResult) -> None:
        self.result = result
        super().__init__(message, remedy="call again with reuse=True to go on where it stopped")


class PackageMissing(SteelyardError, ImportError):
    """A package that one method needs, and that Steelyard itself does not, is not installed."""

    def __init__(self, package: str, method: str) -> None:
        super().__init__(
            f"{method}() needs {package}, which is not installed",
            remedy=f"python -m pip install {package}",
        )


class UnusableArgument(BadInput):
    """An argument of a call, or an object handed over as a component, that cannot be used."""
