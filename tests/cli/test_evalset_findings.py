"""`evalset scan` and `findings` as people and scripts use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.testing.endpoint import MockEndpoint
from tests.cli.conftest import Run
from tests.evalset import scanner_of_tests
from tests.evalset.living_sets import LivingSet, living_set
from tests.evalset.projects import A_DOLLAR

SCANNERS = Path(scanner_of_tests.__file__)
WORDS = f"{SCANNERS}:Words"


@pytest.fixture
def living(tmp_path: Path, project: Path) -> LivingSet:
    made = living_set(tmp_path)
    made.run_all(harness={"steps": True})
    made.end()
    return made


def scan(steelyard: Run, living: LivingSet, *words: str) -> Any:
    return steelyard("evalset", "scan", str(living.root), *words)


def findings(steelyard: Run, living: LivingSet, *words: str) -> Any:
    return steelyard("evalset", "findings", str(living.root), *words)


def test_a_set_without_scanners_says_how_one_is_named(steelyard: Run, living: LivingSet) -> None:
    ran = scan(steelyard, living)
    assert ran.status == 2
    assert "--scanner reward-hacking" in ran.err


def test_a_scan_prints_what_is_new_and_the_second_nothing(
    steelyard: Run, living: LivingSet
) -> None:
    ran = scan(steelyard, living, "--scanner", WORDS, "--cell", "refunds/base/*")
    assert ran.status == 0
    assert "words: 4 attempts, 4 read now, 4 new findings" in ran.out
    document = scan(steelyard, living, "--scanner", WORDS, "--json").json
    assert document["schema"] == "evalset-scan/1"
    assert (document["attempts"], document["read"], len(document["new"])) == (8, 4, 4)
    assert "0 read now, 0 new findings" in scan(steelyard, living, "--scanner", WORDS).out


def test_a_scanner_that_fails_at_a_record_makes_the_status_1(
    steelyard: Run, living: LivingSet
) -> None:
    ran = scan(steelyard, living, "--scanner", f"{SCANNERS}:FailsAtOne")
    assert ran.status == 1
    assert "failed: fails-at-one: refunds/base/1 t1 #1: RuntimeError: as asked" in ran.err
    assert "4 new findings" in ran.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("instruction-injection", "asks a judge model, and the project names none"),
        ("reward-hackin", "did you mean"),
        ("./nowhere.py:Scanner", "nowhere.py"),
        (f"{SCANNERS}:LengthParams", "is not a scanner"),
    ],
)
def test_what_is_wrong_with_a_scanner_is_said_before_anything_is_read(
    steelyard: Run, living: LivingSet, name: str, said: str
) -> None:
    ran = scan(steelyard, living, "--scanner", WORDS, "--scanner", name)
    assert ran.status == 2
    assert said in ran.err
    assert not living.opened.files.scans.exists()


def test_what_is_wrong_with_a_scanner_is_said_with_its_place(
    steelyard: Run, living: LivingSet, project: Path
) -> None:
    (project / "house.yaml").write_text(
        "schema: scan-rules/1\nname: house\nversion: 1\nrules: [{id: a, severity: extreme}]\n"
    )
    words = ("--scanner", "./house.yaml", "--scanner", "./none.yaml", "--json")
    problems = scan(steelyard, living, *words).json["error"]["problems"]
    places = [(one["file"], one["line"], one["field"]) for one in problems]
    assert ("./house.yaml", 3, "version") in places
    assert ("./house.yaml", 4, "rules[0].severity") in places
    assert places[-1] == (None, None, "--scanner")


def test_findings_are_filtered_and_shown_and_judged(steelyard: Run, living: LivingSet) -> None:
    assert "nothing was scanned yet" in findings(steelyard, living).out
    scan(steelyard, living, "--scanner", WORDS)
    listed = findings(steelyard, living, "--json").json
    assert listed["matching"] == 8
    assert listed["was_scanned"]
    one = listed["findings"][0]
    assert (one["state"], one["is_superseded"], one["evidence"]) == ("open", False, "think")
    some = findings(steelyard, living, "--cell", "refunds/new/*", "--case", "t1", "--json").json
    assert [(f["matrix_key"], f["case"]) for f in some["findings"]] == [
        ("refunds/new/1", "t1"),
        ("refunds/new/2", "t1"),
    ]
    assert findings(steelyard, living, "--severity", "medium", "--json").json["matching"] == 0
    assert findings(steelyard, living, "--scanner", "words", "--json").json["matching"] == 8
    shown = findings(steelyard, living, one["id"][:6])
    assert ">>>think<<<ing" in shown.out
    context = findings(steelyard, living, one["id"], "--json").json["findings"][0]["context"]
    assert (context["span"], context["after"], context["place"]) == ("think", "ing", "message")
    ran = findings(
        steelyard, living, "dismiss", one["id"][:6], "--why", "a \x1b[2Jtest", "--by", "ann"
    )
    assert ran.status == 0
    assert "is dismissed" in ran.out
    assert findings(steelyard, living, "--state", "dismissed", "--json").json["matching"] == 1
    again = findings(steelyard, living, one["id"])
    assert "ann: dismissed: a \\x1b[2Jtest" in again.out
    findings(steelyard, living, "reopen", one["id"], "--why", "no")
    assert findings(steelyard, living, "--state", "dismissed", "--json").json["matching"] == 0


def test_a_secret_in_somebodys_words_is_hidden(
    steelyard: Run, living: LivingSet, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(steelyard, living, "--scanner", WORDS)
    monkeypatch.setenv("A_KEY", "sk-0123456789abcdef")
    model = {"id": "j", "base_url": "http://127.0.0.1:9/v1", "api_key": "${A_KEY}"}
    (project / "steelyard.yaml").write_text(json.dumps({"judge": {"model": model}}))
    one = findings(steelyard, living, "--json").json["findings"][0]["id"]
    findings(steelyard, living, "triage", one, "--why", "it sent sk-0123456789abcdef")
    assert "sk-0123" not in living.opened.files.findings.read_text()
    assert "it sent [redacted]" in findings(steelyard, living, one).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("triage", "abcdef"), "why?"),
        (("dismiss", "--why", "x"), "which finding?"),
        (("dismiss", "abcdef", "--why", "x"), "no finding has an id"),
        (("abcdef",), "no finding has an id"),
        (("--why", "x"), "goes with triage"),
        (("--cell", "nothing"), "no cell matches"),
        (("--scanner", "words"), "no scanner matches"),
    ],
)
def test_what_cannot_be_done_is_refused(
    steelyard: Run, living: LivingSet, words: tuple[str, ...], said: str
) -> None:
    ran = findings(steelyard, living, *words)
    assert ran.status == 2
    assert said in ran.err


def test_one_unknown_id_among_several_judges_none(steelyard: Run, living: LivingSet) -> None:
    scan(steelyard, living, "--scanner", WORDS)
    one = findings(steelyard, living, "--json").json["findings"][0]["id"]
    assert findings(steelyard, living, "triage", one, "zzzzzz", "--why", "x").status == 2
    assert findings(steelyard, living, "--state", "triaged", "--json").json["matching"] == 0


RULES = """\
schema: scan-rules/1
name: ours
rules:
  - id: asks-metadata
    severity: high
    message: the metadata service was asked
    commands: [curl]
