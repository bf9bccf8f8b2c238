"""What is wrong with a pack's files is said all at once, each with its place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.benchmarks.pack.cases import MAX_PROBLEMS
from steelyard.components.extras import install_command
from tests.benchmarks.scoring import opened, problems_of, write_pack

EXACT = "[{type: exact, expected: '{{ answer }}'}]"


def pack_text(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pack.yaml").write_text(text)
    return problems_of(tmp_path)


def test_every_problem_of_a_pack_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    problems = pack_text(
        tmp_path,
        "schema: pack/v1\n"
        "slug: not a slug\n"
        "verzion: 1\n"
        "prompt: hi\n"
        "cases: cases.jsonl\n"
        "limits: {turns: 0, secs: 3}\n"
        "scoring:\n"
        "  validators:\n"
        "    - {type: exakt, expected: a}\n"
        "    - {type: number, expected: 1, tolerancee: 2}\n"
        "    - {type: judge}\n"
        "    - {expected: 1}\n"
        "    - {type: exact}\n"
        "  strategy: best\n",
    )
    text = "\n".join(problems)
    for line, words in {
        2: ["slug"],
        3: ["verzion", "version"],
        6: ["turns", "secs", "seconds"],
        9: ["exakt", "did you mean exact?"],
        10: ["tolerancee", "did you mean tolerance?"],
        11: ["give one of rubric and assertion"],
        12: ["needs a type"],
        13: ["expected is missing"],
        14: ["strategy", "weighted"],
    }.items():
        for word in words:
            assert any(f"pack.yaml:{line}:" in p and word in p for p in problems), (
                line,
                word,
                text,
            )
    assert any("required field version" in p for p in problems)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("prompt: a\nmessages: [{role: user, content: b}]", "in place of prompt"),
        ("description: none", "give a prompt, or messages"),
        ("prompt: a\njudge: {model: {id: x}}", "no validator is of type judge"),
        ("prompt: a\nenvironment: {dockerfile: Dockerfile}", "dockerfile"),
        ("prompt: a\nanswer: {file: a, command: [b]}", "give only one of"),
        ("prompt: a\nanswer: {file: ../a}", "leads out"),
        ("prompt: a\nanswer: {extract: '(a'}", "malformed regular expression"),
        ("prompt: a\nreference: {filez: x}", "filez"),
        ("prompt: a\nreference: {files: nowhere}", "there is no 'nowhere'"),
        ("prompt: a\nworkspace: ../..", "leads out"),
        ("prompt: a\nworkspace: /etc", "leads out"),
        ("prompt: a\nworkspace: pack.yaml", "not a folder"),
        ("prompt: '{{ a.upper() }}'", "may not hold a call"),
        ("prompt: '{{ nope }}'", "'nope', which no case has"),
        ("prompt: |\n  one\n  {{ a b }}\n", "pack.yaml:6:"),
        ("prompt: a\nreference: '{{ attempt }}'", "only prompts see 'attempt'"),
        ("prompt: a\nprompt: b", "written twice"),
        ("prompt: a\nmessages: []", "messages"),
        ("messages: [{role: robot, content: b}]", "role"),
        ("prompt: 5", "prompt"),
    ],
)
def test_fields_that_do_not_fit_are_named(tmp_path: Path, more: str, said: str) -> None:
    problems = problems_of(write_pack(tmp_path, "[{type: exact, expected: x}]", more=more))
    assert any(said in problem for problem in problems), problems
    assert all("pack.yaml:" in problem for problem in problems)


@pytest.mark.parametrize(
    ("validator", "said"),
    [
        ("{type: regex, pattern: '(a'}", "malformed regular expression"),
        ("{type: number, expected: many}", "not a number"),
        ("{type: exact, expected: a, weight: 0}", "all weights are 0"),
        ("{type: exact, expected: a, weight: -1}", "weight"),
        ("{type: exact, expected: a, on: stdout}", "no command validator above"),
        ("{type: exact, expected: a, on: {file: ../x}}", "leads out"),
        ("{type: exact, expected: a, name: 'a b'}", "name"),
        ("{type: exact, expected: a, name: n}, {type: exact, expected: a, name: n}", "named 'n'"),
        ("{type: code, entry_point: f}", "give one of tests and tests_file"),
        ("{type: code, tests_file: nowhere.py}", "there is no 'nowhere.py'"),
        ("{type: command, run: []}", "run"),
        ("{type: command, run: [a], files: ../up}", "leads out"),
        ("{type: choice, expected: a, options: [one]}", "options"),
        ("{type: choice, expected: a, options: one}", "options are a list"),
        ("{type: contains, expected: ''}", "contains the empty one"),
        ("{type: exact, expected: '{{ attempt }}'}", "only prompts see"),
        ("5", "a validator is a mapping"),
    ],
)
def test_validators_that_do_not_fit_are_named(tmp_path: Path, validator: str, said: str) -> None:
    problems = problems_of(write_pack(tmp_path, f"[{validator}]"))
    assert any(said in problem and "pack.yaml:7:" in problem for problem in problems), problems


def test_a_malformed_path_is_said_once(tmp_path: Path) -> None:
    validator = "{type: command, run: [a], files: 'x/{{ a b }}'}"
    assert len(problems_of(write_pack(tmp_path, f"[{validator}]"))) == 1


def test_what_is_no_pack_says_how_to_make_one(tmp_path: Path) -> None:
    assert "pack init" in problems_of(tmp_path / "nowhere")[0]
    assert "has no pack.yaml" in problems_of(tmp_path)[0]
    assert "a pack is a mapping" in pack_text(tmp_path, "")[0]
    assert "pack/v9 is not a format" in pack_text(tmp_path, "schema: pack/v9\n")[0]
    assert "not well-formed YAML" in pack_text(tmp_path, "a: [\n")[0]


# -- cases ---------------------------------------------------------------------------------------


def test_a_case_that_lacks_a_field_is_named_with_its_line(tmp_path: Path) -> None:
    cases = [{"id": "a", "q": "?", "answer": 1}, {"id": "b"}, {"id": "c", "q": "?"}]
    problems = problems_of(write_pack(tmp_path, EXACT, cases))
    assert len(problems) == 3
    assert "cases.jsonl:2" in problems[0]
    assert "'b' has no field 'answer'" in problems[0]
    assert "cases.jsonl:3" in problems[2]
    assert "'b' has no field 'q'" in problems[1]


def lines(tmp_path: Path, *rows: str, more: str = 'prompt: "hi"') -> list[str]:
    root = write_pack(tmp_path, "[{type: exact, expected: a}]", more=more)
    (root / "cases.jsonl").write_text("\n".join(rows) + "\n")
    return problems_of(root)


def test_all_that_is_wrong_with_the_cases_is_said_at_once(tmp_path: Path) -> None:
    problems = lines(
        tmp_path,
        '{"id": "a"}',
        '{"id": "a"}',
        "{nope}",
        "[1]",
        '{"id": true}',
        '{"id": ""}',
        '{"id": 1.5}',
        '{"id": "s", "seed": 1}',
    )
    for number, said in enumerate(
        ["taken by an earlier case", "not well-formed JSON", "is a mapping", "id is True",
         "id is ''", "id is 1.5", "'seed' has the name of"], 2
    ):  # fmt: skip
        assert any(f"cases.jsonl:{number}" in p and said in p for p in problems), (number, said)
    assert len(problems) == 7


def test_more_problems_than_anyone_reads_are_counted(tmp_path: Path) -> None:
    problems = lines(tmp_path, *["{"] * 250)
    assert len(problems) == MAX_PROBLEMS + 1
    assert "150 more" in problems[-1]


def test_an_empty_pack_is_refused(tmp_path: Path) -> None:
    assert "has no cases" in lines(tmp_path, "")[0]


def test_cases_without_ids_are_numbered_but_not_half_of_them(tmp_path: Path) -> None:
    root = write_pack(tmp_path / "all", "[{type: exact, expected: a}]", [{"q": "x"}, {"q": "y"}])
    tasks = opened(root).load_tasks()
    assert [task.id for task in tasks] == ["1", "2"]
    assert [opened(root).task_input(t, attempt=1, seed=0).messages[0].content for t in tasks] == [
        "x",
        "y",
    ]
    assert "1 of 2 cases have no id" in lines(tmp_path / "half", '{"id": 1}', "{}")[0]
    named = lines(tmp_path / "named", "{}", more="prompt: a\nid: name")
    assert "has no 'name'" in named[0]


def test_ids_may_be_anything_that_people_write(tmp_path: Path) -> None:
    ids = ["a/b", "../up", "🙂", "x" * 500, 7, "cases", ".."]
    root = write_pack(tmp_path, "[{type: exact, expected: a}]", [{"id": i, "q": "?"} for i in ids])
    (root / "cases").mkdir()
    benchmark = opened(root)
    tasks = benchmark.load_tasks()
    assert [task.id for task in tasks] == [str(i) for i in ids]
    assert all(not benchmark.task_input(t, attempt=1, seed=0).workspace for t in tasks)


def as_csv(path: Path) -> None:
    path.write_text('id,q,answer\na,"one,\ntwo",1\nb,three,2\n')


def as_yaml(path: Path) -> None:
    path.write_text('- {id: a, q: "one,\\ntwo", answer: "1"}\n- {id: b, q: three, answer: "2"}\n')


def as_json(path: Path) -> None:
    rows = [{"id": "a", "q": "one,\ntwo", "answer": "1"}, {"id": "b", "q": "three", "answer": "2"}]
    path.write_text(json.dumps(rows))


def as_parquet(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {"id": ["a", "b"], "q": ["one,\ntwo", "three"], "answer": ["1", "2"]}
    parquet.write_table(pyarrow.table(columns), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("c.csv", as_csv), ("c.yaml", as_yaml), ("c.json", as_json), ("c.parquet", as_parquet)],
)
def test_every_format_gives_the_same_cases(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    (tmp_path / "pack.yaml").write_text(
        f"schema: pack/v1\nslug: s\nversion: 1\nprompt: '{{{{ q }}}}'\ncases: [{name}]\n"
        "category: answer\nscoring: {validators: [{type: exact, expected: '{{ answer }}'}]}\n"
    )
    tasks = opened(tmp_path).load_tasks()
    assert [dict(task.data) for task in tasks] == [
        {"id": "a", "q": "one,\ntwo", "answer": "1"},
        {"id": "b", "q": "three", "answer": "2"},
    ]
    assert [task.category for task in tasks] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.csv", b"id,q\na\n", "c.csv:2"),
        ("c.csv", b"id,id\na,b\n", "different names"),
        ("c.csv", b'id,q\na,"b\n', "not well-formed CSV"),
        ("c.csv", b"id\n\xff\n", "not UTF-8"),
        ("c.yaml", b"a: 1\n", "are a list"),
        ("c.yaml", b"- [\n", "not well-formed YAML"),
        ("c.json", b"[{]", "c.json:1"),
        ("c.parquet", b"nope", "not well-formed Parquet"),
        ("c.txt", b"", "no known format"),
    ],
)
def test_files_of_cases_that_cannot_be_read_say_why(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    root = write_pack(tmp_path, "[{type: exact, expected: a}]")
    (root / name).write_bytes(content)
    text = (root / "pack.yaml").read_text().replace("cases.jsonl", name)
    (root / "pack.yaml").write_text(text)
    assert any(said in problem for problem in problems_of(root)), problems_of(root)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    root = write_pack(tmp_path, "[{type: exact, expected: a}]")
    (root / "c.parquet").write_bytes(b"")
    text = (root / "pack.yaml").read_text().replace("cases.jsonl", "c.parquet")
    (root / "pack.yaml").write_text(text)
    assert install_command("parquet") in problems_of(root)[0]


@pytest.mark.parametrize(
    ("validator", "case", "said"),
    [
        ("{type: number, expected: '{{ e }}'}", {"e": "many"}, "not a number"),
        ("{type: regex, pattern: '{{ e }}'}", {"e": "(a"}, "malformed regular expression"),
        ("{type: choice, options: '{{ o }}', expected: '{{ e }}'}", {"e": "z", "o": ["x", "y"]},
         "not an option"),
        ("{type: command, run: [a], files: 'hidden/{{ e }}'}", {"e": "none"}, "there is no"),
        ("{type: command, run: [a], files: 'hidden/{{ e }}'}", {"e": "../../x"}, "leads out"),
        ("{type: code, tests_file: '{{ e }}'}", {"e": "/etc/passwd"}, "leads out"),
    ],
)  # fmt: skip
def test_a_case_that_a_validator_cannot_use_is_found_on_loading(
    tmp_path: Path, validator: str, case: dict[str, Any], said: str
) -> None:
    (tmp_path / "hidden/good").mkdir(parents=True)
    fine = {"id": "fine", "q": "?", "e": "1", "o": ["1", "2"]}
    root = write_pack(tmp_path, f"[{validator}]", [fine, {"id": "bad", "q": "?", **case}])
    (root / "1").write_text("")
    (root / "hidden/1").mkdir()
    problems = problems_of(root)
    assert len(problems) == 1
    assert "cases.jsonl:2" in problems[0]
    assert "'bad'" in problems[0]
    assert said in problems[0]


# -- paths ---------------------------------------------------------------------------------------

LINKS = {
    "absolute": "/etc",
    "up": "../..",
    "file": "/etc/passwd",
    "sideways": "../hidden",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS.keys())
def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path: Path, target: str) -> None:
    root = write_pack(
        tmp_path / "p", "[{type: exact, expected: a}]", more="prompt: a\nworkspace: w"
    )
    (root / "hidden").mkdir()
    (root / "w").mkdir()
    (root / "w/link").symlink_to(target)
    assert any("leads out" in problem for problem in problems_of(root))


def test_a_link_through_a_link_is_refused(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path / "p", "[{type: exact, expected: a}]", more="prompt: a\nworkspace: w"
    )
    (root / "w/a/b").mkdir(parents=True)
    (root / "w/down").symlink_to("a/b")
    (root / "w/out").symlink_to("down/../../..")
    assert any("link" in problem for problem in problems_of(root))


def test_folders_and_files_that_are_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    root = write_pack(
        tmp_path / "p", "[{type: exact, expected: a}]", more="prompt: a\nworkspace: w"
    )
    (root / "w").symlink_to(tmp_path / "outside")
    assert any("passes through a link" in problem for problem in problems_of(root))
    (root / "w").unlink()
    (root / "w").mkdir()
    (root / "cases.jsonl").unlink()
    (root / "cases.jsonl").symlink_to("/etc/passwd")
    assert any("link" in problem for problem in problems_of(root))


def test_links_that_stay_inside_are_kept(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path / "p", "[{type: exact, expected: a}]", more="prompt: a\nworkspace: w"
    )
    (root / "w/sub").mkdir(parents=True)
    (root / "w/file").write_text("x")
    (root / "w/sub/link").symlink_to("../file")
    assert len(opened(root).load_tasks()) == 1


def test_a_pipe_in_a_pack_is_refused_and_not_read(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path / "p", "[{type: exact, expected: a}]", more="prompt: a\nworkspace: w"
    )
    (root / "w").mkdir()
    os.mkfifo(root / "w/pipe")
    assert any("neither file, folder nor link" in problem for problem in problems_of(root))


@pytest.mark.parametrize(
    ("more", "validator"),
    [
        ("workspace: w", "{type: command, run: [a], files: w}"),
        ("workspace: w", "{type: command, run: [a], files: w/hidden}"),
        ("workspace: w", "{type: code, tests_file: w/tests.py}"),
        ("workspace: w", "{type: command, run: [a], files: 'w/{{ id }}'}"),
        ("workspace: w\nreference: {files: w/hidden}", "{type: exact, expected: a}"),
        ("workspace: w\nreference: {files: 'w/{{ id }}'}", "{type: exact, expected: a}"),
        ("reference: {files: cases/a}", "{type: exact, expected: a}"),
        ("workspace: w\nreference: {files: '{{ answer }}'}", "{type: exact, expected: a}"),
    ],
)
def test_a_pack_that_would_show_hidden_files_is_refused(
    tmp_path: Path, more: str, validator: str
) -> None:
    for folder in ("w/hidden", "w/a", "cases/a"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "w/tests.py").write_text("")
    cases = [{"id": "a", "answer": "w/hidden"}]
    root = write_pack(tmp_path, f"[{validator}]", cases, more=f"prompt: a\n{more}")
    assert any("the agent would see it" in problem for problem in problems_of(root))


@pytest.mark.parametrize(("said", "is_scored"), [("", False), ("\n  timed_out: score", True)])
def test_a_pack_says_whether_a_timed_out_agents_work_is_scored(
    said: str, is_scored: bool, tmp_path: Path
) -> None:
    write_pack(tmp_path, f"[{{type: exact, expected: a}}]{said}")
    pack = opened(tmp_path)
    (task, *_) = pack.load_tasks()
    assert pack.task_input(task, attempt=1, seed=1).scores_timed_out is is_scored
