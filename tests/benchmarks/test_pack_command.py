"""`steelyard pack`: what a person sees of it, run as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.__main__ import main
from tests.benchmarks.scoring import write_pack
from tests.evalset.projects import write_project

NUMBER = "[{type: number, expected: '{{ answer }}'}]"


class Said:
    """What a command printed, and how it ended."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def pack(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Said:
        status = main(["pack", *map(str, arguments)])
        captured = capsys.readouterr()
        return Said(status, captured.out, captured.err)

    return run


def test_a_new_pack_passes_its_check(tmp_path: Path, pack: Any) -> None:
    folder = tmp_path / "My first pack!"
    made = pack("init", folder)
    assert made.status == 0
    assert "pack check" in made.out
    checked = pack("check", folder, "--json")
    assert checked.status == 0, checked.err
    assert checked.json["passed"] is True
    assert checked.json["slug"] == "My-first-pack"
    assert [case["findings"] for case in checked.json["cases"]] == [[], [], []]
    assert "nothing to mend" in pack("check", folder).out


def test_a_folder_that_holds_something_is_not_written_over(tmp_path: Path, pack: Any) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    said = pack("init", tmp_path)
    assert said.status == 2
    assert "not empty" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_malformed_pack_is_exit_2_with_every_place(tmp_path: Path, pack: Any) -> None:
    root = write_pack(tmp_path, "[{type: numberz, expected: 1}]", more="prompt: a\nslgu: b")
    said = pack("check", root)
    assert said.status == 2
    assert "pack.yaml:5:1" in said.err
    assert "did you mean number?" in said.err
    assert "Traceback" not in said.err


def test_a_wrong_reference_is_exit_1_and_says_which_case(tmp_path: Path, pack: Any) -> None:
    cases = [{"id": "right", "q": "?", "answer": 1}, {"id": "wrong", "q": "?", "answer": 2}]
    root = write_pack(tmp_path, NUMBER, cases, more="prompt: '{{ q }}'\nreference: 1")
    said = pack("check", root, "--json")
    assert said.status == 1
    by_id = {case["id"]: case for case in said.json["cases"]}
    assert by_id["right"]["findings"] == []
    assert "oracle scores 0" in by_id["wrong"]["findings"][0]
    assert "expected 2, found 1" in by_id["wrong"]["findings"][0]


@pytest.mark.integration
def test_a_case_that_doing_nothing_passes_is_exit_1(tmp_path: Path, pack: Any) -> None:
    root = write_pack(tmp_path, "[{type: command, run: ['true']}]")
    said = pack("check", root)
    assert said.status == 1
    assert "doing nothing passes" in said.out
    assert "no reference" in said.out


@pytest.mark.integration
def test_a_reference_that_cannot_be_scored_is_exit_1_and_says_why(
    tmp_path: Path, pack: Any
) -> None:
    root = write_pack(
        tmp_path, "[{type: command, run: [no-such-program]}]", more="prompt: a\nreference: b"
    )
    said = pack("check", root, "--env", "host_process", "--json")
    assert said.status == 1
    assert any("no-such-program" in text for text in said.json["cases"][0]["findings"])


def test_a_prompt_that_fails_to_render_in_one_case_is_exit_2(tmp_path: Path, pack: Any) -> None:
    cases = [{"id": "a", "q": {"x": 1}}, {"id": "b", "q": {}}]
    root = write_pack(tmp_path, "[{type: exact, expected: a}]", cases, more="prompt: '{{ q.x }}.'")
    said = pack("check", root, "--no-play")
    assert said.status == 2
    assert "'b'" in said.err
    assert "no attribute 'x'" in said.err


def test_nothing_is_played_where_it_is_asked_not_to(tmp_path: Path, pack: Any) -> None:
    root = write_pack(tmp_path, "[{type: command, run: [no-such-program]}]")
    said = pack("check", root, "--no-play", "--json")
    assert said.status == 0
    assert said.json["cases"] == []


def test_list_names_every_pack_below_and_what_is_wrong_with_it(tmp_path: Path, pack: Any) -> None:
    write_pack(tmp_path / "a/one", NUMBER, more="prompt: a\nname: The one")
    write_pack(tmp_path / "b", "[]")
    (tmp_path / ".git/p").mkdir(parents=True)
    (tmp_path / ".git/p/pack.yaml").write_text("")
    listed = pack("list", tmp_path, "--json").json["packs"]
    assert [(item["slug"], item["valid"]) for item in listed] == [("small", True), ("?", False)]
    text = pack("list", tmp_path).out
    assert "The one" in text
    assert "malformed" in text
    (tmp_path / "empty").mkdir()
    assert "pack init" in pack("list", tmp_path / "empty").out
    assert pack("list", tmp_path / "nowhere").status == 2


def test_show_gives_a_prompt_and_offers_near_ids(tmp_path: Path, pack: Any) -> None:
    cases = [{"id": "first", "q": "Why?"}, {"id": "second", "q": "\x1b[31mred"}]
    root = write_pack(tmp_path, "[{type: exact, expected: a, weight: 2}]", cases)
    shown = pack("show", root, "--json").json
    assert shown["messages"] == [{"role": "user", "content": "Why?"}]
    assert shown["validators"] == [{"name": "exact", "type": "exact", "weight": 2.0, "gate": False}]
    assert "\x1b" not in pack("show", root, "--case", "second").out
    wrong = pack("show", root, "--case", "secondd")
    assert wrong.status == 2
    assert "did you mean second?" in wrong.err


@pytest.mark.parametrize(
    ("more", "scoring", "field"),
    [
        ("prompt: 'say {{ answer }}'", NUMBER, "prompt"),
        ("prompt: hi\nsystem: 'it is {{ answer }}'", NUMBER, "system"),
        (
            "messages: [{role: user, content: hi}, {role: user, content: '{{ answer | trim }}'}]",
            "[{type: contains, expected: [x, '{{ answer }}']}]",
            "messages[1].content",
        ),
        (
            "prompt: '{{ answer }}'\nreference: '{{ answer }}'",
            "[{type: exact, expected: 1}]",
            "prompt",
        ),
    ],
)
def test_a_prompt_that_gives_the_answer_away_is_warned_of(
    tmp_path: Path, pack: Any, more: str, scoring: str, field: str
) -> None:
    said = pack("check", write_pack(tmp_path, scoring, more=more), "--no-play")
    assert said.status == 0
    assert f"{field}: the agent is shown 'answer'" in said.err


def test_a_prompt_that_shows_options_or_what_is_computed_with_is_not_warned_of(
    tmp_path: Path, pack: Any
) -> None:
    cases = [{"id": "a", "options": ["x", "y"], "answer": "x", "q": "which?"}]
    scoring = (
        "[{type: choice, expected: '{{ answer }}', options: '{{ options }}'},"
        " {type: exact, expected: '{{ q | upper }}'}]"
    )
    more = "prompt: '{{ q }} {{ options | join }}'"
    root = write_pack(tmp_path, scoring, cases, more)
    said = pack("check", root, "--no-play", "--json")
    assert (said.status, said.json["warnings"]) == (0, [])


def test_one_case_is_one_case(tmp_path: Path, pack: Any) -> None:
    root = write_pack(tmp_path, NUMBER, more="prompt: '{{ q }}'")
    assert "1 case, every prompt renders" in pack("check", root, "--no-play").out


def test_a_folder_without_a_pack_file_is_said_to_be_none(
    tmp_path: Path, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    (tmp_path / "bp").mkdir()
    said = pack("check", "bp").err
    assert "bp is not a pack: it has no pack.yaml" in said
    assert "did you mean" not in said
