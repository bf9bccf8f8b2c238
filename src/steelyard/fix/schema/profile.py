"""An execution profile: where trials run, with what, and how much work they may be.

Kept in the user's configuration only; values of variables are never in it, only their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from steelyard.config.errors import BadInput
from steelyard.config.schema.request import Strict
from steelyard.config.source import FieldPath, Node
from steelyard.fix.schema.reading import Breach, checked_document, conditions, read_document
from steelyard.fix.schema.search import Search, search_breaches
from steelyard.fix.schema.spec import Repetitions
from steelyard.fix.schema.words import Argv, Count, Seconds, TargetVariable, VariableName, Words

RunnerKind = Literal["local", "ssh", "e2b"]
FIELDS_OF_KIND: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = MappingProxyType(
    {
        "local": (frozenset(), frozenset()),
        "ssh": (frozenset({"host", "remote_root"}), frozenset({"python"})),
        "e2b": (frozenset({"template"}), frozenset({"api_key_env", "sandbox_timeout_seconds"})),
    }
)
"""By kind: the fields it needs, those it may have besides."""
SHARES_ITS_MACHINE: Final = frozenset({"local", "ssh"})
"""Kinds whose concurrent trials share one machine unless the user says otherwise."""
DEFAULT_KEY_VARIABLE: Final = "E2B_API_KEY"
PROFILE_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class Runner(Strict):
    """Where trials run. Candidates are always written here."""

    model_config = ConfigDict(
        json_schema_extra=conditions("kind", FIELDS_OF_KIND, frozenset({"independent_capacity"}))
    )
    kind: RunnerKind
    """`local`: this host; `ssh`: another one; `e2b`: a sandbox of that service."""
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@:-]*$")] | None = None
    """ssh: the destination, as `ssh` takes it."""
    remote_root: Annotated[str, Field(pattern=r"^/[^\x00]*$")] | None = None
    """ssh: an absolute folder there."""
    python: Words | None = None
    """ssh: the interpreter there."""
    template: Words | None = None
    """e2b: an existing template."""
    api_key_env: VariableName | None = None
    """e2b: the variable that holds the key, E2B_API_KEY by default; never the key."""
    sandbox_timeout_seconds: Seconds | None = None
    """e2b: how long a sandbox may live."""
    independent_capacity: bool | None = None
    """True only where trials at once do not share what they measure."""


class Limits(Strict):
    """How much work a run may be. Counts never go down."""

    max_candidates: Count
    """Candidates after the baseline."""
    max_trials: Count
    """Trials: the baseline's, cancelled ones and replacements too."""
    max_elapsed_seconds: Seconds
    """Wall clock, paused while the run is stopped or waits for a review."""
    parallel_candidates: Count
    """Candidates at work at once."""
    parallel_trials: Count
    """Trials at once."""
    trial_timeout_seconds: Seconds
    """Of one trial."""
    stagnation_rounds: Count = 3
    """Completed rounds without a new nondominated vector of metrics that stop the loop."""


class LimitsExtension(Strict):
    """What `--limits-file` and the `continue` control may change of a run's limits."""

    max_candidates: Count | None = None
    """Candidates after the baseline."""
    max_trials: Count | None = None
    """Trials: the baseline's, cancelled ones and replacements too."""
    max_elapsed_seconds: Seconds | None = None
    """Wall clock, paused while the run is stopped or waits for a review."""
    parallel_candidates: Count | None = None
    """Candidates at work at once."""
    parallel_trials: Count | None = None
    """Trials at once."""
    trial_timeout_seconds: Seconds | None = None
    """Of one trial."""
    stagnation_rounds: Count | None = None
    """Completed rounds without a new nondominated vector of metrics that stop the loop."""

    def over(self, limits: Limits) -> Limits:
        """Give the limits with what is written here in their place."""
        return limits.model_copy(update=self.model_dump(exclude_none=True))


class Scans(Strict):
    """Bounds of experiment scans; a profile without them has none."""

    max_scans: Count
    """Scans of one run, failed ones too."""
    max_input_bytes: Annotated[int, Field(ge=1024, le=1048576)]
    """What one scan may read."""
    scan_timeout_seconds: Seconds
    """From its preparation to its answer."""


class TrialResources(Strict):
    """What one trial may use, where the runner has means to hold it."""

    memory_mb: Annotated[int, Field(ge=16, le=16 * 1024 * 1024)] = 4096
    """Of all its processes together where the system can, else of each."""
    processes: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    """Processes and threads at once."""
    disk_mb: Annotated[int, Field(ge=1, le=16 * 1024 * 1024)] = 4096
    """What it may write."""
    output_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = 64 * 1024
    """The end of each stream that is kept."""


class Profile(Strict):
    """Where and how trials run; a run keeps the one it was started with."""

    runner: Runner
    """Where trials run."""
    env: dict[TargetVariable, VariableName] = Field(default_factory=dict)
    """A trial's variable: the host's variable whose value it gets. Names only."""
    setup: list[Argv] = Field(default_factory=list)
    """Commands that prepare a trial's tree, in order; no shell."""
    limits: Limits
    """How much work a run may be; every one is written out, none is assumed."""
    search: Search = Search.model_construct()
    """How parents are chosen."""
    scans: Scans | None = None
    """Bounds of experiment scans; none: no scans."""
    repetitions: Repetitions | None = None
    """In place of 3 where the spec says nothing."""
    independent_capacity: bool | None = None
    """As in `runner`."""
    isolation: Literal["standard", "strict"] = "standard"
    """`strict`: no network, system folders only."""
    resources: TrialResources = TrialResources.model_construct()
    """What one trial may use."""
    setup_cache: bool = False
    """Keep what set-up steps made, by digest; for steps that do not depend on the candidate."""
    trial_retries: Annotated[int, Field(ge=0, le=100)] = 1
    """How often a trial that ended `error` or `lost` is repeated, within max_trials."""

    @property
    def has_independent_capacity(self) -> bool:
        """True where the user asserts that trials at once do not disturb each other."""
        return bool(self.runner.independent_capacity or self.independent_capacity)


