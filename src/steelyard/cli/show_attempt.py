"""One attempt, whole: what it was told, did, answered, why it scored that, what went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.cli.output import say
from steelyard.cli.show_steps import parted, reasons, step_blocks
from steelyard.config import printable
from steelyard.results.consumption import dollars

if TYPE_CHECKING:
    from steelyard.components.steps import Step
    from steelyard.results.executions import EarlierExecution
    from steelyard.results.records import AttemptRecord

SHOWN_WAIT_S: Final = 0.1
"""Less waiting is not worth a word."""
MAX_SHOWN_CHARS: Final = 8_000
"""Of a prompt's message or an answer, for people; `--json` has all."""


def print_attempt(root: Path, record: AttemptRecord) -> None:
    """Print an attempt of the run in `root`."""
    from steelyard.results.executions import earlier_executions

    _print_head(record)
    answer, missing = kept_answer(root, record)
    _print_steps(root, record, answer)
    if answer is None:
        say(printable.one_line(f"--- answer: {missing}"))
    elif not answer.strip():
        say("--- answer: empty")
    else:
        _print_block("answer", answer, record.answer_file)
    for title, reason in reasons(record.details):
        _print_block(title, reason)
    for earlier in earlier_executions(root, record):
        _print_block(_execution_title(earlier), _execution_text(earlier))
    for issue in record.last_issues:
        _print_block(f"{issue.severity} {issue.code} ({issue.phase})", issue.message)


def seconds(record: AttemptRecord) -> float:
    """What the attempt took; waiting is not part of it."""
    timing = record.timing
    return timing.setup_s + timing.agent_s + timing.collect_s + timing.evaluate_s


def kept_answer(root: Path, record: AttemptRecord) -> tuple[str | None, str | None]:
    """Give the answer; or None, and why there is none."""
    if record.answer_file is not None:
        return _read(root, record.answer_file)
    return record.answer, "none"


def kept_steps(root: Path, record: AttemptRecord) -> tuple[list[Step] | None, str | None]:
    """Give the steps that were kept; or None, and why there are none."""
    from steelyard.components.analyzer import TrajectoryUnreadable
    from steelyard.results.trajectory_reader import step_of

    path = (record.trajectory or {}).get("path")
    if path is None:
        return None, "no trajectory was kept"
    text, problem = _read(root, str(path))
    if text is None:
        return None, problem
    try:
        return [step_of(step) for step in json.loads(text)["steps"]], None
    except (ValueError, KeyError, TypeError, TrajectoryUnreadable):
        return None, f"{path} is no trajectory"


def _print_head(record: AttemptRecord) -> None:
    figures = ", ".join(f"{name} {_figure(value)}" for name, value in record.metrics.items())
    waited_s = record.timing.waited_s
    waiting = f" and {waited_s:.2f} s of waiting" if waited_s >= SHOWN_WAIT_S else ""
    cost = dollars(record.usage.cost_usd)
    say(printable.one_line(f"=== {record.task_id}, attempt {record.attempt}: {record.outcome}"))
    say(f"{figures or 'no score'}; {seconds(record):.2f} s{waiting}, cost {cost}")
    if record.reused_from is not None:
        say(printable.one_line(f"reused from {record.reused_from.get('run_id')}"))


def _print_steps(root: Path, record: AttemptRecord, answer: str | None) -> None:
    steps, problem = kept_steps(root, record)
    prompt, done = parted(steps or ())
    for step in prompt:
        _print_block(f"prompt ({step.source})", step.message)
    if not prompt:
        say(printable.one_line(f"--- prompt: {problem or 'not in the trajectory'}"))
    for title, text in step_blocks(done, answer):
        _print_block(title, text)
    if steps is not None:
        path = root / str((record.trajectory or {})["path"])
        count = f"all {len(steps)} steps" if len(steps) != 1 else "this step"
        say(printable.one_line(f"--- {count}: {path}"))


def _execution_title(earlier: EarlierExecution) -> str:
    return f"execution {earlier.execution}: {earlier.outcome}, replaced"


def _execution_text(earlier: EarlierExecution) -> str:
    times, retry = earlier.timing, earlier.retry
    took_s = times.setup_s + times.agent_s + times.waited_s + times.collect_s + times.evaluate_s
    cost = dollars(earlier.usage.cost_usd)
    lines = [f"{took_s:.2f} s, cost {cost}; began {times.started_at}"]
    lines += [f"{one.severity} {one.code} ({one.phase}): {one.message}" for one in earlier.issues]
    if path := (earlier.trajectory or {}).get("path"):
        lines.append(f"steps in {path}")
    what = "its work scored" if retry.get("scope") == "scoring" else "run"
    lines.append(f"{what} again after {retry.get('wait_s')} s, because of {retry.get('cause')}")
    return "\n".join(lines)


def _print_block(title: str, text: str, file: str | None = None) -> None:
    say(printable.one_line(f"--- {title}"))
    if len(text) > MAX_SHOWN_CHARS:
        rest = len(text) - MAX_SHOWN_CHARS
        where = f"all in {file}" if file else "all with --json"
        text = f"{text[:MAX_SHOWN_CHARS]}\n… and {rest} more characters: {where}"
    # Indented, so that nobody's words can pass for ours.
    for line in text.rstrip("\n").split("\n") if text else ():
        say(f"  {line}" if line else "")


def _read(root: Path, relative: str) -> tuple[str | None, str | None]:
    """Read a file of the run; never one that lies elsewhere."""
    from steelyard.results.kept_files import KeptFileUnreadable, read_kept

    try:
        return read_kept(root, relative).decode("utf-8", "replace"), None
    except KeptFileUnreadable as error:
        return None, str(error)


def _figure(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}"
    return text if float(text) == value or not float(text).is_integer() else repr(value)
