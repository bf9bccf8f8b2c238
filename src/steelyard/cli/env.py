"""`steelyard env`: environments that outlived their execution: list, enter, close them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import counted, note, print_json, print_table, say
from steelyard.config.errors import BadInput, Fault, Problem

if TYPE_CHECKING:
    from steelyard.engine.leftovers import Found, NotEnded, Standing
    from steelyard.results.remains import Remains

_DIR_HELP: Final = (
    "DIR is a results folder, a request's folder or a run; without it, the results folder that "
    "the settings name."
)


@click.group("env", invoke_without_command=True)
@click.pass_context
def env(ctx: click.Context) -> None:
    """Look at environments that runs kept or left behind, and end them."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())


@env.command("list", help=f"List what runs below DIR kept or left on this machine.\n\n{_DIR_HELP}")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@output_options
def list_environments(folder: Path | None, as_json: bool, debug: bool) -> int:
    """List what still exists, with its state and the command that enters it."""
    place = _place(folder)
    found = asyncio.run(_standing(place))
    if as_json:
        print_json(
            {
                "folder": str(place),
                "environments": [_as_json(one) for one in found.standing],
                "problems": list(found.problems),
            }
        )
        return 0
    _print_problems(found)
    if not found.standing:
        more = " that could be asked about" if found.problems else ""
        say(f"no run below {place} has kept or left anything on this machine{more}")
        return 0
    _print_standing(found.standing, place)
    return 0


@env.command("close", help=f"End what runs below DIR kept or left; it is gone then.\n\n{_DIR_HELP}")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True,
              help="All of it, but what a run may still use.")  # fmt: skip
@click.option("--id", "ids", metavar="ID", multiple=True,
              help="This one, by its id from `env list`; may be repeated.")  # fmt: skip
@output_options
def close_environments(
    folder: Path | None, everything: bool, ids: tuple[str, ...], as_json: bool, debug: bool
) -> int:
    """End by id, or all; what a run may still use is refused."""
    if everything == bool(ids):
        raise BadInput(
            "say what to end: --all, or --id ID",
            remedy="`steelyard env list` shows what there is, with its ids",
        )
    place = _place(folder)
    ended, failed, passed_over, problems = asyncio.run(_close(place, ids))
    if as_json:
        print_json(
            {
                "folder": str(place),
                "ended": [_as_json(one) for one in ended],
                "failed": [{**_as_json(one.standing), "reason": one.why} for one in failed],
                "in_use": [_as_json(one) for one in passed_over],
                "problems": problems,
            }
        )
    else:
        for problem in problems:
            note(f"warning: {problem}")
        for one in ended:
            say(f"ended {one.remains.token}: {one.said}")
        for one in passed_over:
            say(f"left alone {one.remains.token}: {one.remains.why}")
        if not (ended or failed or passed_over):
            say("nothing of it is left" if ids else f"there is nothing to end below {place}")
        for failure in failed:
            note(f"warning: {failure.standing.remains.token} is not ended: {failure.why}; "
                 f"remove it by hand: {failure.standing.said}")  # fmt: skip
    return 1 if failed or problems else 0


@env.command(
    "enter",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--in", "folder", metavar="DIR", type=click.Path(path_type=Path),
              help="The run, or a folder of runs; by default the results folder.")  # fmt: skip
@click.argument("token", metavar="ID")
@click.argument("words", metavar="[PROGRAM]...", nargs=-1, type=click.UNPROCESSED)
@output_options
def enter_environment(
    folder: Path | None, token: str, words: tuple[str, ...], as_json: bool, debug: bool
) -> int:
    """Start a shell, or PROGRAM, in the kept environment ID, behind the walls it had.

    Its files can be changed; the run's record stays as it is. Leaving ends nothing: see
    `steelyard env close`. With --json only errors are JSON: the output is the program's.
    """
    from steelyard.components.environment import EnvironmentFault

    remains = _one(_place(folder), token)
    argv = words[1:] if words[:1] == ("--",) else words
    try:
        return asyncio.run(_enter(remains, argv))
    except EnvironmentFault as error:
        raise Fault(f"{token} cannot be entered: {error}") from error


# -- finding -----------------------------------------------------------------------------------


def _place(given: Path | None) -> Path:
    if given is None:
        from steelyard.cli.run_argument import results_dir

        given = results_dir()
    if not given.is_dir():
        raise BadInput(f"{given} is no folder", remedy="name a results folder, or a run")
    return given


async def _standing(place: Path) -> Found:
    from steelyard.engine.leftovers import Providers, find_standing
    from steelyard.results.remains import remains_below

    async with Providers() as providers:
        return await find_standing(remains_below(place), providers)


