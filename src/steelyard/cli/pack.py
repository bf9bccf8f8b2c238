"""`steelyard pack`: write, check and look at packs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import (
    counted,
    note,
    print_json,
    print_table,
    print_warnings,
    say,
    warnings_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.benchmarks.pack.benchmark import JudgeParams, PackBenchmark
    from steelyard.benchmarks.pack.check import PackReport
    from steelyard.components.benchmark import Task
    from steelyard.config.secrets import SecretStore

_PATH = click.Path(path_type=Path)


@click.group("pack", invoke_without_command=True)
@click.pass_context
def pack(ctx: click.Context) -> None:
    """Write, check and look at packs: benchmarks written as files."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())


@pack.command("init")
@click.argument("folder", metavar="DIR", type=_PATH)
@output_options
def init(folder: Path, as_json: bool, debug: bool) -> int:
    """Write a small commented pack into the new folder DIR; it passes `pack check`."""
    from steelyard.benchmarks.pack.starter import write_starter

    written = write_starter(folder)
    if as_json:
        print_json({"schema": "pack-init/1", "files": [str(path) for path in written]})
        return 0
    for path in written:
        say(f"wrote {path}")
    say(f"next: steelyard pack check {folder}")
    return 0


@pack.command("check")
@click.argument("path", metavar="PATH", type=_PATH)
@click.option("--env", default="auto", show_default=True, help="Where programs run.")
@click.option("--no-play", is_flag=True, help="Validate and render only; run nothing.")
@click.option("--judge", metavar="JSON", help="Ask judges; as `benchmark.judge` of a request.")
@output_options
def check(
    path: Path, env: str, no_play: bool, judge: str | None, as_json: bool, debug: bool
) -> int:
    """Validate the pack at PATH, render every prompt, let `oracle` and `nop` play every case.

    Exit status 2 where the pack is malformed; 1 where the reference fails a case or doing
    nothing passes one. Validators of type judge ask nobody and count as passed, unless --judge is
    given ({} where the pack itself says who judges).
    """
    from steelyard.benchmarks.pack.check import PackReport, given_away, render_problems
    from steelyard.cli.pack_judge import read_judge
    from steelyard.config.errors import BadInput
    from steelyard.config.secrets import SecretStore

    store = SecretStore()
    benchmark = _opened(path, None if judge is None else read_judge(judge, store, os.environ))
    tasks = benchmark.load_tasks()
    if judge is not None:
        benchmark.scoring_models()  # what is wrong with it is said before anything runs
    benchmark.asks_judges = judge is not None
    problems = render_problems(benchmark, tasks)
    if problems:
        raise BadInput.of(problems)
    if no_play:
        info = benchmark.info()
        report = PackReport(info.id, info.version, ())
    else:
        report = _played(benchmark, tasks, env, store)
    warnings = given_away(benchmark)
    not_asked = list(benchmark.judges) if judge is None else []
    if as_json:
        print_json(
            {
                **report.as_json(),
                "case_count": len(tasks),
                "judges_not_asked": not_asked,
                "warnings": warnings_json(warnings),
            }
        )
    else:
        print_warnings(warnings)
        if not_asked and not no_play:
            names = ", ".join(not_asked)
            note(f"warning: not asked, and counted as passed: {names}; --judge JSON asks")
        _print_report(report, len(tasks), has_reference=benchmark.pack.reference is not None)
    return 0 if report.passed else 1


@pack.command("list")
@click.argument("folder", metavar="[DIR]", required=False, type=_PATH)
@output_options
def list_packs(folder: Path | None, as_json: bool, debug: bool) -> int:
    """List packs, with how an eval set names each.

    Without DIR: the project's, those in and below this folder, and those that ship. With it: those
    in and below DIR alone.
    """
    from steelyard.benchmarks.pack.digest import DIGEST_CHARS
    from steelyard.evalset.pack_shelf import shelved_packs
    from steelyard.evalset.project import read_project

    found = shelved_packs(folder, read_project() if folder is None else None)
    if as_json:
        print_json({"schema": "pack-list/1", "packs": [item.as_json() for item in found]})
    elif not found:
        say(f"no packs below {folder}; `steelyard pack init DIR` makes one")
    else:
        rows = [
            (
                item.ref,
                item.slug,
                item.version,
                item.digest and item.digest[:DIGEST_CHARS],
                item.uuid,
                item.path,
                item.summary if item.is_valid else f"malformed: {item.summary}",
            )
            for item in found
        ]
        print_table(("ref", "slug", "version", "digest", "id", "path", "what"), rows)
    return 0


