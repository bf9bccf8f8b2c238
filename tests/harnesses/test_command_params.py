"""What `command` accepts, and how words are filled: without a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from steelyard.components.values import Message
from steelyard.config.json_source import read_json
from steelyard.config.validation import problems_of
from steelyard.harnesses.command import CommandParams
from steelyard.harnesses.command.words import FIELDS, fields_of, filled, prompt_of, tail


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "not said what to run"),
        ({"run": ["x"], "script": "y"}, "run and script are both given"),
        ({"run": []}, "at least 1"),
        ({"run": [""]}, "names no program"),
        ({"run": ["a\0b"]}, "pattern"),
        ({"script": ""}, "pattern"),
        ({"run": ["x"], "prompt": "argument"}, "{prompt}"),
        ({"run": ["x", "{prompt}"], "prompt": "file"}, "{prompt_file}"),
        ({"run": ["x"], "env": {"A=B": "c"}}, "no name of a variable"),
        ({"run": ["x"], "env": {"": "c"}}, "no name of a variable"),
        ({"run": ["x"], "answer": {"extract": "("}}, "not a regular expression"),
        ({"run": ["x"], "answer": {"file": "a", "command": ["b"]}}, "not in file and in command"),
        ({"run": ["x"], "timeout_seconds": 0}, "greater than 0"),
        ({"run": ["x"], "allow_exit_codes": []}, "at least 1"),
        ({"run": ["x"], "shel": "bash"}, "Extra inputs"),
    ],
)
def test_what_cannot_be_run_is_refused(params: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CommandParams.model_validate(params)
    assert said in str(caught.value)


def test_one_log_may_be_written_without_a_list() -> None:
    assert CommandParams.model_validate({"run": ["x"], "log": "a.log"}).log == ("a.log",)


def test_what_the_files_hold_is_part_of_what_is_run_and_where_they_lie_is_not(
    tmp_path: Path,
) -> None:
    def dumped(base: Path) -> dict[str, Any]:
        params = CommandParams.model_validate(
            {"run": ["x"], "files": ["a.py", "lib"]}, context={"base_dir": base}
        )
        return params.model_dump(mode="json")

    for base in (tmp_path / "one", tmp_path / "two"):
        (base / "lib/__pycache__").mkdir(parents=True)
        (base / "a.py").write_text("print(1)")
        (base / "lib/b.py").write_text("print(2)")
        (base / "lib/__pycache__/b.pyc").write_text(str(base))
    one, two = tmp_path / "one", tmp_path / "two"
    first = dumped(one)
    assert first == dumped(two)
    assert first["files"] == ["a.py", "lib"]
    (two / "lib/b.py").write_text("print(3)")
    assert dumped(two)["files_sha256"] != first["files_sha256"]
    (two / "lib/b.py").write_text("print(2)")
    assert dumped(two) == first
    (two / "a.py").chmod(0o755)
    assert dumped(two) != first
    (two / "a.py").unlink()
    with pytest.raises(ValidationError, match=r"there is no a\.py"):
        dumped(two)
    with pytest.raises(ValidationError, match="the same name"):
        CommandParams.model_validate(
            {"run": ["x"], "files": ["one/lib", "two/lib"]}, context={"base_dir": tmp_path}
        )


@given(st.text())
def test_what_stands_in_a_value_is_never_replaced(text: str) -> None:
    values = dict.fromkeys(FIELDS, "SECRET") | {"prompt": text}
    assert filled("a {prompt} b", values) == f"a {text} b"


def test_braces_of_others_stay() -> None:
    word = '{print} {} {{x}} {"prompt": 1} ${HOME} {{prompt}} {prompt}'
    assert filled(word, {"prompt": "P"}) == ('{print} {} {{x}} {"prompt": 1} ${HOME} {prompt} P')
    assert fields_of([word, "{model}"]) == {"prompt", "model"}


def test_several_turns_say_who_spoke() -> None:
    turns = [Message("system", "s"), Message("user", "a"), Message("assistant", "b")]
    assert prompt_of(turns, with_system=True) == "s\n\n[user]\na\n\n[assistant]\nb"
    assert prompt_of(turns[:2], with_system=False) == "a"
    assert prompt_of([], with_system=True) == ""
    assert prompt_of(turns[:1], with_system=True) == "s"


def test_the_end_of_a_long_output_is_kept() -> None:
    assert tail(b"abcdef", 6) == "abcdef"
    assert tail(b"abcdef", 2) == "[4 bytes left out]\nef"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"run": ["x"], "script": "y"}, "script"),
        ({"run": [""]}, "run[0]"),
        ({"run": ["x"], "files": ["/", "gone.py"]}, "files[1]"),
        ({"run": ["x"], "prompt": "argument"}, "prompt"),
        ({"run": ["x"], "env": {"A": "", "B=": ""}}, "env.B="),
        ({"run": ["x"], "answer": {"file": "a", "command": ["b"]}}, "answer.command"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words_at_its_field(
    params: dict[str, Any], field: str
) -> None:
    root = read_json(json.dumps(params), "f")
    with pytest.raises(ValidationError) as caught:
        CommandParams.model_validate(params)
    problems = problems_of(caught.value.errors(), root, CommandParams)
    assert [problem.where.field for problem in problems] == [field]
    assert "Value error" not in str(problems[0])
    assert "found" not in problems[0].message
    assert problems[0].remedy


def test_a_missing_file_is_said_beside_a_wrong_pattern() -> None:
    with pytest.raises(ValidationError) as caught:
        CommandParams.model_validate({"run": ["x"], "files": "gone.py", "answer": {"extract": "("}})
    assert caught.value.error_count() == 2
