"""The options that `run` and `launch` share, as a table: each names the setting it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import click

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.layers import COMMAND_LINE, Override
from steelyard.config.source import Node, Origin


class OptionKind(Enum):
    """How an option's text becomes a value."""

    TEXT = "text"
    """One value, parsed as the field's type."""
    ON = "on"
    """A flag that sets true."""
    OFF = "off"
    """A flag that sets false."""
    SWITCH = "switch"
    """A flag with a `--no-` form."""
    PAIRS = "pairs"
    """`NAME=VALUE`, may be repeated."""
    LIST = "list"
    """A JSON array or comma-separated values, may be repeated."""
    PATTERNS = "patterns"
    """A JSON array, or one value as it is, may be repeated."""
    OBJECT = "object"
    """A JSON object whose fields go beside those that are set already."""


REQUEST: Final = "Request"
MODEL: Final = "Model"
SCHEDULING: Final = "Scheduling"
RESULTS: Final = "Results and reuse"
GATES: Final = "Gates and calibration"
OUTPUT: Final = "Output"
GROUPS: Final = (REQUEST, MODEL, SCHEDULING, RESULTS, GATES, OUTPUT)
"""The headings of `run --help` and `launch --help`, in order."""

_GROUP_OF_SECTION: Final[Mapping[str, str]] = {
    "model": MODEL,
    "runtime": SCHEDULING,
    "budget": SCHEDULING,
    "output": RESULTS,
}
_GROUP_OF_SETTING: Final[Mapping[tuple[str, ...], str]] = {
    ("execution", "task_concurrency"): SCHEDULING,
    ("execution", "max_retries"): SCHEDULING,
    ("execution", "retry_pattern_list"): SCHEDULING,
    ("runtime", "results_dir"): RESULTS,
    ("runtime", "checkpoint_resume"): RESULTS,
    ("execution", "analysis"): RESULTS,
    ("runtime", "data_dir"): REQUEST,
    ("runtime", "progress"): OUTPUT,
    ("runtime", "log_level"): OUTPUT,
    ("runtime", "file_log_level"): OUTPUT,
    ("runtime", "log_format"): OUTPUT,
    ("runtime", "file_log_format"): OUTPUT,
}
_GROUP_OF_OPTION: Final[Mapping[str, str]] = {
    "fields": REQUEST,
    "config_files": REQUEST,
    "dry_run": REQUEST,
    "reuse": RESULTS,
    "reuse_run_id": RESULTS,
    "fail_under": GATES,
    "confident": GATES,
    "require_official": GATES,
    "calibrate": GATES,
    "calibrated_score": GATES,
    "reap": SCHEDULING,
}
"""Of options that set no single setting; others are of the output."""


@dataclass(frozen=True, slots=True)
class SettingOption:
    """An option that sets one setting."""

    flag: str
    path: tuple[str, ...]
    """As in a configuration file."""
    help: str
    metavar: str = "TEXT"
    kind: OptionKind = OptionKind.TEXT
    aliases: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """The heading under which `--help` lists it."""
        return _GROUP_OF_SETTING.get(self.path[:2], _GROUP_OF_SECTION.get(self.path[0], REQUEST))

    @property
    def name(self) -> str:
        """The name under which click hands the value over."""
        return self.flag.removeprefix("--").replace("-", "_")


