"""A comparison of two sets as tables, as a comment for a pull request, as JSON and JUnit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from steelyard.evalset.comparing import (
    SIGNIFICANT,
    AgentChange,
    ComparedCombination,
    Key,
    SetComparison,
    Verdict,
)
from steelyard.results.comparison import Difference, ExactTest
from steelyard.results.comparison_json import difference_json, test_json
from steelyard.results.comparison_text import (
    Cell,
    Name,
    Section,
    difference_interval,
    markdown_text,
    p_text,
    test_note,
)
from steelyard.results.figures import figure, signed
from steelyard.results.gates import GateResult
from steelyard.results.junit import JunitCase, JunitSuite, suites_junit, timestamp_of

COMPARE_SCHEMA: Final = "evalset-compare/1"
MAX_ROWS: Final = 40
MAX_COMMENT_CHARS: Final = 12_000
"""Of the Markdown: a comment takes five times as much, and nobody reads that."""
_COMMENT_ROWS: Final = (20, 10, 5, 1)
_COMMENT_WARNINGS: Final = 10
NONE: Final = "–"
_ORDER: Final = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNTESTED, Verdict.UNCHANGED)
_Laid = Sequence[Section]


def comparison_sections(
    found: SetComparison, gates: Sequence[GateResult] = (), *, limit: int = MAX_ROWS
) -> list[Section]:
    """Lay out a comparison; `limit` rows of what grows with the matrix, 0 for all."""
    from steelyard.evalset.report.report_text import gate_section

    laid = [_head(found)]
    laid += [gate_section(gates)] if gates else []  # first, for a comment may be cut
    laid += [_agents(found.agents)] if found.agents else []
    laid.append(_combinations(found.combinations, limit))
    laid += _changes(found.combinations, limit)
    laid += [_only("added: only in this set", found.added, limit)] if found.added else []
    laid += [_only("removed: only in the base", found.removed, limit)] if found.removed else []
    return laid


def comparison_markdown(found: SetComparison, gates: Sequence[GateResult]) -> str:
    """Give a comment for a pull request, at most `MAX_COMMENT_CHARS` long.

    Rows are left out until it fits, and how many is said; what regressed stands first.
    """
    warnings = list(found.warnings[:_COMMENT_WARNINGS])
    if len(found.warnings) > len(warnings):
        warnings.append(f"and {len(found.warnings) - len(warnings)} more warnings: see the JSON")
    text = ""
    for rows in _COMMENT_ROWS:
        text = markdown_text(comparison_sections(found, gates, limit=rows), warnings)
        if len(text) <= MAX_COMMENT_CHARS:
            return text
    cut = text[: MAX_COMMENT_CHARS - 100].rsplit("\n", 1)[0]
    return f"{cut}\n\n… cut: the whole of it is in the JSON\n"


def comparison_junit(found: SetComparison, gates: Sequence[GateResult]) -> Iterator[str]:
    """Give a suite for each combination: a test is a case, a failure where it is worse.

    Where the combination as a whole did not get worse, a worse case is skipped, and says so.
    """

    def suites() -> Iterator[tuple[JunitSuite, list[JunitCase]]]:
        for one in found.combinations:
            worse = {change.case: change for change in one.changes if change.gain < 0}
            is_no_loss = one.verdict in (Verdict.UNCHANGED, Verdict.IMPROVED)
            as_a_whole = f", and the combination is {one.verdict.value}" if is_no_loss else ""
            better = [change for change in one.changes if change.gain > 0]
            cases = [
                JunitCase(
                    case,
                    verdict="skipped" if is_no_loss else "failure",
                    kind="worse",
                    message=f"was {change.was:g}, is {change.now:g}{as_a_whole}",
                )
                for case, change in worse.items()
            ]
            cases += [JunitCase(change.case) for change in better]
            same = one.tally.wins + one.tally.ties + one.tally.losses - len(cases)
            cases += [JunitCase(f"{same} cases as before")] if same > 0 else []
            cases += [
                JunitCase(case, verdict="skipped", message="its content differs")
                for case in one.other_content
            ]
            if one.note is not None:
                cases.append(JunitCase("tests", verdict="skipped", message=one.note))
            yield (
                JunitSuite(
                    one.name,
                    f"{found.set_id} against {found.base_id}",
                    timestamp_of(found.created_at),
                    properties={
                        "verdict": one.verdict.value,
                        "difference": None if one.difference is None else one.difference.value,
                        "p_holm": one.p_holm,
                    },
                ),
                cases,
            )

    return suites_junit(suites(), gates)


def comparison_json(found: SetComparison, gates: Sequence[GateResult] = ()) -> dict[str, Any]:
    """Give the document `evalset-compare/1`."""
    return {
        "schema": COMPARE_SCHEMA,
        "base": {"set_id": found.base_id, "name": found.base_name},
        "this": {"set_id": found.set_id, "name": found.name},
        "significant": SIGNIFICANT,
        **{verdict.value: len(found.of(verdict)) for verdict in Verdict},
        "combinations": [_combination_json(one) for one in found.combinations],
        "agents": [
            {
                "agent": one.agent,
                **_tally_json(one),
                "difference": _difference(one.difference),
                "test": _test(one.test),
            }
            for one in found.agents
        ],
        "added": [_key_json(key) for key in found.added],
        "removed": [_key_json(key) for key in found.removed],
        "packs": [{"pack": slug, "was": was, "now": now} for slug, was, now in found.packs],
        "deployments": list(found.deployments),
        "warnings": list(found.warnings),
        "counted": {
            "base": dict(zip(("counted", "planned"), found.was_counted, strict=True)),
            "this": dict(zip(("counted", "planned"), found.now_counted, strict=True)),
        },
        "gates": [result.as_json() for result in gates],
    }


def _combination_json(one: ComparedCombination) -> dict[str, Any]:
    return {
        **_key_json(one.key),
        "verdict": one.verdict.value,
        **_tally_json(one),
        "difference": _difference(one.difference),
        "test": None if one.test is None else {**test_json(one.test), "p_holm": one.p_holm},
        "changes": [
            {"case": each.case, "was": each.was, "now": each.now, "gain": each.gain}
            for each in one.changes
        ],
        "added_cases": list(one.added),
        "removed_cases": list(one.removed),
        "other_content": list(one.other_content),
        "added_repeats": list(one.repeats_added),
        "removed_repeats": list(one.repeats_removed),
        "counted": {
            "base": dict(zip(("counted", "planned"), one.was_counted, strict=True)),
            "this": dict(zip(("counted", "planned"), one.now_counted, strict=True)),
        },
        "note": one.note,
    }


def _key_json(key: Key) -> dict[str, Any]:
    return {"pack": key[0], "agent": key[1], "model": key[2]}


def _tally_json(one: ComparedCombination | AgentChange) -> dict[str, int]:
    return {"wins": one.tally.wins, "ties": one.tally.ties, "losses": one.tally.losses}


def _difference(difference: Difference | None) -> dict[str, Any] | None:
    return None if difference is None else difference_json(difference)


def _test(test: ExactTest | None) -> dict[str, Any] | None:
    return None if test is None else test_json(test)


# -- tables ------------------------------------------------------------------------------------


def _head(found: SetComparison) -> Section:
    counts = {verdict: len(found.of(verdict)) for verdict in _ORDER}
    rows: list[tuple[Cell, ...]] = [
        (verdict.value, str(count)) for verdict, count in counts.items() if count
    ]
    rows += [("added", str(len(found.added)))] if found.added else []
    rows += [("removed", str(len(found.removed)))] if found.removed else []
    notes = [f"pack {slug}: version {was}, now {now}" for slug, was, now in found.packs]
    notes += [f"agent {name}: another deployment now" for name in found.deployments]
    title = f"{found.name} {found.set_id} less {found.base_name} {found.base_id}"
    return Section(title, ("combinations", ""), tuple(rows), tuple(notes))


def _agents(agents: Sequence[AgentChange]) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple((Name(one.agent), *_numbers(one)) for one in agents)
    columns = ("agent", "difference", "95% interval", "p", "better", "same", "worse")
    return Section("by agent, over what both sets have", columns, rows, tuple(_notes(agents)))


def _combinations(found: Sequence[ComparedCombination], limit: int) -> Section:
    ordered = sorted(found, key=lambda one: _ORDER.index(one.verdict))
    shown = ordered[:limit] if limit else ordered
    rows: list[tuple[Cell, ...]] = []
    for one in shown:
        difference, interval, p, *tally = _numbers(one)
        holm = NONE if one.p_holm is None else p_text(one.p_holm)
        rows.append((Name(one.name), one.verdict.value, difference, interval, p, holm, *tally))
    rest = len(ordered) - len(shown)
    notes = [f"… and {rest} more rows: --limit 0, --json"] if rest else []
    notes.append(f"regressed, improved: p (Holm) below {SIGNIFICANT}; a case is the unit")
    columns = (
        "pack / agent / model", "", "difference", "95% interval", "p", "p (Holm)", "better",
        "same", "worse",
    )  # fmt: skip
    return Section("combinations", columns, tuple(rows), (*notes, *_notes(found)))


def _numbers(one: ComparedCombination | AgentChange) -> tuple[str, ...]:
    difference, test, tally = one.difference, one.test, one.tally
    return (
        NONE if difference is None else signed(difference.value),
        NONE if difference is None else difference_interval(difference),
        NONE if test is None or test.p is None else p_text(test.p),
        str(tally.wins),
        str(tally.ties),
        str(tally.losses),
    )


def _notes(found: Iterable[ComparedCombination | AgentChange]) -> Iterable[str]:
    return dict.fromkeys(
        test_note(one.test) for one in found if one.test is not None and one.test.p is not None
    )


def _changes(found: Sequence[ComparedCombination], limit: int) -> list[Section]:
    every = [(one.name, change) for one in found for change in one.changes]
    every.sort(key=lambda each: (each[1].gain > 0, -abs(each[1].gain)))
    shown = every[:limit] if limit else every
    if not shown:
        return []
    rows = tuple(
        (Name(name), Name(each.case), figure(each.was), figure(each.now), signed(each.gain))
        for name, each in shown
    )
    rest = len(every) - len(shown)
    notes = (f"… and {rest} more cases that changed: --limit 0, --json",) if rest else ()
    columns = ("pack / agent / model", "case", "base", "this set", "gain")
    return [Section("cases that changed, losses first", columns, rows, notes)]


def _only(title: str, keys: Sequence[Key], limit: int) -> Section:
    shown = keys[:limit] if limit else keys
    rows = tuple((Name(" / ".join(filter(None, key))),) for key in shown)
    rest = len(keys) - len(shown)
    return Section(title, ("pack / agent / model",), rows, (f"… and {rest} more",) if rest else ())
