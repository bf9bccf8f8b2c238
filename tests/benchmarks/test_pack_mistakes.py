"""No mistake of a pack hides another, and none is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.benchmarks.pack.check import render_problems
from tests.benchmarks.scoring import opened, problems_of, write_pack

EXACT = "[{type: exact, expected: '{{ answer }}'}]"


def pack_text(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pack.yaml").write_text(text)
    return problems_of(tmp_path)


def test_what_is_wrong_with_the_file_hides_nothing_of_templates_paths_and_cases(
    tmp_path: Path,
) -> None:
    (tmp_path / "cases.jsonl").write_text(
        '{"id": "a", "message": "hi", "answer": "1"}\n'
        '{"id": "a", "message": "hi", "answer": "1"}\n'
        '{"id": "b", "message": "hi", "answer": "x"}\n'
    )
    problems = pack_text(
        tmp_path,
        "schema: pack/v1\n"
        "slug: no slug\n"
        "verson: 1\n"
        "prompt: '{{ mesage }}'\n"
        "cases: cases.jsonl\n"
        "reference: [1]\n"
        "judge: {model: {id: x}}\n"
        "scoring:\n"
        "  validators:\n"
        "    - {type: exactt, expected: x}\n"
        "    - {type: fuzzy, expected: '{{ answr }}', algorithm: rato}\n"
        "    - {type: regex, pattern: '('}\n"
        "    - {type: json_schema, schema_file: nix.json}\n"
        "    - {type: python, run: 'gone.py:f'}\n"
        "    - {type: number, expected: '{{ answer }}'}\n"
        "    - {type: judge, show: [reference]}\n"
        "    - {type: exact, on: stdout, expected: x}\n"
        "  threshold: 3\n",
    )
    found = [
        problem.split("\n")[0].removeprefix(f"{tmp_path}/").split(" ")[0] for problem in problems
    ]
    assert found == [
        *("cases.jsonl:2:", "cases.jsonl:3:", "pack.yaml:1:1", "pack.yaml:2:7", "pack.yaml:3:1"),
        *("pack.yaml:4:9", "pack.yaml:6:12", "pack.yaml:10:14", "pack.yaml:11:31"),
        *("pack.yaml:11:57", "pack.yaml:12:30", "pack.yaml:13:40", "pack.yaml:14:27"),
        *("pack.yaml:16:7", "pack.yaml:18:14"),
    ]


@pytest.mark.parametrize("broken", ["prompt: [x]", "cases: 3", "scoring: none", "messages: [x]"])
def test_nothing_is_said_of_what_stands_in_for_a_part_that_cannot_be_read(
    tmp_path: Path, broken: str
) -> None:
    parts = {"prompt": "prompt: '{{ q }}'", "cases": "cases: [{id: a, q: hi}]"}
    parts["scoring"] = f"scoring: {{validators: {EXACT.replace('answer', 'q')}}}"
    parts[broken.split(":")[0]] = broken
    if "messages" in parts:
        del parts["prompt"]
    problems = pack_text(
        tmp_path, "\n".join(["schema: pack/v1", "slug: s", "version: 1", *parts.values()])
    )
    assert len(problems) == 1


def test_a_fault_of_many_cases_is_counted_and_one_of_the_file_is_no_fault_of_each_case(
    tmp_path: Path,
) -> None:
    cases = [{"id": f"c{number}", "n": f"x{number}"} for number in range(50)]
    problems = problems_of(
        write_pack(
            tmp_path,
            "[{type: regex, pattern: '('}, {type: number, expected: '{{ n }}'},"
            " {type: contains, expected: '{{ n | nofilter }}'},"
            " {type: number, expected: '{{ n | nofilter }}'},"
            " {type: choice, expected: a, options: '{{ n | nofilter }}'}]",
            cases,
            "prompt: hi",
        )
    )
    assert sum("is not a number" in problem for problem in problems) == 10
    assert sum("40 more cases" in problem for problem in problems) == 1
    assert sum("regular expression" in problem for problem in problems) == 1
    assert sum("unknown filter" in problem for problem in problems) == 3
    assert len(problems) == 15


def test_cases_with_the_same_fault_are_one_problem(tmp_path: Path) -> None:
    cases = [{"id": f"c{number}", "n": "x" if number else "1"} for number in range(50)]
    problems = problems_of(
        write_pack(tmp_path, "[{type: number, expected: '{{ n }}'}]", cases, "prompt: hi")
    )
    assert len(problems) == 1
    assert "case 'c1' and 48 more, validator number: the expected value 'x'" in problems[0]


def test_many_cases_without_a_field_are_counted(tmp_path: Path) -> None:
    cases = [{"id": f"c{number}", **({} if number else {"n": "1"})} for number in range(50)]
    problems = problems_of(
        write_pack(tmp_path, "[{type: number, expected: '{{ n }}'}]", cases, "prompt: hi")
    )
    assert len(problems) == 11
    assert sum("39 more cases have no field 'n'" in problem for problem in problems) == 1


def test_paths_and_prompts_that_fail_alike_are_one_problem_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    validator = "[{type: file_tree, expected: '{{ d }}'}]"
    alike = [{"id": f"c{number}", "d": "nix"} for number in range(50)]
    (problem,) = problems_of(write_pack(tmp_path / "alike", validator, alike, "prompt: hi"))
    assert "case 'c0' and 49 more: there is no 'nix'" in problem
    each = [{"id": f"c{number}", "d": f"nix{number}"} for number in range(50)]
    problems = problems_of(write_pack(tmp_path / "each", validator, each, "prompt: hi"))
    assert len(problems) == 11
    assert any("40 more cases have faults of this path" in problem for problem in problems)
    benchmark = opened(
        write_pack(
            tmp_path / "prompts",
            EXACT,
            [{"id": f"c{number}", "answer": 1} for number in range(50)],
            "prompt: '{{ answer | first }}'",
        )
    )
    (problem,) = map(str, render_problems(benchmark, benchmark.load_tasks()))
    assert "case 'c0' and 49 more: the prompt: " in problem
