"""`evalset export` and `evalset sql`: every row, in every format, and nothing beside."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # it has no stubs
import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.values import NO_USAGE
from steelyard.evalset.exporting import BATCH_ROWS, Export, csv_parts
from steelyard.evalset.row_columns import column_types
from steelyard.evalset.rows import Row, rows_of
from steelyard.evalset.safe_csv import safe_cell
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.records import AttemptRecord, Timing
from tests.evalset.sets import PASSED, a_record, failed, fatal, write_set

Run = Callable[..., Any]
FORMULA = '=HYPERLINK("http://x","y")\n\'\u2028🦀,'
FLAGGED = {"path": "tasks/f/attempt-1/artifacts/key.txt", "sha256": "0" * 64, "flagged": True}
QUALITY = {
    "name": "quality", "kind": "scalar", "higher_is_better": True, "bounds": None,
    "on_failure": None,
}  # fmt: skip


def records(cell: SetCell) -> list[AttemptRecord]:
    trace = {"path": "tasks/c/attempt-1/trajectory.json", "sha256": "1" * 64}
    return [
        a_record(FORMULA, True, metrics={"passed": True, "quality": -1.5}, trajectory=trace),
        a_record("b", False, metrics={"passed": False, "quality": 2.0, "undeclared": 7}),
        failed("c", code=IssueCode.TURN_LIMIT),
        fatal("d"),
        a_record("e", True, cost_usd=None, category="-sums"),
        a_record("f", True, artifacts=(FLAGGED,)),
    ]


@pytest.fixture
def nightly(project: Path) -> OpenedSet:
    root = write_set(
        project / "results", records, agents=("base", "+new"), models=("small", "large"),
        metrics=(PASSED, QUALITY), repeats=2,
    )  # fmt: skip
    return OpenedSet(root)


def kept(opened: OpenedSet) -> list[Row]:
    return [row for row in rows_of(opened) if not row.is_flagged]


def test_json_lines_hold_every_field_as_it_is(steelyard: Run, nightly: OpenedSet) -> None:
    ran = steelyard("evalset", "export", "latest", "--format", "jsonl")
    found = [json.loads(line) for line in ran.out.split("\n") if line]
    assert ran.out == steelyard("evalset", "export", "latest", "--json").out
    assert len(found) == 8 * 5
    first = found[0]
    assert first["case"] == FORMULA
    assert first["metrics"] == {"passed": True, "quality": -1.5}
    assert first["trace_path"].startswith("cells/0000-refunds-base-small-1/")
    assert {name: first[name] for name in ("pack", "agent", "model", "repeat", "duration_s")} == {
        "pack": "refunds", "agent": "base", "model": "small", "repeat": 1, "duration_s": 1.5,
    }  # fmt: skip
    by_case = {row["case"]: row for row in found[:5]}
    assert [(by_case[c]["score"], by_case[c]["verdict"]) for c in "bcde"] == [
        (0.0, "fail"), (0.0, "fail"), (None, None), (1.0, "pass"),
    ]  # fmt: skip
    assert by_case["c"]["issue_codes"] == ["turn_limit"]
    assert by_case["e"]["cost_usd"] is None
    assert "8 rows left out: a secret stands in a kept file" in ran.err


def test_rows_with_a_secret_come_only_when_asked_for(steelyard: Run, nightly: OpenedSet) -> None:
    ran = steelyard("evalset", "export", "latest", "--format", "jsonl", "--with-flagged")
    found = [json.loads(line) for line in ran.out.split("\n") if line]
    assert (len(found), ran.err) == (48, "")
    assert sum(row["is_flagged"] for row in found) == 8


def test_csv_is_read_back_and_starts_no_formula(steelyard: Run, nightly: OpenedSet) -> None:
    text = steelyard("evalset", "export", "latest").out
    found = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(found[0]) == list(column_types(["passed", "quality"]))
    assert len(found) == 40
    rows = kept(nightly)
    assert found[0]["case"] == f"'{FORMULA}"
    assert {row["agent"] for row in found} == {"base", "'+new"}
    assert found[0]["metric_quality"] == "-1.5"  # a number is no formula
    assert json.loads(found[1]["metrics"]) == dict(rows[1].metrics)
    assert found[3]["score"] == ""
    risky = [
        cell
        for row in found
        for name, cell in row.items()
        if cell[:1] in "=+-@" and cell and name not in {"metric_quality"}
    ]
    assert risky == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1", "'=1"), ("  =1", "'  =1"), ("-x", "'-x"), ("@a", "'@a"), ("\tx", "'\tx"),
        ("\rx", "'\rx"), ("＝1", "'＝1"), ("a=1", "a=1"), (-1.5, -1.5), (None, ""),
        (True, "true"), (0, 0), ("", ""),
    ],
)  # fmt: skip
def test_what_a_cell_becomes(value: object, written: object) -> None:
    assert safe_cell(value) == written


def test_parquet_has_types_and_the_texts_as_they_are(
    steelyard: Run, nightly: OpenedSet, project: Path
) -> None:
    ran = steelyard("evalset", "export", "latest", "--format", "parquet", "-o", "rows.parquet")
    assert (ran.status, ran.out) == (0, "")
    assert "40 rows in rows.parquet" in ran.err
    table = pq.read_table(project / "rows.parquet")
    assert table.num_rows == 40
    found = table.to_pylist()
    rows = kept(nightly)
    assert [one["case"] for one in found] == [row.case for row in rows]
    assert [one["score"] for one in found] == [row.score for row in rows]
    assert [one["metric_quality"] for one in found] == [row.metrics.get("quality") for row in rows]
    assert str(table.schema.field("seed").type) == "int64"
    frame = pd.read_parquet(project / "rows.parquet")
    assert frame.groupby("agent")["score"].mean().round(6).to_dict() == {"base": 0.5, "+new": 0.5}


def test_parquet_needs_a_file(steelyard: Run, nightly: OpenedSet) -> None:
    ran = steelyard("evalset", "export", "latest", "--format", "parquet")
    assert ran.status == 2
    assert "-o FILE" in ran.err


def test_rows_stream_in_batches(nightly: OpenedSet) -> None:
    export = Export(nightly)
    parts = csv_parts(export)
    next(parts)  # the titles: no row has been read for them
    assert export.rows == 0
    next(parts)
    assert 0 < export.rows <= BATCH_ROWS


def test_a_cell_that_cannot_be_read_is_named_and_the_rest_come(
    steelyard: Run, nightly: OpenedSet
) -> None:
    run = nightly.run_dir(nightly.cells[0])
    assert run is not None
    (run / "run.json").write_text("{}")
    ran = steelyard("evalset", "export", "latest", "--format", "jsonl")
    assert ran.out.count("\n") == 35  # U+2028 ends no line of JSON
    assert "left out, cannot be read: refunds/base/small/1" in ran.err


# -- SQL -----------------------------------------------------------------------------------------


def test_rows_are_asked_in_sql(steelyard: Run, nightly: OpenedSet) -> None:
    query = (
        "select agent, model, count(*) as n, avg(score) as mean from rows group by all order by all"
    )
    ran = steelyard("evalset", "sql", "latest", query, "--json")
    assert ran.json == {
        "schema": "evalset-sql/1",
        "columns": ["agent", "model", "n", "mean"],
        "rows": [
            {"agent": agent, "model": model, "n": 10, "mean": 0.5}
            for agent in ("+new", "base")
            for model in ("large", "small")
        ],
    }
    table = steelyard("evalset", "sql", "latest", query).out.splitlines()
    assert table[0].split() == ["agent", "model", "n", "mean"]
    text = steelyard("evalset", "sql", "latest", query, "--format", "csv").out
    assert text.splitlines()[1] == "'+new,large,10,0.5"


def test_a_metric_has_a_column_of_its_own(steelyard: Run, nightly: OpenedSet) -> None:
    query = "select min(metric_quality) as low, max(metric_quality) as high from rows"
    assert steelyard("evalset", "sql", "latest", query, "--json").json["rows"] == [
        {"low": -1.5, "high": 2.0}
    ]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{file}')",
        "select * from '{file}'",
        "select * from read_text('{file}')",
        "copy rows to '{file}.out'",
        "copy (select 1) to '{file}.out' (format parquet)",
        "attach '{file}.db' as other",
        "export database '{file}.out'",
        "install httpfs",
        "load httpfs",
        "select * from read_json('http://127.0.0.1:9/x.json')",
        "set enable_external_access = true",
        "reset lock_configuration",
        "set temp_directory = '{file}.tmp'",
        "select * from given",
        "select * from table_of_python",
        "call duckdb_no_such_thing()",
    ],
)
def test_a_query_reaches_no_file_no_network_and_no_setting(
    query: str, steelyard: Run, nightly: OpenedSet, tmp_path: Path
) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,SECRET\n")
    table_of_python = pd.DataFrame({"a": [1]})
    ran = steelyard("evalset", "sql", "latest", query.format(file=file))
    assert len(table_of_python) == 1
    assert ran.status == 2
    assert "SECRET" not in ran.out + ran.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("secret")) == [
        "secret.csv"
    ]


def test_a_mistake_in_a_query_is_said_with_its_place(steelyard: Run, nightly: OpenedSet) -> None:
    ran = steelyard("evalset", "sql", "latest", "select agnt from rows")
    assert ran.status == 2
    assert "agnt" in ran.err
    assert "DESCRIBE rows" in ran.err


@pytest.mark.parametrize(
    ("module", "command", "extra"),
    [
        ("duckdb", ("sql", "latest", "select 1"), "warehouse"),
        ("pyarrow.parquet", ("export", "latest", "--format", "parquet", "-o", "x"), "parquet"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command(
    module: str, command: tuple[str, ...], extra: str, steelyard: Run, nightly: OpenedSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, module, None)
    ran = steelyard("evalset", *command)
    assert ran.status == 2
    assert f"{extra}.txt" in ran.err


def test_the_documented_query_gives_the_reports_figures(steelyard: Run, project: Path) -> None:
    def each(cell: SetCell) -> list[AttemptRecord]:
        waited = [replace(a_record().timing, agent_s=n + cell.index, waited_s=3.0 * n)
                  for n in range(6)]  # fmt: skip
        return [
            *(a_record(f"c{n}", n % 2 == 0, timing=waited[n]) for n in range(4)),
            replace(fatal("c4"), timing=waited[5]),
            a_record("c5", None, outcome=Outcome.CANCELLED, timing=waited[4]),
            a_record("c6", None, outcome=Outcome.SKIPPED_BUDGET, executions=0, timing=Timing(),
                     usage=NO_USAGE),
        ]  # fmt: skip

    write_set(project / "results", each, repeats=2)
    page = (Path(__file__).parents[2] / "docs" / "eval-set-reports.md").read_text()
    block = page.split("```sql\n")[1].split("```")[0].replace("'rows.parquet'", "rows")
    query = block[block.index("select") :]
    asked = steelyard("evalset", "sql", "latest", query, "--json").json["rows"]
    told = steelyard("evalset", "report", "latest", "--json").json["combinations"]
    assert [one["agent"] for one in asked] == [one["agent"] for one in told]
    for ours, theirs in zip(asked, told, strict=True):
        assert ours["score"] == pytest.approx(theirs["scores"][0]["estimate"]["value"])
        assert ours["usd"] == pytest.approx(theirs["cost_usd"])
        assert ours["p95_s"] == pytest.approx(theirs["duration_s"]["p95"])