SHARED: Final = (
    SettingOption("--task-concurrency", ("execution", "task_concurrency"),
                  "Attempts at once over all requests, retries included (32).", "N"),
    SettingOption("--timeout-seconds", ("runtime", "timeout_seconds"),
                  "Wall clock of the whole (360000); 0 for none.", "SECONDS"),
    SettingOption("--provider-limit", ("runtime", "provider_limits"),
                  "Attempts at once through a provider (128); 0 for no limit.", "PROVIDER=N",
                  OptionKind.PAIRS),
    SettingOption("--env-open-qps", ("runtime", "env_open_qps"),
                  "Environments opened a second (local 0, remote 10); 0 for no pacing.",
                  "PROVIDER=QPS", OptionKind.PAIRS),
    SettingOption("--results-dir", ("runtime", "results_dir"), "Root of results (results).",
                  "DIR"),
    SettingOption("--data-dir", ("runtime", "data_dir"), "Where data sets lie.", "DIR"),
    SettingOption("--run-name", ("output", "run_name"), "A folder that groups runs.", "NAME"),
    SettingOption("--run-id", ("output", "run_id"),
                  "The new run's id (its UTC start); must be unused.", "ID"),
    SettingOption("--progress", ("runtime", "progress"), "How progress is shown (auto).",
                  "auto|plain|none"),
    SettingOption("--log-level", ("runtime", "log_level"), "Of the terminal (INFO).", "LEVEL"),
    SettingOption("--file-log-level", ("runtime", "file_log_level"), "Of run.log (DEBUG).",
                  "LEVEL"),
    SettingOption("--log-format", ("runtime", "log_format"),
                  "Of what is said while it runs (text).", "text|json"),
    SettingOption("--file-log-format", ("runtime", "file_log_format"), "Of run.log (text).",
                  "text|json"),
    SettingOption("--allow-unpriced", ("runtime", "allow_unpriced"),
                  "Let models without a known price run under a dollar budget.",
                  kind=OptionKind.ON),
    SettingOption("--auto-install-dependencies", ("runtime", "auto_install_dependencies"),
                  "Install missing extras of our own and agents' programs, pinned.",
                  kind=OptionKind.ON),
    SettingOption("--cleanup-grace-seconds", ("runtime", "cleanup_grace_seconds"),
                  "For clean-up after a stop (30).", "SECONDS"),
    SettingOption("--no-checkpoint-resume", ("runtime", "checkpoint_resume"),
                  "Run the agent again where only scoring is pending.", kind=OptionKind.OFF),
    SettingOption("--max-retries", ("execution", "max_retries"), "Retries of each attempt (0).",
                  "N"),
    SettingOption("--retry-pattern-list", ("execution", "retry_pattern_list"),
                  "Patterns of ERRORs worth a retry: a JSON array, or one each time.",
                  "PATTERNS", OptionKind.PATTERNS),
    SettingOption("--keep-environment", ("execution", "keep_environment"),
                  "Let environments stand when they have ended, to look into them.",
                  kind=OptionKind.ON),
    SettingOption("--analysis", ("execution", "analysis"),
                  "Say at the end what went wrong: the analyzer `failures`.",
                  kind=OptionKind.ON),
    SettingOption("--analyzer", ("execution", "analysis"),
                  "Analyze the run at its end by these instead.", "ID,…", OptionKind.LIST),
    SettingOption("--limit", ("execution", "limit"), "Only the first N tasks.", "N"),
    SettingOption("--sample-ids", ("execution", "sample_ids"), "Only these tasks.", "ID,…",
                  OptionKind.LIST),
    SettingOption("--exclude-ids", ("execution", "exclude_ids"), "Not these tasks.", "ID,…",
                  OptionKind.LIST),
    SettingOption("--shard", ("execution", "shard"), "The i-th of n parts, from 1.", "I/N"),
    SettingOption("--budget-usd", ("budget", "usd"), "Dollars the whole may spend.", "USD"),
    SettingOption("--budget-tokens", ("budget", "tokens"), "Tokens the whole may spend.", "N"),
)  # fmt: skip
"""What both commands take."""

RUN_ONLY: Final = (
    SettingOption("--k", ("execution", "attempts", "k"), "Attempts of each task (1).", "N"),
    SettingOption("--attempt-strategy", ("execution", "attempts", "strategy"),
                  "How attempts become one figure (avg).", "avg|pass"),
    SettingOption("--early-stop", ("execution", "attempts", "early_stop"),
                  "Whether a task stops at its first success (with pass).",
                  kind=OptionKind.SWITCH),
    SettingOption("--env", ("environment", "id"), "The environment (auto).", "ID",
                  aliases=("--environment",)),
    SettingOption("--benchmark-params", ("benchmark",), "The benchmark's fields.", "JSON",
                  OptionKind.OBJECT),
    SettingOption("--harness-params", ("harness",), "The harness's fields.", "JSON",
                  OptionKind.OBJECT),
    SettingOption("--env-params", ("environment",), "The environment's fields.", "JSON",
                  OptionKind.OBJECT, aliases=("--environment-params",)),
    SettingOption("--model-params", ("model", "params"), "Generation options.", "JSON",
                  OptionKind.OBJECT),
    SettingOption("--execution-params", ("execution",), "Fields of execution.", "JSON",
                  OptionKind.OBJECT),
    SettingOption("--model-base-url", ("model", "base_url"), "The endpoint.", "URL"),
    SettingOption("--model-api-key", ("model", "api_key"),
                  "Its key, best as '${NAME}': others can see a command line.", "KEY"),
    SettingOption("--model-api-protocol", ("model", "api_protocol"), "Its protocol.",
                  "openai-chat|openai-responses|anthropic"),
)  # fmt: skip
"""What speaks of the one request."""