def profile_breaches(profile: Profile) -> list[Breach]:
    """Give everything that a profile breaks over several of its fields."""
    return [
        *_runner(profile.runner),
        *_capacity(profile),
        *_timeouts(profile),
        *_variables(profile),
        *search_breaches(profile.search, ("search",)),
    ]


def limits_breaches(limits: Limits, profile: Profile, at: FieldPath = ("limits",)) -> list[Breach]:
    """Give what limits break against the profile's runner; asked again when they are extended."""
    kind = profile.runner.kind
    if (
        limits.parallel_trials > 1
        and kind in SHARES_ITS_MACHINE
        and not profile.has_independent_capacity
    ):
        return [
            Breach(
                (*at, "parallel_trials"),
                f"{limits.parallel_trials} trials at once on one machine ({kind}) disturb "
                "each other's measurements",
                "write 1, or `independent_capacity: true` in the runner where they really do not",
            )
        ]
    return []


def _runner(runner: Runner) -> Iterator[Breach]:
    needed, allowed = FIELDS_OF_KIND[runner.kind]
    given = {name for name in Runner.model_fields if getattr(runner, name) is not None}
    for name in sorted(needed - given):
        yield Breach(("runner",), f"the runner {runner.kind} needs {name}", f"add {name}")
    for name in sorted(given - needed - allowed - {"kind", "independent_capacity"}):
        takes = ", ".join(sorted(needed | allowed)) or "kind and independent_capacity only"
        yield Breach(
            ("runner", name),
            f"{name} is nothing to the runner {runner.kind}",
            f"take it out; {runner.kind} takes: {takes}",
        )


def _capacity(profile: Profile) -> Iterator[Breach]:
    both = (profile.runner.independent_capacity, profile.independent_capacity)
    if None not in both and both[0] != both[1]:
        yield Breach(
            ("independent_capacity",),
            "independent_capacity is true in one place and false in the other",
            "write it in runner alone",
        )
    yield from limits_breaches(profile.limits, profile)


def _timeouts(profile: Profile) -> Iterator[Breach]:
    lives_s = profile.runner.sandbox_timeout_seconds
    if lives_s is not None and lives_s <= profile.limits.trial_timeout_seconds:
        yield Breach(
            ("runner", "sandbox_timeout_seconds"),
            f"a sandbox of {lives_s:g} s ends before a trial of "
            f"{profile.limits.trial_timeout_seconds:g} s",
            "give it more than trial_timeout_seconds, with time to collect the result",
        )


def _variables(profile: Profile) -> Iterator[Breach]:
    if profile.runner.kind != "e2b":
        return
    key = profile.runner.api_key_env or DEFAULT_KEY_VARIABLE
    for target, source in profile.env.items():
        if key in (target, source):
            yield Breach(
                ("env", target),
                f"{key} is the runner's own key; no trial may have it",
                "take it out of env",
            )


def read_profile(path: Path, *, shown: str | None = None) -> tuple[Profile, Node]:
    """Read a profile, JSON or YAML by its suffix, and the document it was read from.

    Raises:
        BadInput: everything that is wrong with it, at once, with places.
    """
    root = read_document(path, layer="fix profile", shown=shown)
    return checked_profile(root), root


def checked_profile(root: Node) -> Profile:
    """Hold a document against the profile's schema and rules.

    Raises:
        InvalidFixFile: everything that is wrong with it, at once, with places.
    """
    return checked_document(root, Profile, profile_breaches, called="the profile")


def read_limits(path: Path, *, shown: str | None = None) -> LimitsExtension:
    """Read the file of `--limits-file`.

    Raises:
        BadInput: everything that is wrong with it, at once, with places.
    """
    root = read_document(path, layer="limits", shown=shown)
    return checked_document(root, LimitsExtension, extension_breaches, called="the limits")


def extension_breaches(extension: LimitsExtension) -> list[Breach]:
    """Give what an extension breaks by itself: it must say something."""
    if extension.model_dump(exclude_none=True):
        return []
    fields = ", ".join(LimitsExtension.model_fields)
    return [Breach((), "no limit is named", f"name what is to change: {fields}")]


class InvalidProfileName(BadInput):
    """A profile's name that is none."""


def check_profile_name(name: str) -> str:
    """Give the name back.

    Raises:
        InvalidProfileName: it is not lowercase letters, digits, `_`, `-`, from a letter on, ≤ 64.
    """
    if PROFILE_NAME.fullmatch(name) is None:
        raise InvalidProfileName(
            f"{name!r} is no name of a profile",
            remedy="use lowercase letters, digits, `_` and `-`, starting with a letter, at most 64",
        )
    return name


def profile_document(profile: Profile) -> dict[str, Any]:
    """Write a profile as JSON that reads back as the same profile."""
    return profile.model_dump(mode="json", exclude_unset=True)
