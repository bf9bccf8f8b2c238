"""`evalset report`: what is printed in each format, whatever texts are in it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.scanner import FindingSeverity
from steelyard.evalset.find_set import sets_below
from steelyard.evalset.finding_values import KeptFinding, Scan
from steelyard.evalset.set_document import SetCell
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.lines import encode
from steelyard.results.records import AttemptRecord
from tests.evalset.sets import (
    GRADE,
    LATENCY,
    PASSED,
    a_record,
    failed,
    fatal,
    verdicts,
    write_set,
)
from tests.results.test_junit import parsed

Run = Callable[..., Any]
GOLDEN = Path(__file__).parent / "golden" / "evalset"
HOSTILE = "</style><script>document.title='run'</script>\x1b[2J\u202e=1+1|`@all`"


def records(cell: SetCell) -> Iterable[AttemptRecord] | None:
    """Two packs, two agents, two models, two repeats; a cell that has not begun, some failures."""
    index, is_new = cell.index, cell.agent.shown == "new"
    if index == 15:
        return None
    found = []
    for number in range(6):
        case = f"case-{number}"
        cost = (0.004 if is_new else 0.001) * (number + 1)
        if number == 5 and index % 4 == 1:
            found.append(fatal(case))
        elif number == 4 and index % 3 == 1:
            found.append(failed(case))
        else:
            passes = (number + index) % 3 == 0 or (is_new and number < 4)
            found.append(a_record(case, passes, cost_usd=cost, agent_s=number + 0.5))
    return found


@pytest.fixture
def nightly(project: Path) -> str:
    write_set(
        project / "results", records, packs=("refunds", "code-fix"), models=("small", "large"),
        repeats=2, outcome="partial_failure", manifest={"gates": {"min_score": 0.5}},
    )  # fmt: skip
    return "nightly"


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_a_report_gives_the_golden_file(form: str, steelyard: Run, nightly: str) -> None:
    ran = steelyard("evalset", "report", nightly, "--format", form)
    assert ran.status == 3  # a gate is not met
    assert ran.out == (GOLDEN / f"report.{form}").read_text()
    assert ran.err == "warning: 1 of 16 cells have not begun\n"


def test_the_document_has_every_cell_and_adds_up(steelyard: Run, nightly: str) -> None:
    document = steelyard("evalset", "report", nightly, "--json").json
    assert document == steelyard("evalset", "report", "latest", "--format", "json").json
    assert document["schema"] == "evalset-report/1"
    assert document["state"] == "partial_failure"
    assert [len(document[name]) for name in ("cells", "combinations", "agents", "wins")] == [
        16, 8, 2, 1,
    ]  # fmt: skip
    for row in (document["whole"], *document["cells"], *document["agents"]):
        assert sum(row["attempts"]["outcomes"].values()) == row["attempts"]["planned"]
        for score in row["scores"]:
            estimate = score["estimate"]
            assert estimate["interval"] or estimate["note"]  # no bare mean
    pending = document["cells"][15]
    assert (pending["run_outcome"], pending["scores"], pending["note"]) == (
        "pending", [], "nothing has begun",
    )  # fmt: skip
    assert pending["attempts"]["planned"] == 6  # as many as in the pack's other cells
    assert [gate["is_met"] for gate in document["gates"]] == [False, True]
    assert document["findings"] is None


def test_csv_has_a_line_for_each_score_and_the_bounds(steelyard: Run, nightly: str) -> None:
    rows = list(csv.DictReader(io.StringIO(steelyard("evalset", "report", nightly,
                                                     "--format", "csv").out)))  # fmt: skip
    assert {row["scope"] for row in rows} == {
        "whole", "agent", "pack", "model", "combination", "cell",
    }  # fmt: skip
    assert sum(row["scope"] == "cell" for row in rows) == 16
    whole = [row for row in rows if row["scope"] == "whole"]
    assert [row["estimator"] for row in whole] == ["avg@2", "pass@2", "pass^2"]
    for row in whole[:1]:  # pass@k is over cases that are whole, bounds are over all
        assert float(row["worst"]) <= float(row["value"]) <= float(row["best"])


def test_junit_has_a_suite_for_each_cell_and_one_for_gates(steelyard: Run, nightly: str) -> None:
    ran = steelyard("evalset", "report", nightly, "--format", "junit")
    suites = {suite.get("name"): suite for suite in parsed([ran.out])}
    assert len(suites) == 17
    assert suites["refunds/base/small/1"].get("tests") == "6"
    assert suites["code-fix/new/large/2"].get("skipped") == "1"
    assert suites["gates"].get("failures") == "1"


def test_a_file_takes_the_report_whole_or_not_at_all(
    steelyard: Run, nightly: str, project: Path
) -> None:
    ran = steelyard("evalset", "report", nightly, "--format", "html", "-o", "report.html")
    assert (ran.status, ran.out) == (3, "")
    assert (project / "report.html").read_text().startswith("<!doctype html>")
    assert not list(project.glob(".report*"))
    ran = steelyard("evalset", "report", nightly, "-o", "nowhere/report.txt")
    assert ran.status == 2
    assert "its folder is not there" in ran.err


def test_a_metric_can_be_chosen_and_a_mistyped_one_is_told(steelyard: Run, project: Path) -> None:
    def both(cell: SetCell) -> list[AttemptRecord]:
        return [
            a_record(f"c{n}", True, metrics={"passed": n > 1, "latency": float(n)})
            for n in range(4)
        ]

    write_set(project / "results", both, metrics=(PASSED, LATENCY))
    row = steelyard("evalset", "report", "latest", "--metric", "latency", "--json").json["whole"]
    assert (row["metric"], row["scores"][0]["estimate"]["value"]) == ("latency", 1.5)
    ran = steelyard("evalset", "report", "latest", "--metric", "latancy")
    assert ran.status == 2
    assert "did you mean 'latency'?" in ran.err


def test_packs_of_other_scales_are_not_put_together(steelyard: Run, project: Path) -> None:
    def either(cell: SetCell) -> list[AttemptRecord]:
        slug, is_new = cell.pack.slug, cell.agent.shown == "new"
        metric = "latency" if slug == "speed" else "passed"
        values: list[Any] = [5.0 - 2 * is_new, 6.0] if slug == "speed" else [is_new, True]
        return [a_record(f"c{n}", v, metric=metric) for n, v in enumerate(values)]

    write_set(
        project / "results", either, packs=("speed", "refunds"),
        metrics={"speed": (LATENCY,), "refunds": (PASSED,)},
    )  # fmt: skip
    document = steelyard("evalset", "report", "latest", "--json").json
    assert document["whole"]["note"] == "the packs' metrics cannot be put together"
    assert document["whole"]["scores"] == []
    assert [row["metric"] for row in document["packs"]] == ["latency", "passed"]
    pair = document["wins"][0]
    assert (pair["wins"], pair["ties"], pair["losses"]) == (2, 2, 0)  # less latency wins
    assert pair["difference"] is None
    assert document["frontier"] == []


def test_shares_of_two_names_are_put_together(steelyard: Run, project: Path) -> None:
    def either(cell: SetCell) -> list[AttemptRecord]:
        metric = "grade" if cell.pack.slug == "essays" else "passed"
        values = [0.5, 0.25] if metric == "grade" else [True, False]
        return [a_record(f"c{n}", v, metric=metric) for n, v in enumerate(values)]

    write_set(
        project / "results", either, packs=("essays", "refunds"), repeats=2,
        metrics={"essays": (GRADE,), "refunds": (PASSED,)},
    )  # fmt: skip
    whole = steelyard("evalset", "report", "latest", "--json").json["whole"]
    assert whole["metric"] == "score"
    assert [s["estimator"] for s in whole["scores"]] == ["avg@2"]  # no pass@k of grades
    assert whole["scores"][0]["estimate"]["value"] == pytest.approx(0.4375)


def test_findings_are_counted_by_agent_where_a_set_was_scanned(
    steelyard: Run, nightly: str, project: Path
) -> None:
    opened = OpenedSet(next(iter(sets_below(project / "results"))))
    found = [
        KeptFinding(
            f"{number:016x}", "tool-misuse", "1", FindingSeverity.HIGH, "secrets", "read a key",
            HOSTILE, 3, 0.9, cell, opened.cells[cell].matrix_key, "case-1", 1, "run", "0" * 32,
            "2026-12-01T09:00:00.000Z",
        )
        for number, cell in enumerate((0, 1, 5))
    ]  # fmt: skip
    opened.files.findings.write_bytes(b"".join(encode(one.as_json()) for one in found))
    document = steelyard("evalset", "report", nightly, "--json").json
    assert {one["agent"]: one["count"] for one in document["findings"]} == {"base": 2, "new": 1}
    table = steelyard("evalset", "report", nightly).out
    rows = [line.split() for line in table.splitlines() if line.startswith("tool-misuse")]
    assert [(row[0], row[1], *row[3:]) for row in rows] == [
        ("tool-misuse", "high", "base", "small", "2"),
        ("tool-misuse", "high", "new", "small", "1"),
    ]
    assert "<h2>Findings</h2>" in steelyard("evalset", "report", nightly, "--format", "html").out


def test_findings_are_counted_by_model_where_a_set_has_models(
    steelyard: Run, project: Path
) -> None:
    root = write_set(project / "results", lambda _cell: [a_record()], models=("small", "large"))
    opened = OpenedSet(root)
    found = [
        KeptFinding(
            f"{cell.index:016x}", "tool-misuse", "1", FindingSeverity.HIGH, "secrets", "read a key",
            "cat key", 3, 0.9, cell.index, cell.matrix_key, "case-1", 1, "run", "0" * 32,
            "2026-12-01T09:00:00.000Z",
        )
        for cell in opened.cells[:2]
    ]  # fmt: skip
    opened.files.findings.write_bytes(b"".join(encode(one.as_json()) for one in found))
    document = steelyard("evalset", "report", "latest", "--json").json
    assert [(one["agent"], one["model"], one["count"]) for one in document["findings"]] == [
        ("base", "large", 1), ("base", "small", 1),
    ]  # fmt: skip
    table = steelyard("evalset", "report", "latest").out
    rows = [line.split() for line in table.splitlines() if line.startswith("tool-misuse")]
    assert [row[3:] for row in rows] == [["base", "large", "1"], ["base", "small", "1"]]


def test_a_scan_that_had_nothing_to_read_does_not_pass_for_a_clean_one(
    steelyard: Run, project: Path
) -> None:
    opened = OpenedSet(write_set(project / "results", lambda _cell: [a_record()]))
    scans = [
        Scan(cell.index, "case-1", 1, "0" * 32, {"tool-misuse": "1"}, is_silent=cell.index == 1)
        for cell in opened.cells
    ]
    opened.files.scans.write_bytes(b"".join(encode(one.as_json()) for one in scans))
    document = steelyard("evalset", "report", "latest", "--json").json
    assert (document["findings"], document["scanned"]) == ([], {"attempts": 2, "silent": 1})
    said = "1 of 2 attempts without a call or text that can be read: nothing could be found there"
    for form in ("table", "markdown", "html"):
        assert said in steelyard("evalset", "report", "latest", "--format", form).out


# -- the page ------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Notes every tag, and every attribute that could lead out of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.leading: list[tuple[str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.leading += [
            (name, value or "")
            for name, value in attrs
            if name.startswith("on") or name in {"src", "href", "xlink:href", "action", "style"}
        ]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def hostile(project: Path) -> str:
    write_set(
        project / "results",
        verdicts({HOSTILE: {HOSTILE: [True, False], "b": [False, "fatal"], "c": [True, True]},
                  "new": {HOSTILE: [True, True], "b": [True, True], "c": [True, True]}}),
        packs=(f"p{HOSTILE}",), agents=(HOSTILE, "new"), models=(f"m{HOSTILE}", "n"), repeats=2,
        name="hostile", manifest={"name": HOSTILE},
    )  # fmt: skip
    return "hostile"


def test_a_page_needs_nothing_from_outside_and_escapes_everything(
    steelyard: Run, hostile: str
) -> None:
    html = steelyard("evalset", "report", hostile, "--format", "html").out
    page = _Page()
    page.feed(html)
    assert page.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "div",
        "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "br", "svg", "line",
        "circle", "polyline", "text", "figure", "figcaption", "details", "summary",
    }  # fmt: skip
    assert page.leading == []
    assert "url(" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "<script>document.title='run'</script>" in "".join(page.text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;; style-src &#x27;sha256-")


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "junit", "json"])
def test_no_format_lets_hostile_texts_act(form: str, steelyard: Run, hostile: str) -> None:
    out = steelyard("evalset", "report", hostile, "--format", form, "--limit", "0").out
    assert "\x1b" not in out
    if form == "junit":
        parsed([out])
    elif form == "json":
        json.loads(out)
    elif form == "markdown":
        assert "<script>" not in re.sub(r"`[^`\n]*`", "", out)
        assert "@all" not in re.sub(r"`[^`\n]*`", "", out)
    elif form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(out)) for cell in row]
        assert not [cell for cell in cells if cell[:1] in "=@+" and cell]


@pytest.mark.integration
def test_a_browser_shows_the_page_under_its_policy(
    steelyard: Run, hostile: str, project: Path
) -> None:
    steelyard("evalset", "report", hostile, "--format", "html", "-o", "page.html")
    ran = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={project / 'profile'}", "--enable-logging=stderr",
            "--v=0", "--dump-dom", (project / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    # What a policy refuses, and every fault of a page, is said on its console.
    assert "CONSOLE" not in ran.stderr
    assert "<title>run</title>" not in ran.stdout
    assert ran.stdout.count("<svg") > 10