async def _close(
    place: Path, ids: Sequence[str]
) -> tuple[list[Standing], list[NotEnded], list[Standing], list[str]]:
    """End what is meant.

    Returns:
        What was ended, what could not be, what a run may still use, what could not be asked.

    Raises:
        BadInput: an id that no run knows, or one that a run may still use; nothing was ended.
    """
    from steelyard.engine.leftovers import Providers, end_standing, find_standing
    from steelyard.results.remains import remains_below

    remains = list(remains_below(place))
    if ids:
        remains = _named(remains, ids, place)
    async with Providers() as providers:
        found = await find_standing(remains, providers)
        ending = [one for one in found.standing if one.remains.may_end]
        passed_over = [one for one in found.standing if not one.remains.may_end]
        failed = await end_standing(ending, providers)
    stays = {one.standing.remains.token for one in failed}
    ended = [one for one in ending if one.remains.token not in stays]
    return ended, failed, passed_over, list(found.problems)


def _named(remains: Sequence[Remains], ids: Sequence[str], place: Path) -> list[Remains]:
    from steelyard.config.validation import nearest
    from steelyard.results.remains import by_token

    known = by_token(remains)
    problems = []
    for token in ids:
        if token not in known:
            near = nearest(token, known)
            hint = f"did you mean {near}?" if near else "`steelyard env list` shows the ids"
            problems.append(Problem(f"no run below {place} knows {token!r}", remedy=hint))
        elif not known[token].may_end:
            one = known[token]
            problems.append(
                Problem(
                    f"{token} is not ended: {one.why} ({one.run})",
                    remedy="wait for the run's end, or stop it",
                )
            )
    if problems:
        raise BadInput.of(problems)
    return [known[token] for token in dict.fromkeys(ids)]


def _one(place: Path, token: str) -> Remains:
    """Give the kept environment of an id.

    Raises:
        BadInput: no run knows it, or it was not kept.
    """
    from steelyard.config.validation import nearest
    from steelyard.results.remains import by_token, remains_below

    known = by_token(remains_below(place))
    found = known.get(token)
    if found is None:
        near = nearest(token, known)
        hint = f"did you mean {near}?" if near else "name its run's folder with --in"
        raise BadInput(f"no run below {place} knows {token!r}", remedy=hint)
    if found.description is None:
        raise BadInput(
            f"{token} was not kept, only left behind: it cannot be entered",
            remedy="`steelyard env list` shows what of it is there",
        )
    if found.enter and not _is_ours(found):
        raise BadInput(
            f"{token} is entered by the command of its own engine",
            remedy=shlex.join(found.enter),
        )
    return found


async def _enter(remains: Remains, argv: Sequence[str]) -> int:
    from steelyard.engine.leftovers import Providers

    async with Providers() as providers:
        environment = providers.of(remains)
        if not argv:
            note(
                f"{remains.provider}, {remains.role} environment of {remains.task_id} attempt "
                f"{remains.attempt}; `exit` leaves it"
            )
        status = await environment.enter(remains.token, remains.details, argv)
    return status if status >= 0 else 128 - status


# -- printing ----------------------------------------------------------------------------------


def _print_problems(found: Found) -> None:
    for problem in found.problems:
        note(f"warning: {problem}")


def _print_standing(standing: Sequence[Standing], place: Path) -> None:
    rows = [
        (
            one.remains.token,
            one.remains.state.value,
            one.remains.role,
            one.remains.task_id,
            one.remains.attempt,
            one.remains.run.name,
            one.remains.provider,
            one.said,
        )
        for one in standing
    ]
    print_table(("id", "state", "of", "task", "attempt", "run", "environment", "what"), rows)
    entering = [one.remains for one in standing if one.remains.enter]
    if entering:
        say("\nenter one:")
        for remains in entering:
            say(f"  {shlex.join(current_command(remains))}")
    for why in dict.fromkeys(one.remains.why for one in standing if one.remains.why):
        say(f"\nnot to be ended from here: {why}")
    ending = sum(one.remains.may_end for one in standing)
    if ending:
        command = shlex.join(["steelyard", "env", "close", str(place.absolute()), "--all"])
        say(f"\n{counted(ending, 'environment')} can be ended: `{command}`")


def current_command(remains: Remains) -> tuple[str, ...]:
    """Give the command that enters it, ours with the folder in which the run lies now."""
    from steelyard.results.remains import enter_command

    return enter_command(remains.run, remains.token) if _is_ours(remains) else remains.enter


def _is_ours(remains: Remains) -> bool:
    return remains.enter[:3] == ("steelyard", "env", "enter")


def _as_json(standing: Standing) -> dict[str, Any]:
    one = standing.remains
    return {
        "id": one.token,
        "state": one.state.value,
        "why": one.why,
        "of": one.role,
        "run": str(one.run),
        "task_id": one.task_id,
        "attempt": one.attempt,
        "execution": one.execution,
        "environment": one.provider,
        "enter": list(current_command(one)),
        "exists": [item.description for item in standing.items],
    }
