"""`steelyard explain-reuse RUN --with FILE`: what would be reused, and why; nothing is run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from steelyard.cli.options import config_option, output_options
from steelyard.cli.output import print_json, say, table_lines


@click.command("explain-reuse")
@click.argument("run_dir", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--with",
    "file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The orchestration that would reuse it.",
)
@click.option("--request", metavar="NAME", help="Which of its requests; the run's own by default.")
@click.option("--all", "show_all", is_flag=True, help="A line for every attempt.")
@config_option
@output_options
def explain_reuse(
    run_dir: Path,
    file: Path,
    request: str | None,
    show_all: bool,
    config_files: tuple[Path, ...],
    as_json: bool,
    debug: bool,
) -> int:
    """Compare a finished RUN with a request, field by field and attempt by attempt.

    RUN is a run directory, a folder of runs, a run's id, a request's name, or `latest`; of several
    runs the newest.
    """
    from steelyard.cli.dry_run import resolved
    from steelyard.cli.run_argument import run_root
    from steelyard.cli.streams import redact_with
    from steelyard.components.known import REGISTRY
    from steelyard.config.redaction import Redactor
    from steelyard.config.resolve import resolve_orchestration
    from steelyard.engine.explain import explain

    resolution = resolved(
        lambda: resolve_orchestration(file, config_files=config_files, components=REGISTRY)
    )
    redactor = Redactor(resolution.secrets, secret_env=resolution.orchestration.runtime.secret_env)
    redact_with(redactor.text)
    found = redactor.tree(explain(run_root(run_dir), resolution, request))
    if as_json:
        print_json(found)
        return 0
    _print(found, show_all)
    return 0


def _print(found: dict[str, Any], show_all: bool) -> None:
    say(f"the request {found['request']!r}, reusing {found['source']}")
    if found["incompatible"]:
        say(f"  not a source: {found['incompatible']}")
    for side in ("generation", "evaluation"):
        changes = found["differences"][side]
        say(f"  {side}: {_in_words(len(changes), **found['content'][side])}")
        for change in changes:
            was, now = (_value(change[key]) for key in ("was", "is"))
            say(f"    {change['field']} was {was}, is {now}")
    for warning in found["warnings"]:
        say(f"  warning: {warning}")
    say()
    counts = Counter((row["decision"], row["reason"]) for row in found["attempts"])
    rows = [(count, kind, reason) for (kind, reason), count in counts.most_common()]
    for line in table_lines(("attempts", "decision", "reason"), rows):
        say(line)
    if show_all:
        say()
        each = [(r["task_id"], r["attempt"], r["decision"], r["reason"]) for r in found["attempts"]]
        for line in table_lines(("task", "attempt", "decision", "reason"), each):
            say(line)


def _in_words(settings: int, compared_tasks: int, changed_tasks: int | None) -> str:
    if settings:
        return f"{settings} setting{'s' * (settings > 1)} changed, and with them every task's work"
    if not compared_tasks:
        return "settings: same; no task of these has a record"
    if not changed_tasks:
        return f"settings: same; content of {_tasks(compared_tasks)}: same"
    return f"settings: same; content of {_tasks(changed_tasks)} changed"


def _value(value: object) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _tasks(count: int) -> str:
    return f"{count} task{'s' * (count != 1)}"