FIELD_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "benchmark": ("benchmark",),
    "harness": ("harness",),
    "environment": ("environment",),
    "env": ("environment",),
    "model": ("model", "params"),
}
"""Where `-P SECTION.key=value` puts a field."""


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a section for each group that has any."""
        groups = {option.name: option.group for option in (*RUN_ONLY, *SHARED)}
        groups.update(_GROUP_OF_OPTION)
        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                sections[groups.get(option.name or "", OUTPUT)].append(record)
        for group, records in sections.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--json` and `--debug`, which every command has."""
    command = click.option("--debug", is_flag=True, help="Show tracebacks.")(command)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config FILE`, which may be repeated."""
    return click.option(
        "--config", "config_files", metavar="FILE", multiple=True, type=click.Path(path_type=Path),
        help="A configuration file; may be repeated, later ones win.",
    )(command)  # fmt: skip


def setting_options(
    table: Sequence[SettingOption],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a table."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(table):
            command = _click_option(option)(command)
        return command

    return add


def _click_option(option: SettingOption) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    names = [option.flag, *option.aliases, option.name]
    if option.kind in (OptionKind.ON, OptionKind.OFF):
        return click.option(*names, is_flag=True, default=False, help=option.help)
    if option.kind is OptionKind.SWITCH:
        switch = f"{option.flag}/--no-{option.flag.removeprefix('--')}"
        return click.option(switch, option.name, default=None, help=option.help)
    many = option.kind in (OptionKind.PAIRS, OptionKind.LIST, OptionKind.PATTERNS)
    return click.option(*names, metavar=option.metavar, multiple=many, help=option.help)


def overrides_of(table: Sequence[SettingOption], given: Mapping[str, Any]) -> list[Override]:
    """Make overrides of the options that were given.

    Raises:
        BadInput: JSON that is malformed or no object, pairs without `=`; all at once.
    """
    overrides: list[Override] = []
    problems: list[Problem] = []
    for option in table:
        value = given.get(option.name)
        if not _is_given(option, value):
            continue
        try:
            overrides += _overrides(option, value)
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput.of(problems)
    return overrides


def _is_given(option: SettingOption, value: Any) -> bool:
    if option.kind is OptionKind.SWITCH:
        return value is not None
    return value is not None and value is not False and value != ()


def _overrides(option: SettingOption, value: Any) -> Iterator[Override]:
    flag, path = option.flag, option.path
    match option.kind:
        case OptionKind.TEXT:
            yield Override(path, value, flag, is_text=True)
        case OptionKind.ON | OptionKind.SWITCH:
            yield Override(path, bool(value), flag)
        case OptionKind.OFF:
            yield Override(path, False, flag)
        case OptionKind.PAIRS:
            for text in value:
                name, equals, number = text.partition("=")
                if not equals or not name:
                    raise BadInput(
                        f"found {text!r}", where=Where(field=flag),
                        remedy=f"write {flag} {option.metavar}",
                    )  # fmt: skip
                yield Override((*path, name), number, flag, is_text=True)
        case OptionKind.LIST:
            yield Override(path, [item for text in value for item in _items(text, flag)], flag)
        case OptionKind.PATTERNS:
            patterns = [
                item
                for text in value
                for item in (_array(text, flag) if _is_array(text) else [text])
                if item != "null"  # as in a file: no patterns
            ]
            yield Override(path, patterns, flag)
        case OptionKind.OBJECT:
            yield Override(path, None, flag, node=_object(value, flag, path))


def _is_array(text: str) -> bool:
    # A pattern may begin with `[` too: only `["` and `[]` begin an array of texts.
    squeezed = text.replace(" ", "")
    return squeezed.startswith('["') or squeezed == "[]"


def _items(text: str, flag: str) -> list[Any]:
    if text.lstrip().startswith("["):
        return _array(text, flag)
    return [item.strip() for item in text.split(",") if item.strip()]


def _array(text: str, flag: str) -> list[Any]:
    from steelyard.config.json_source import read_json
    from steelyard.config.source import plain

    found = plain(read_json(text, flag, layer=COMMAND_LINE))
    if not isinstance(found, list):
        raise BadInput("expected a JSON array", where=Where(flag))
    return found


def _object(text: str, flag: str, path: tuple[str, ...]) -> Node:
    from steelyard.config.json_source import read_json

    node = read_json(text, flag, layer=COMMAND_LINE, prefix=path)
    if not isinstance(node.value, dict):
        raise BadInput(
            "expected a JSON object", where=Where(flag, 1, 1), remedy=f"write {flag} '{{\"a\": 1}}'"
        )
    return node


def field_override(text: str) -> Override:
    """Make an override of `-P section.key=value`; the value is JSON where it parses, else text.

    Raises:
        BadInput: it has no `=`, or another section.
    """
    name, equals, raw = text.partition("=")
    section, dot, key = name.strip().partition(".")
    where = Where(field=f"-P {name}")
    if not equals or not dot or not key:
        raise BadInput("not of the form section.key=value", where=where,
                       remedy="write -P benchmark.key=value")  # fmt: skip
    if section not in FIELD_SECTIONS:
        from steelyard.config.validation import nearest

        near = nearest(section, FIELD_SECTIONS)
        hint = f"did you mean {near}? " if near else ""
        raise BadInput(f"unknown section {section!r}", where=where,
                       remedy=f"{hint}allowed: {', '.join(FIELD_SECTIONS)}")  # fmt: skip
    path = (*FIELD_SECTIONS[section], *key.split("."))
    if section == "model" and path[2] in _model_settings():
        # Sent along as a parameter, it would have no effect and no error.
        path = ("model", *path[2:])
    if raw.strip().startswith(("{", "[", '"')) or _is_json_scalar(raw.strip()):
        from steelyard.config.json_source import read_json

        node = read_json(raw, f"-P {name}", layer=COMMAND_LINE, prefix=path)
        return Override(path, None, f"-P {name}", node=node)
    return Override(path, None, f"-P {name}", node=Node(raw, Origin(COMMAND_LINE, where)))


def _model_settings() -> frozenset[str]:
    from steelyard.config.schema.request import ModelSettings

    return frozenset(ModelSettings.model_fields) - {"id"}


def _is_json_scalar(text: str) -> bool:
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return False
    return value is None or isinstance(value, bool | int | float)
