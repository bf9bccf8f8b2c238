"""`evalset submit --dry-run`: what is shown of cells, attempts and cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.evalset.projects import agent, write_manifest, write_project

Run = Callable[..., Any]

PRICES = {"m": {"input_per_mtok": 0, "output_per_mtok": 500_000}}


def chat(name: str, **params: Any) -> dict[str, Any]:
    model = {"id": "m", "base_url": "http://127.0.0.1:9/v1", "params": params}
    return {**agent(name, "chat"), "model": model}


def dry_run(steelyard: Run, *options: str) -> Any:
    return steelyard("evalset", "submit", "set.yaml", "--dry-run", *options)


def test_each_cell_and_the_total_against_the_budget(steelyard: Run, project: Path) -> None:
    write_project(project, agent("nothing", "nop"), chat("asks", max_tokens=2), prices=PRICES)
    write_manifest(project, "nothing", "asks", limits={"budget_usd": 2})
    before = sorted(project.rglob("*"))
    ran = dry_run(steelyard)
    assert ran.status == 0
    assert ran.out.splitlines() == [
        "nightly: 2 cells to run",
        "cell         pack  model  environment   tasks  attempts  cost",
        "p/nothing/1  p@1   none   host_process      3         3  $0",
        "p/asks/1     p@1   m      host_process      3         3  <=$3.0000",
        "",
        "2 cells, 6 tasks, 6 attempts",
        "cost: at most $3.0000; budget $2",
        "  p by nothing: no model is called (1 cell)",
        "  p by asks with m: no earlier run to go by: the prompts' size, and 2 tokens of answer "
        "(model.params) (1 cell)",
        "nothing was made",
    ]
    assert "more than the budget" in ran.err
    assert sorted(project.rglob("*")) == before


def test_what_is_unknown_stays_out_of_the_total(steelyard: Run, project: Path) -> None:
    write_project(project, chat("asks", max_tokens=2), chat("open"), prices=PRICES)
    write_manifest(project, "asks", "open")
    lines = dry_run(steelyard).out.splitlines()
    assert "cost: at most $3.0000 for 1 cell, unknown for 1; no budget" in lines
    document = dry_run(steelyard, "--json").json
    assert (document["schema"], document["cost_usd"]) == ("evalset-plan/1", None)
    assert (document["cells_of_unknown_cost"], document["over_budget"]) == (1, False)
    first, second = document["cells"]
    assert (first["tasks"], first["attempts"], first["cost"]["basis"]) == (3, 3, "bounded")
    assert (second["cost"]["usd"], second["cost"]["basis"]) == (None, "unknown")


def test_many_reasons_are_counted_not_listed(steelyard: Run, project: Path) -> None:
    names = [f"agent-{number}" for number in range(30)]
    write_project(project, *(agent(name, "nop") for name in names))
    write_manifest(project, *names)
    lines = dry_run(steelyard).out.splitlines()
    assert sum(" by agent-" in line for line in lines) == 20
    assert "  and 10 more; --json says what the cost of each cell rests on" in lines


def test_what_nobody_can_have_meant_is_warned_of(steelyard: Run, project: Path) -> None:
    write_project(project, agent("nothing", "nop"), packs=["packs/p", "pcks/*"])
    write_manifest(project, "nothing", packs=["p", "p@1"], gates={"min_score": 70})
    said = " ".join(dry_run(steelyard).err.split())
    assert "no folder with a pack.yaml matches 'pcks/*'" in said
    assert "'p' and 'p@1' are the same pack: each of its cases is run and paid twice" in said
    assert "gates.min_score is 70, and " in said
    assert "of 'p' lies from 0 to 1: it cannot be met" in said
    document = steelyard("evalset", "submit", "set.yaml", "--dry-run", "--json").json
    assert len(document["warnings"]) == 4
    write_project(project, agent("nothing", "nop"))
    write_manifest(project, "nothing", gates={"min_score": 1})
    assert "warning" not in dry_run(steelyard).err
