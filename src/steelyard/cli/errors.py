"""The one boundary of the command line: every failure becomes a short block and an exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from steelyard.cli.streams import guard, hush, redact_with, redacted
from steelyard.config import printable
from steelyard.config.errors import BadInput, Problem, SteelyardError

BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
_CREATING: Final = frozenset({"run", "launch"})
"""Commands that would have made something; of a check nobody asks whether it did."""

_SECTIONS: Final = frozenset({"benchmark", "harness", "env", "model"})
"""What `-P` of `run` sets fields of."""

_log_file: str | None = None


def note_log_file(path: str) -> None:
    """Name the log file in which an unexpected error's traceback stands."""
    global _log_file
    _log_file = path


def run_guarded(arguments: Sequence[str]) -> int:
    """Run the command line and turn whatever it raises into an exit status."""
    import click

    global _log_file
    _log_file = None
    redact_with(str)
    guard()
    as_json, debug = _asked(arguments, "--json"), _asked(arguments, "--debug")
    try:
        from steelyard.cli.main import cli

        if "_STEELYARD_COMPLETE" in os.environ:
            cli.main(args=list(arguments), prog_name="steelyard")
        # Not `cli.main`: it ends the process with status 1 where a pipe is closed.
        with cli.make_context("steelyard", list(arguments)) as context:
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.UsageError as error:
        return _print_usage(error, as_json)
    except click.ClickException as error:
        return _print_problems([Problem(error.format_message())], BAD_INPUT, as_json)
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(as_json)
    except BrokenPipeError:
        hush_stdout()
        return 0
    except SteelyardError as error:
        _print_traceback(debug)
        creates = bool(arguments) and arguments[0] in _CREATING
        return _print_problems(error.problems, error.exit_status, as_json, error, creates=creates)
    except Exception as error:  # noqa: BLE001 — the boundary
        _print_traceback(debug)
        return _print_unexpected(error, debug, as_json)
    return status if isinstance(status, int) else 0


def hush_stdout() -> None:
    """Point standard output nowhere: its reader is gone, and exiting must not complain."""
    hush(1)


def _asked(arguments: Sequence[str], flag: str) -> bool:
    own = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
    return flag in own


def _print_traceback(debug: bool) -> None:
    if debug:
        import traceback

        sys.stderr.write(printable.lines(redacted(traceback.format_exc())))


def problem_json(problem: Problem) -> dict[str, Any]:
    """Give a problem as JSON: message, file, line, column, field, remedy."""
    where = problem.where
    return {
        "message": problem.message,
        "file": where.file,
        "line": where.line,
        "column": where.column,
        "field": where.field,
        "remedy": problem.remedy,
    }


def _print_problems(
    problems: Sequence[Problem],
    status: int,
    as_json: bool,
    error: SteelyardError | None = None,
    *,
    creates: bool = False,
) -> int:
    kind = type(error).__name__ if error is not None else "UsageError"
    document = {
        "error": {
            "kind": kind,
            "exit_status": status,
            "problems": [problem_json(problem) for problem in problems],
        }
    }
    lines = [f"error: {_indented(problem)}" for problem in problems]
    if len(problems) > 1 and isinstance(error, BadInput):
        ending = "; nothing was created" if creates else ""
        lines.append(f"{len(problems)} problems{ending}")
    return _print_error("\n".join(lines), document, status, as_json)


def _indented(problem: Problem) -> str:
    return str(problem).replace("\n  ", "\n       ")


def _print_error(text: str, document: dict[str, Any], status: int, as_json: bool) -> int:
    try:
        if as_json:
            sys.stdout.write(_json_text(document) + "\n")
            sys.stdout.flush()
        else:
            sys.stderr.write(printable.lines(redacted(text)) + "\n")
    except BrokenPipeError:
        hush_stdout()
    return status


def _json_text(document: dict[str, Any]) -> str:
    return printable.json_lines(redacted(json.dumps(document, ensure_ascii=False, indent=2)))


def _print_usage(error: Any, as_json: bool) -> int:
    import click

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(error.format_message() + "\n")
        return BAD_INPUT
    command = error.ctx.command_path if error.ctx is not None else "steelyard"
    message, remedy = error.format_message().rstrip("."), f"see `{command} --help`"
    if isinstance(error, click.NoSuchOption) and command.endswith(" run"):
        field = _field_of(error.option_name)
        if field is not None:
            message = f"No such option {error.option_name!r}"
            remedy = (
                f"a field without an option of its own is given as `-P {field}=VALUE`; {remedy}"
            )
    problem = Problem(message, remedy=remedy)
    return _print_problems([problem], BAD_INPUT, as_json)


def _field_of(option: str) -> str | None:
    """Give the field that an unknown option names: `--model-top-p` is `model.top_p`."""
    section, _, field = option.removeprefix("--").partition("-")
    if section not in _SECTIONS or not field:
        return None
    return f"{section}.{field.replace('-', '_')}"


def _interrupted(as_json: bool) -> int:
    document = {"error": {"kind": "Interrupted", "exit_status": INTERRUPTED, "problems": []}}
    return _print_error("interrupted", document, INTERRUPTED, as_json)


def _print_unexpected(error: Exception, debug: bool, as_json: bool) -> int:
    said = " ".join(str(error).split())
    message = f"unexpected {type(error).__name__}: {said[:500]}"
    if _log_file is not None:
        remedy = f"the traceback is in {_log_file}"
    elif debug:
        remedy = "the traceback stands above"
    else:
        remedy = "this is a fault of steelyard; `--debug` shows the traceback"
    problem = Problem(message, remedy=remedy)
    document = {
        "error": {
            "kind": type(error).__name__,
            "exit_status": 1,
            "problems": [problem_json(problem)],
        }
    }
    return _print_error(f"error: {_indented(problem)}", document, 1, as_json)