"""


def test_a_scanner_that_ships_and_a_file_of_rules_read_real_trajectories(
    steelyard: Run, tmp_path: Path, project: Path
) -> None:
    living = living_set(tmp_path, agents=("base",), repeats=1)
    living.run(0, tasks=1, harness={"id": f"{SCANNERS}:Curls"})
    living.end()
    (project / "rules.yaml").write_text(RULES)
    names = ("--scanner", "sandbox-escape-attempt", "--scanner", "./rules.yaml")
    document = scan(steelyard, living, *names, "--json").json
    found = {one["scanner"]: one for one in document["new"]}
    assert set(found) == {"sandbox-escape-attempt", "ours"}
    assert "169.254.169.254" in found["sandbox-escape-attempt"]["evidence"]
    assert found["ours"]["category"] == "asks-metadata"
    assert scan(steelyard, living, *names, "--json").json["read"] == 0
    (project / "rules.yaml").write_text(RULES.replace("high", "low"))
    again = scan(steelyard, living, *names, "--json").json
    assert [one["scanner"] for one in again["new"]] == ["ours"]
    states = findings(steelyard, living, "--state", "all", "--json").json["findings"]
    assert sum(one["is_superseded"] for one in states) == 1
    (project / "rules.yaml").write_text("schema: scan-rules/1\nname: ours\nrules: 7\n")
    assert scan(steelyard, living, *names).status == 2


# -- judges ------------------------------------------------------------------------------------


def write_judge(project: Path, url: str, **more: Any) -> None:
    judge = {"model": {"id": "judge", "base_url": url, "max_request_retries": 0}}
    document = {"judge": judge, **more}
    (project / "steelyard.yaml").write_text(json.dumps(document))


@pytest.mark.integration
def test_the_projects_judge_is_asked_and_what_it_costs_is_shown_and_held(
    steelyard: Run, tmp_path: Path, project: Path
) -> None:
    living = living_set(tmp_path, begins=False)
    living.begin(budget_usd=3.0)
    living.run_all(harness={"steps": True})
    living.end()
    prices = {"judge": {"input_per_mtok": 0, "output_per_mtok": A_DOLLAR}}
    with MockEndpoint("--text", "yes indeed") as endpoint:
        write_judge(project, endpoint.url, prices=prices)
        ran = scan(steelyard, living, "--scanner", f"{SCANNERS}:Asks", "--json")
    assert ran.status == 4, ran.out + ran.err
    document = ran.json
    assert "budget" in document["stopped"]
    spent = document["spent"]["cost_usd"]
    # Each call costs the same; what was under way when the last dollar went ran to its end.
    each = spent / document["spent"]["requests"]
    assert 3.0 <= spent <= 3.0 + 8 * each
    status = steelyard("evalset", "status", str(living.root), "--json").json
    assert status["budget"] == {
        "spent_usd": spent,
        "known_spent_usd": spent,
        "limit_usd": 3.0,
    }


@pytest.mark.integration
def test_the_judge_is_asked_as_often_as_the_project_says(
    steelyard: Run, living: LivingSet, project: Path
) -> None:
    with MockEndpoint("--text", "yes") as endpoint:
        model = {"id": "judge", "base_url": endpoint.url}
        for samples, calls in ((None, 24), (5, 40)):
            judge = {"model": model} if samples is None else {"model": model, "samples": samples}
            (project / "steelyard.yaml").write_text(json.dumps({"judge": judge}))
            ran = scan(steelyard, living, "--scanner", f"{SCANNERS}:AsksOften", "--json")
            assert ran.status == 0, ran.err
            assert ran.json["spent"]["requests"] == calls
            assert ran.json["read"] == 8  # another number of samples reads anew


@pytest.mark.integration
def test_a_judge_whose_key_is_unset_is_named_before_anything_is_read(
    steelyard: Run, living: LivingSet, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    judge = {"model": {"id": "j", "base_url": "http://127.0.0.1:9/v1", "api_key": "${NO_SUCH_KEY}"}}
    (project / "steelyard.yaml").write_text(json.dumps({"judge": judge}))
    ran = scan(steelyard, living, "--scanner", f"{SCANNERS}:Asks")
    assert ran.status == 2
    assert "NO_SUCH_KEY" in ran.err
    assert not living.opened.files.scans.exists()


@pytest.mark.integration
def test_a_judges_key_is_never_kept(
    steelyard: Run, living: LivingSet, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-judge-0123456789abcdef")
    with MockEndpoint("--text", "yes sk-judge-0123456789abcdef") as endpoint:
        model = {"id": "j", "base_url": endpoint.url, "api_key": "${JUDGE_KEY}"}
        (project / "steelyard.yaml").write_text(json.dumps({"judge": {"model": model}}))
        ran = scan(steelyard, living, "--scanner", f"{SCANNERS}:Asks")
    assert ran.status == 0, ran.err
    assert "8 judge calls" in ran.out
    written = living.opened.files.findings.read_text() + living.opened.files.scans.read_text()
    assert "sk-judge" not in written + ran.out + ran.err
