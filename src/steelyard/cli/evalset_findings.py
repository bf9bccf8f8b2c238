"""`steelyard evalset findings SET`: what scanners found, and what people say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from steelyard.cli.options import output_options

if TYPE_CHECKING:
    from steelyard.evalset.finding_values import KeptFinding
    from steelyard.evalset.findings import FindingLog, FindingView
    from steelyard.evalset.set_reader import OpenedSet

SEVERITIES: Final = ("info", "low", "medium", "high")
STATES: Final = ("open", "triaged", "dismissed", "superseded", "all")
ACTIONS: Final = {"triage": "triaged", "dismiss": "dismissed", "reopen": "open"}
_SHOWN_ID: Final = 8
_EVIDENCE: Final = 60
FINDINGS_SCHEMA: Final = "evalset-findings/1"


@click.command("findings")
@click.argument("set_", metavar="SET")
@click.argument("words", nargs=-1, metavar="[ID | triage ID… | dismiss ID… | reopen ID…]")
@click.option("--scanner", "scanners", multiple=True, metavar="ID", help="Only of these scanners.")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), help="Only of this severity, or a greater one."
)
@click.option(
    "--cell", "keys", multiple=True, metavar="KEY", help="Only of these cells: keys or patterns."
)
@click.option("--case", "cases", multiple=True, metavar="CASE", help="Only of these cases.")
@click.option(
    "--state",
    type=click.Choice(STATES),
    help="Only those that stand so (all but superseded ones).",
)
@click.option("--why", metavar="TEXT", help="Why, for triage, dismiss and reopen.")
@click.option("--by", metavar="NAME", help="Who says so (the user's name).")
@output_options
def findings(
    set_: str,
    words: tuple[str, ...],
    scanners: tuple[str, ...],
    severity: str | None,
    keys: tuple[str, ...],
    cases: tuple[str, ...],
    state: str | None,
    why: str | None,
    by: str | None,
    as_json: bool,
    debug: bool,
) -> int:
    """List what scanners found in SET, the gravest first.

    With the ID of a finding, or its beginning, its evidence is shown where it stands in the
    trajectory. `triage`, `dismiss` and `reopen` with IDs and --why write what a person makes of
    them; nothing is ever removed.
    """
    from steelyard.cli.output import note, print_json
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.find_set import find_set
    from steelyard.evalset.findings import FindingLog, finding_views

    opened = find_set(set_, results_dir())
    if words and words[0] in ACTIONS:
        return _act(opened, words[0], words[1:], by=by, why=why, as_json=as_json)
    if why is not None:
        raise click.UsageError("--why goes with triage, dismiss or reopen, and an ID")
    log = FindingLog(opened.files)
    views = list(finding_views(opened, log))
    if words:
        wanted = {log.find(word).id for word in words}
        return _show(opened, [one for one in views if one.finding.id in wanted], as_json=as_json)
    chosen = _chosen(opened, views, scanners, severity, keys, cases, state)
    if as_json:
        print_json(_document(opened, log, chosen))
        return 0
    _print_list(opened, log, views, chosen)
    for warning in log.warnings:
        note(f"warning: {warning}")
    return 0


def _chosen(
    opened: OpenedSet,
    views: Sequence[FindingView],
    scanners: Sequence[str],
    severity: str | None,
    keys: Sequence[str],
    cases: Sequence[str],
    state: str | None,
) -> list[FindingView]:
    from steelyard.components.registry import Kind, canonical_id, known_ids
    from steelyard.evalset.cell_choice import check_each_matches, chosen_cells, matches

    cells = {cell.index for cell in chosen_cells(opened.cells, keys)} if keys else None
    names = [canonical_id(Kind.SCANNER, name) for name in scanners]
    check_each_matches(
        names, [*known_ids(Kind.SCANNER), *(one.finding.scanner for one in views)], "scanner"
    )
    if cases and views:
        check_each_matches(cases, [one.finding.case for one in views], "case with a finding")
    least = SEVERITIES.index(severity) if severity else 0

    def is_wanted(view: FindingView) -> bool:
        one = view.finding
        return (
            (cells is None or one.cell in cells)
            and (not names or any(matches(name, one.scanner) for name in names))
            and (not cases or any(matches(case, one.case) for case in cases))
            and SEVERITIES.index(one.severity.value) >= least
            and (
                state == "all"
                or view.shown_state == state
                or (state is None and not view.is_superseded)
            )
        )

    return sorted(filter(is_wanted, views), key=_order)


def _order(view: FindingView) -> tuple[Any, ...]:
    one = view.finding
    return (
        -SEVERITIES.index(one.severity.value),
        one.scanner,
        one.category,
        one.cell,
        one.case,
        one.attempt,
        -1 if one.step is None else one.step,
    )


def _document(
    opened: OpenedSet, log: FindingLog, views: Sequence[FindingView], **more: Any
) -> dict[str, Any]:
    return {
        "schema": FINDINGS_SCHEMA,
        "set_id": opened.set_id,
        "name": opened.name,
        "matching": len(views),
        "was_scanned": log.has_been_scanned(),
        "findings": [view.as_json() for view in views],
        "warnings": list(log.warnings),
        **more,
    }


def _print_list(
    opened: OpenedSet,
    log: FindingLog,
    views: Sequence[FindingView],
    chosen: Sequence[FindingView],
) -> None:
    from steelyard.cli.output import counted, print_table, say

    if chosen:
        columns = ("id", "severity", "state", "scanner", "category", "cell", "case", "evidence")
        print_table(
            columns,
            [
                (
                    view.finding.id[:_SHOWN_ID],
                    view.finding.severity.value,
                    view.shown_state,
                    view.finding.scanner,
                    view.finding.category,
                    view.finding.matrix_key,
                    _case(view.finding),
                    _short(view.finding.evidence),
                )
                for view in chosen
            ],
        )
        say()
    superseded = sum(view.is_superseded for view in views)
    states = dict.fromkeys(STATES[:3], 0)
    for view in views:
        if not view.is_superseded:
            states[view.state.value] += 1
    total = ", ".join(f"{n} {state}" for state, n in states.items() if n)
    if superseded:
        total = f"{total}, {superseded} superseded" if total else f"{superseded} superseded"
    if not log.has_been_scanned():
        say(f"nothing was scanned yet: `steelyard evalset scan {opened.set_id}`")
    elif len(chosen) < len(views):
        say(f"{counted(len(chosen), 'finding')} of {len(views)} ({total})")
    else:
        say(f"{counted(len(chosen), 'finding')}{f' ({total})' if total else ''}")


def print_findings(found: Iterable[KeptFinding]) -> None:
    """Print a table of findings that are new."""
    from steelyard.cli.output import print_table

    columns = ("id", "severity", "scanner", "category", "cell", "case", "evidence")
    print_table(
        columns,
        [
            (
                one.id[:_SHOWN_ID], one.severity.value, one.scanner, one.category, one.matrix_key,
                _case(one), _short(one.evidence),
            )
            for one in found
        ],
    )  # fmt: skip


def _case(finding: KeptFinding) -> str:
    return finding.case if finding.attempt == 1 else f"{finding.case} #{finding.attempt}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EVIDENCE else f"{line[: _EVIDENCE - 1]}…"


# -- one finding -------------------------------------------------------------------------------


def _show(opened: OpenedSet, views: Sequence[FindingView], *, as_json: bool) -> int:
    from steelyard.cli.output import print_json, say
    from steelyard.evalset.evidence import evidence_context
    from steelyard.evalset.findings import FindingLog

    contexts = [evidence_context(opened, view.finding) for view in views]
    if as_json:
        document = _document(opened, FindingLog(opened.files), views)
        for one, context in zip(document["findings"], contexts, strict=True):
            one["context"] = context.as_json()
        print_json(document)
        return 0
    for number, (view, context) in enumerate(zip(views, contexts, strict=True)):
        if number:
            say()
        for line in _whole(view):
            say(line)
        if context.missing is not None:
            say(f"  {context.missing}; the evidence as it was kept:")
            say(_indented(view.finding.evidence))
        else:
            say(f"  step {view.finding.step} ({context.source}), {context.place}:")
            say(_indented(f"{context.before}>>>{context.span}<<<{context.after}"))
    return 0


def _whole(view: FindingView) -> Iterator[str]:
    from steelyard.cli.output import pairs_lines

    one = view.finding
    yield f"{one.id} {one.severity.value}: {one.message}"
    yield from pairs_lines(
        {
            "scanner": f"{one.scanner} {one.version}",
            "category": one.category,
            "confidence": f"{one.confidence:.2f}",
            "cell": one.matrix_key,
            "case": f"{one.case} #{one.attempt}, run {one.run}",
            "state": view.shown_state,
            "found": one.at,
        }
    )
    for said in view.triage:
        yield f"  {said.at} {said.by}: {said.state.value}: {said.why}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


# -- what people say ---------------------------------------------------------------------------


def _act(
    opened: OpenedSet,
    action: str,
    ids: Sequence[str],
    *,
    by: str | None,
    why: str | None,
    as_json: bool,
) -> int:
    from steelyard.cli.output import print_json, say
    from steelyard.components.clock import SystemClock
    from steelyard.evalset.finding_store import FindingStore
    from steelyard.evalset.finding_values import TriageState

    if not ids:
        raise click.UsageError(f"{action} which finding? write its ID, or the beginning of it")
    if why is None or not why.strip():
        raise click.UsageError(f"{action} why? write --why TEXT")
    store = FindingStore(opened.files, clock=SystemClock(), redact=_redaction(opened))
    found = [store.log.find(prefix) for prefix in ids]  # all of them, before anything is written
    state = TriageState(ACTIONS[action])
    for finding in found:
        store.judge(finding.id, state, by=by or _user(), why=why.strip())
    if as_json:
        print_json(_document(opened, store.log, [store.log.view(finding) for finding in found]))
        return 0
    for finding in found:
        say(f"{finding.id} is {state.value}: {finding.message}")
    return 0


def _redaction(opened: OpenedSet) -> Callable[[str], str]:
    """Give what hides the project's secrets, in people's words too, as far as it can be read."""
    from steelyard.config.errors import SteelyardError
    from steelyard.config.redaction import Redactor
    from steelyard.evalset.project import read_project

    around = opened.document.around
    try:
        project = read_project(around.config_files, cwd=around.cwd)
    except (SteelyardError, OSError):
        return str
    return Redactor(project.config.secrets).text


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for this user
        return "unknown"