@pack.command("new-version")
@click.argument("path", metavar="PATH", type=_PATH)
@click.option(
    "--no-keep", is_flag=True, help="Only count up: it was changed before, and is not to be kept."
)
@output_options
def new_version(path: Path, no_keep: bool, as_json: bool, debug: bool) -> int:
    """Keep the pack at PATH as it is, and begin its next version.

    Call it before a change that makes old scores incomparable: what is there is copied to
    PATH@VERSION, where eval sets find it as slug@VERSION, and `version` in pack.yaml goes up by
    one. Where nothing has changed since the version before, nothing is done (exit status 2).
    """
    from steelyard.benchmarks.pack.versions import new_version as made_new
    from steelyard.evalset.pack_refs import version_uuid

    made = made_new(path, keeps=not no_keep)
    uuid = version_uuid(made.slug, made.version, made.digest)
    if as_json:
        print_json(
            {
                "schema": "pack-version/1",
                "slug": made.slug,
                "was": made.was,
                "version": made.version,
                "kept": None if made.kept is None else str(made.kept),
                "digest": made.digest,
                "id": uuid,
            }
        )
        return 0
    if made.kept is not None:
        say(f"kept {made.slug}@{made.was} in {os.path.relpath(made.kept)}")
    say(f"{path} is {made.slug}@{made.version} now: change it, then `steelyard pack check {path}`")
    return 0


@pack.command("show")
@click.argument("path", metavar="PATH", type=_PATH)
@click.option("--case", "case_id", help="Show this case's prompt; the first by default.")
@output_options
def show(path: Path, case_id: str | None, as_json: bool, debug: bool) -> int:
    """Show what the pack at PATH asks and how it scores, with one rendered prompt.

    PATH may also be what an eval set names: slug, slug@N, catalog/SLUG, an id.
    """
    from steelyard.benchmarks.pack.listing import described_lines, description_of
    from steelyard.evalset.pack_refs import version_uuid

    opened = _opened(path)
    description = description_of(opened, case_id)
    file, digest = opened.pack.file, opened.pack.digest
    description |= {
        "path": str(opened.pack.root),
        "digest": digest,
        "id": version_uuid(file.slug, file.version, digest),
    }
    if as_json:
        print_json(description)
        return 0
    for line in described_lines(description):
        say(line)
    return 0


def _opened(path: Path, judge: JudgeParams | None = None) -> PackBenchmark:
    from steelyard.benchmarks.pack import PackBenchmark

    found = _folder(path)
    return PackBenchmark(PackBenchmark.Params.model_validate({"path": str(found), "judge": judge}))


def _folder(path: Path) -> Path:
    """Give the folder of what is named: a folder, an id of the catalog, or a ref."""
    from steelyard.components.catalog import catalog_pack
    from steelyard.components.id_forms import is_path, missing_pack

    # An id means the catalog here as it does for `run`; a folder of that name is written ./NAME.
    if (shipped := catalog_pack(str(path))) is not None:
        return shipped
    if is_path(str(path)) or missing_pack(str(path), Path.cwd()) is None:
        return path
    from steelyard.evalset.pack_refs import UnknownPack
    from steelyard.evalset.pack_shelf import pack_at
    from steelyard.evalset.project import read_project

    try:
        return pack_at(str(path), read_project()) or path
    except UnknownPack:
        if path.is_dir():
            return path  # which opening says of it that it is no pack
        raise


def _played(
    benchmark: PackBenchmark, tasks: Sequence[Task], environment: str, store: SecretStore
) -> PackReport:
    from steelyard.benchmarks.pack.check import check_cases
    from steelyard.cli.pack_play import opened_players

    async def play_all() -> PackReport:
        async with opened_players(benchmark, environment, store) as play:
            return await check_cases(benchmark, tasks, play)

    return asyncio.run(play_all())


def _print_report(report: PackReport, cases: int, *, has_reference: bool) -> None:
    say(f"{report.slug} {report.version}: {cases} case{'s' * (cases != 1)}, every prompt renders")
    if not report.cases:
        return
    if not has_reference:
        say("no reference: oracle has nothing to play")
    print_table(
        ("case", "oracle", "nop", "finding"),
        [
            (
                case.id,
                None if case.oracle is None else case.oracle.score,
                case.nop.score,
                "; ".join(case.findings) or ("not judged" if case.judge_fault else "ok"),
            )
            for case in report.cases
        ],
    )
    bad = sum(bool(case.findings) for case in report.cases)
    not_judged = [case.judge_fault for case in report.cases if case.judge_fault is not None]
    every = counted(len(report.cases), "case")
    if bad:
        say(f"{bad} of {every} {'needs' if bad == 1 else 'need'} mending")
    if not_judged:
        was = "was" if len(not_judged) == 1 else "were"
        say(f"{len(not_judged)} of {every} {was} not judged: {not_judged[0]}")
    if not bad and not not_judged:
        say("nothing to mend")
