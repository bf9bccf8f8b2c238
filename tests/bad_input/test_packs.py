"""Packs that cannot be used: a dry run judges their file, loading their cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.bad_input.command import CASES, PACK, assert_refused, steelyard, write_pack

pytestmark = pytest.mark.integration

PLANNED: dict[str, tuple[str | bytes | None, Sequence[str]]] = {
    "no pack.yaml": (None, ["BENCHMARK: ", "bad is not a pack", "steelyard pack init"]),
    "not text": (b"\xff\xfe\x00", ["bad/pack.yaml:1", "not UTF-8 text", "save it as UTF-8"]),
    "broken YAML": ("schema: [\n", ["bad/pack.yaml:2:1", "not well-formed YAML"]),
    "wrong type and unknown field": (
        PACK.replace("version: 1", "version: one").replace("reference", "refrence"),
        [
            "bad/pack.yaml:3:10 version: found the text 'one'", "expected a whole number",
            "bad/pack.yaml:6:1 refrence: unknown field", "did you mean reference?",
            "2 problems; nothing was created",
        ],
    ),
    "a future schema": (
        PACK.replace("pack/v1", "pack/v9"), ["bad/pack.yaml:1:9 schema", "write pack/v1"],
    ),
    "a malformed template": (
        PACK.replace('"{{ q }}"', '"{{ q"'), ["bad/pack.yaml:4:9 prompt: malformed template"],
    ),
    "an unknown validator": (
        PACK.replace("type: exact", "type: exat"), ["bad/pack.yaml:9:", "scoring.validators[0]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PLANNED)
def test_a_pack_file_that_is_wrong_is_refused(project: Path, case: str) -> None:
    text, said = PLANNED[case]
    write_pack(project / "bad")
    file = project / "bad" / "pack.yaml"
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    if "malformed" in case or "validator" in case or "broken" in case:
        # Their remedy is in the message: the parser says what it expected.
        ran = steelyard(project, "run", "./bad", "oracle", "none", status=2)
        assert all(words in ran.err for words in said), ran.err
        assert not (project / "results").exists()
        return
    assert_refused(project, "run", "./bad", "oracle", "none", said=said)


def _same(_pack: Path) -> None: ...


def _gone(pack: Path) -> None:
    (pack / "cases.jsonl").unlink()


def _folder(pack: Path) -> None:
    _gone(pack)
    (pack / "cases.jsonl").mkdir()


def _append(data: bytes) -> Callable[[Path], None]:
    def act(pack: Path) -> None:
        with (pack / "cases.jsonl").open("ab") as file:
            file.write(data)

    return act


def _replace(data: bytes) -> Callable[[Path], object]:
    return lambda pack: (pack / "cases.jsonl").write_bytes(data)


def _prompt(pack: Path) -> None:
    (pack / "pack.yaml").write_text(PACK.replace("{{ q }}", "{{ qq }}"))


LOADED: dict[str, tuple[Callable[[Path], object], Sequence[str], Sequence[str]]] = {
    "unreadable cases": (_gone, (), ["bad/pack.yaml:5:8 cases", "no 'cases.jsonl'"]),
    "a folder as cases": (_folder, (), ["bad/pack.yaml:5:8 cases", "not a file"]),
    "empty cases": (
        _replace(b""), (), ["bad/pack.yaml:5:8 cases", "no cases", "add at least one"],
    ),
    "an id twice": (
        _append(json.dumps(CASES[1]).encode()),
        (),
        ["bad/cases.jsonl:6", "'c1' is taken", "bad/cases.jsonl:2", "ids are unique"],
    ),
    "a broken line": (_append(b'{"id": "c9", "q":\n'), (), ["bad/cases.jsonl:6"]),
    "bytes that are no text": (_replace(b"\xff\xfe\x00\n"), (), ["bad/cases.jsonl", "UTF-8"]),
    "a case that is no mapping": (_append(b'"text"\n'), (), ["bad/cases.jsonl:6", "mapping"]),
    "a case without a field": (
        _append(b'{"id": "c9", "q": "?"}\n'), (), ["bad/cases.jsonl:6", "no field 'a'", "add a"],
    ),
    "an id of the wrong type": (_append(b'{"id": [], "q": "?", "a": "1"}\n'), (),
        ["bad/cases.jsonl:6", "id"]),
    "an unknown variable": (
        _prompt, (), ["bad/pack.yaml:4:9 prompt", "reads 'qq'", "the cases have: a, id, q"],
    ),
    "no tasks after filters": (
        _same, ("--exclude-ids", "c0,c1,c2,c3,c4"),
        ["no tasks are left of 5", "loosen sample_ids, exclude_ids, shard or limit"],
    ),
    "none chosen": (_same, ("--sample-ids", "[]"), ["no tasks are left of 5"]),
}  # fmt: skip


@pytest.mark.parametrize("case", LOADED)
def test_tasks_that_cannot_be_loaded_fail_their_request_with_the_place(
    project: Path, case: str
) -> None:
    spoil, options, said = LOADED[case]
    write_pack(project / "bad")
    spoil(project / "bad")
    ran = steelyard(
        project,
        "run",
        "./bad",
        "oracle",
        "none",
        *options,
        "--json",
        "--progress",
        "none",
        status=1,
    )
    assert ran.json["outcome"] == "failed"
    assert (ran.only["planned"], set(ran.only["outcomes"].values())) == (0, {0})
    for words in said:
        assert words in ran.only["reason"]
        assert words in ran.err  # even without progress


def test_a_request_whose_tasks_cannot_be_loaded_does_not_stop_the_other(project: Path) -> None:
    write_pack(project / "bad", cases=b"")
    (project / "o.yaml").write_text(
        "defaults: {harness: {id: oracle}, model: {id: none}}\nrequests:\n"
        "  - {name: a, benchmark: {id: ./bad}}\n  - {name: b, benchmark: {id: ./p}}\n"
    )
    ran = steelyard(project, "launch", "o.yaml", "--json", status=1)
    assert ran.json["outcome"] == "partial_failure"
    assert [request["outcome"] for request in ran.json["requests"]] == ["failed", "completed"]


def test_an_unknown_task_is_said_before_anything_is_made(project: Path) -> None:
    write_pack(project / "bad")
    ran = steelyard(project, "run", "./bad", "oracle", "none", "--sample-ids", "c9", status=2)
    assert "--sample-ids: there is no task 'c9'" in ran.err
    assert "there are c0, c1, c2, c3, c4" in ran.err
    assert not (project / "results").exists()
