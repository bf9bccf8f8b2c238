"""The options of the SDK's calls, as a table: each names the setting it stands for.

A call's options are its topmost layer, as options are on the command line: the same settings, the
same checks, the same order of layers.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar

from steelyard.config.errors import Problem, Where
from steelyard.config.layers import COMMAND_LINE, Override
from steelyard.config.source import FieldPath
from steelyard.sdk.builders import EnvironmentLike, Settings
from steelyard.sdk.events import Event
from steelyard.sdk.faults import UnusableArgument

PathLike: TypeAlias = str | os.PathLike[str]
EventHandler: TypeAlias = Callable[[Event], Awaitable[None] | None]
Call = TypeVar("Call", bound=Callable[..., Any])


class Controls(TypedDict, total=False):
    """Settings that every call takes; None is as if it were left out."""

    task_concurrency: int | None
    """Attempts at once over all requests (32)."""
    timeout_seconds: float | None
    """Wall clock of the whole; 0 for none."""
    budget_usd: float | None
    budget_tokens: int | None
    limit: int | None
    """Only the first so many tasks of each request."""
    sample_ids: Sequence[str] | None
    exclude_ids: Sequence[str] | None
    results_dir: PathLike | None
    data_dir: PathLike | None
    run_name: str | None
    """A folder that groups runs."""
    run_id: str | None
    reuse: bool | None
    """Take finished work from the latest compatible run."""
    checkpoint_resume: bool | None
    """False: the agent runs again where only scoring is pending."""
    settings: Settings | None
    """Any other setting, in the form of a configuration file; lies over all files, and below the
    options beside it."""
    config: PathLike | Sequence[PathLike] | None
    """Configuration files, lowest first."""
    use_config_files: bool
    """Whether the user's file and the project's `steelyard.yaml` take part (True)."""


class OneRequest(TypedDict, total=False):
    """Settings of the one request of `run`."""

    environment: EnvironmentLike | None
    """None: `auto`."""
    k: int | None
    """Attempts of each task (1)."""
    strategy: Literal["avg", "pass"] | None
    """How attempts become one figure (avg)."""
    early_stop: bool | None
    reuse_run_id: str | None
    """Reuse this run."""


class Following(TypedDict, total=False):
    """How a launch is followed."""

    progress: Literal["auto", "plain", "none"] | None
    """What is written to standard error while it runs; None for nothing."""
    on_event: EventHandler | None
    """Is called with each event, in order, on the launch's event loop; may be `async`."""
    on_event_error: Literal["log", "raise"]
    """What an exception of the handler does: nothing but a line in the log, or stop the launch in
    order and come out of the call (log)."""


class LaunchOptions(Controls, Following, total=False):
    """What `launch` takes."""


class RunOptions(OneRequest, Controls, Following, total=False):
    """What `run` takes."""


SETTINGS: Final[Mapping[str, FieldPath]] = MappingProxyType(
    {
        "task_concurrency": ("execution", "task_concurrency"),
        "timeout_seconds": ("runtime", "timeout_seconds"),
        "budget_usd": ("budget", "usd"),
        "budget_tokens": ("budget", "tokens"),
        "limit": ("execution", "limit"),
        "sample_ids": ("execution", "sample_ids"),
        "exclude_ids": ("execution", "exclude_ids"),
        "results_dir": ("runtime", "results_dir"),
        "data_dir": ("runtime", "data_dir"),
        "run_name": ("output", "run_name"),
        "run_id": ("output", "run_id"),
        "reuse": ("runtime", "reuse"),
        "checkpoint_resume": ("runtime", "checkpoint_resume"),
        "k": ("execution", "attempts", "k"),
        "strategy": ("execution", "attempts", "strategy"),
        "early_stop": ("execution", "attempts", "early_stop"),
        "reuse_run_id": ("runtime", "reuse_run_id"),
    }
)
"""Which setting an option sets, as a path in a configuration file."""

_CHOICES: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "progress": (None, "auto", "plain", "none"),
        "on_event_error": ("log", "raise"),
        "use_config_files": (True, False),
    }
)


def overrides_of(options: Mapping[str, Any]) -> list[Override]:
    """Make the topmost layer of a call's options, `settings` below the others.

    Raises:
        BadInput: one of them is no plain data.
    """
    from steelyard.config.data_source import read_data

    given = options.get("settings")
    if given is not None and not isinstance(given, Mapping):
        raise UnusableArgument(
            f"expected a mapping, found a value of type {type(given).__name__}",
            where=Where(field="settings"),
            remedy="write it as in a configuration file: settings={'execution': {…}}",
        )
    sections = read_data(given or {}, layer=COMMAND_LINE, prefix=("settings",)).value
    overrides = [Override((name,), None, "settings", node=node) for name, node in sections.items()]
    for name, path in SETTINGS.items():
        if options.get(name) is not None:
            node = read_data(options[name], layer=COMMAND_LINE, prefix=(name,))
            overrides.append(Override(path, None, name, node=node))
    return overrides


def check_options(call: str, form: type[Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a call does not have, and choices that there are not.

    Raises:
        TypeError: there is no such option.
        BadInput: the option has another set of values.
    """
    known = form.__annotations__
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *SETTINGS], n=1)
            hint = f"; did you mean {near[0]}?" if near and near[0] in known else ""
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{hint}")
    problems = [
        Problem(
            f"{options[name]!r} is none of its values" if isinstance(options[name], str)
            else f"found a value of type {type(options[name]).__name__}",
            Where(field=name),
            f"one of: {', '.join(map(repr, choices))}",
        )
        for name, choices in _CHOICES.items()
        if name in options and options[name] not in choices
    ]  # fmt: skip
    handler = options.get("on_event")
    if handler is not None and not callable(handler):
        problems.append(
            Problem(
                f"found a value of type {type(handler).__name__}",
                Where(field="on_event"),
                "give a function that takes an event",
            )
        )
    if problems:
        raise UnusableArgument.of(problems)


def takes(form: type[Any]) -> Callable[[Call], Call]:
    """Write the options out in a function's signature, for `help()` and for notebooks."""

    def written_out(call: Call) -> Call:
        signature = inspect.signature(call)
        own = [
            each
            for each in signature.parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=DEFAULTS.get(name),
                # As it is written: resolved it would be unreadable.
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in form.__annotations__.items()
        ]
        call.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return call

    return written_out


DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
    {"use_config_files": True, "on_event_error": "log"}
)
"""Of the options that are not None where they are left out."""
