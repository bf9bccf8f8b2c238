from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from steelyard.benchmarks.pack import collected
from steelyard.benchmarks.pack.collected import (
    NotThere,
    TreeTooLarge,
    entries_below,
    kind_of,
    matches_glob,
    opened,
    opened_file,
)
from steelyard.components.issues import IssueCode
from tests.benchmarks.pack.scored import fault_of, scored
from tests.benchmarks.scoring import opened as opened_pack
from tests.benchmarks.scoring import problems_of, write_pack

TEN_MB = 10 * 1024 * 1024


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The agent's working folder, as it was collected; a secret lies beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "work"
    (folder / "out/deep").mkdir(parents=True)
    (folder / "out/a.txt").write_text("Alpha\n")
    (folder / "out/deep/b.json").write_text('{"n": 1.0}')
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def judged(tmp_path: Path, validators: str, work: Path, **case: Any) -> tuple[float, str]:
    return scored(tmp_path, validators, None, case=case, artifacts={".": work})


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("path: out/a.txt", 1),
        ("path: ./out/a.txt", 1),
        ("path: 'out/{{ f }}'", 1),
        ("path: out", 1),
        ("path: out, kind: folder", 1),
        ("path: out, kind: file", 0),
        ("path: out/b.txt", 0),
        ("path: out/a.txt/x", 0),
        ("path: out/b.txt, absent: true", 1),
        ("path: out/a.txt, absent: true", 0),
        ("path: out/a.txt, min_bytes: 6, max_bytes: 6", 1),
        ("path: out/a.txt, min_bytes: 7", 0),
        ("path: out/a.txt, max_bytes: 5", 0),
        ("path: out, min_bytes: 0", 0),
        ("glob: '**/*.json'", 1),
        ("glob: '*.json'", 0),
        ("glob: 'out/*/b.*', kind: file", 1),
        ("glob: 'o*', kind: folder", 1),
        ("glob: 'o*', kind: file", 0),
        ("glob: '**/*.json', min_bytes: 100", 0),
        ("glob: '**/*.py', absent: true", 1),
        ("glob: '**/{{ f }}', absent: true", 0),
    ],
)
def test_file_exists(tmp_path: Path, work: Path, fields: str, value: float) -> None:
    found, reason = judged(tmp_path, f"[{{type: file_exists, {fields}}}]", work, f="a.txt")
    assert found == value
    assert bool(reason) == (value < 1)


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("path: out/a.txt, equals: Alpha", 1),
        ("path: out/a.txt, equals: Alpha, trim: false", 0),
        ("path: out/a.txt, equals: ALPHA, ignore_case: true", 1),
        ("path: out/a.txt, equals: '{{ w }}'", 1),
        ("path: out/a.txt, contains: [Al, pha]", 1),
        ("path: out/a.txt, contains: [Al, beta]", 0),
        ("path: out/a.txt, contains: AL, ignore_case: true", 1),
        ("path: out/a.txt, regex: '^A.p'", 1),
        ("path: out/a.txt, regex: '^B'", 0),
        ("path: out/deep/b.json, json: {n: 1}", 1),
        ("path: out/deep/b.json, json: '{{ j }}'", 1),
        ("path: out/deep/b.json, json: {n: 2}", 0),
        ("path: out/a.txt, json: {n: 2}", 0),
        (f"path: out/a.txt, sha256: {hashlib.sha256(b'Alpha' + b'%c' % 10).hexdigest()}", 1),
        (f"path: out/a.txt, sha256: '{'0' * 64}'", 0),
        ("path: out/a.txt, same_as: hidden/a.txt", 1),
        ("path: run.sh, same_as: hidden/a.txt", 0),
        ("path: out/a.txt, equals: Alpha, max_bytes: 5", 0),
        ("path: out/a.txt, equals: Alpha, encoding: utf-16", 0),
        ("path: out, equals: Alpha", 0),
        ("path: nothing, equals: Alpha", 0),
    ],
)
def test_file_content(tmp_path: Path, work: Path, fields: str, value: float) -> None:
    (tmp_path / "pack/hidden").mkdir(parents=True)
    (tmp_path / "pack/hidden/a.txt").write_text("Alpha\n")
    case = {"w": "Alpha", "j": {"n": 1}}
    found, reason = judged(tmp_path, f"[{{type: file_content, {fields}}}]", work, **case)
    assert found == value
    assert bool(reason) == (value < 1)


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    """A folder of the pack with what the working folder should hold."""
    folder = tmp_path / "pack/expected"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("Alpha\n")
    (folder / "deep/b.json").write_text('{"n": 1.0}')
    return folder


def tree(more: str = "") -> str:
    return f"[{{type: file_tree, path: out, expected: expected{more}}}]"


def test_the_same_tree_passes_whatever_programs_leave_behind(
    tmp_path: Path, work: Path, expected: Path
) -> None:
    (work / "out/__pycache__").mkdir()
    (work / "out/__pycache__/x.pyc").write_text("")
    (work / "out/empty").mkdir()
    assert judged(tmp_path, tree(), work) == (1, "")


def test_every_difference_of_a_tree_is_named(tmp_path: Path, work: Path, expected: Path) -> None:
    (expected / "gone.txt").write_text("")
    (work / "out/more.log").write_text("")
    (work / "out/a.txt").write_text("Omega\n")
    value, reason = judged(tmp_path, tree(), work)
    assert value == 0
    assert reason == "missing: 'gone.txt'; extra: 'more.log'; different: 'a.txt'"
    value, _ = judged(tmp_path, tree(", partial: true"), work)
    assert value == 1 / 4
    value, reason = judged(tmp_path, tree(", partial: true, ignore: ['*.log'], extra: allow"), work)
    assert value == pytest.approx(1 / 3)
    assert "extra" not in reason


def test_modes_and_links_of_a_tree_count(tmp_path: Path, work: Path, expected: Path) -> None:
    (work / "out/a.txt").chmod(0o755)
    assert judged(tmp_path, tree(), work)[0] == 1
    assert judged(tmp_path, tree(", modes: true"), work) == (0, "different: 'a.txt'")
    (expected / "link").symlink_to("a.txt")
    (work / "out/link").symlink_to("deep/b.json")
    assert judged(tmp_path, tree(), work) == (0, "different: 'link'")
    (work / "out/link").unlink()
    (work / "out/link").symlink_to("a.txt")
    assert judged(tmp_path, tree(), work)[0] == 1
    (work / "out/link").unlink()
    (work / "out/link").write_text("Alpha\n")
    assert judged(tmp_path, tree(), work) == (0, "different: 'link'")


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ("path: out, listing: [a.txt, deep/b.json]", 1),
        ("path: out, listing: '{{ names }}'", 1),
        ("path: out, listing: [a.txt]", 0),
        ("path: out, listing: [a.txt], extra: allow", 1),
        ("path: out, listing: [a.txt], ignore: ['deep/**']", 1),
        ("path: out, listing: [a.txt, c.txt], partial: true", 1 / 3),
        ("listing: [run.sh, out/a.txt, out/deep/b.json]", 1),
        ("path: none, listing: []", 1),
        ("path: none, listing: '{{ nothing }}'", 1),
        ("path: out, listing: []", 0),
        ("path: out, listing: [], partial: true", 0),
        ("path: run.sh, listing: [a]", 0),
        ("path: nothing, listing: [a]", 0),
    ],
)
def test_a_listing_names_files_alone(tmp_path: Path, work: Path, fields: str, value: float) -> None:
    (work / "none").mkdir()
    case = {"names": ["a.txt", "deep/b.json"], "nothing": []}
    found, _ = judged(tmp_path, f"[{{type: file_tree, {fields}}}]", work, **case)
    assert found == pytest.approx(value)


def test_no_link_leads_out_of_what_was_collected(tmp_path: Path, work: Path) -> None:
    (work / "absolute").symlink_to(tmp_path / "secret.txt")
    (work / "relative").symlink_to("../secret.txt")
    (work / "up").symlink_to("..")
    (work / "out/chain").symlink_to("../up/secret.txt")
    (work / "circle").symlink_to("circle")
    (work / "inner").symlink_to("out/../out/a.txt")
    for name in ("absolute", "relative", "up/secret.txt", "out/chain", "circle"):
        with pytest.raises(NotThere), opened_file({".": work}, name):
            pass
        content = f"[{{type: file_content, path: {name}, contains: secret}}]"
        exists = f"[{{type: file_exists, path: {name}}}]"
        assert judged(tmp_path, content, work)[0] == 0
        assert judged(tmp_path, exists, work)[0] == 0
    with opened_file({".": work}, "inner") as file:
        assert file.read() == b"Alpha\n"


def test_fifos_sockets_and_devices_are_not_there_and_nobody_waits(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(work / "out/fifo")
    monkeypatch.chdir(work)  # a path of a socket is at most 107 bytes long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("out/s")
    (work / "device").symlink_to("/dev/null")
    for name in ("out/fifo", "out/s", "device"):
        assert judged(tmp_path, f"[{{type: file_exists, path: {name}}}]", work)[0] == 0
        read = f"[{{type: file_content, path: {name}, equals: x}}]"
        assert judged(tmp_path, read, work)[0] == 0
    listed = "[{type: file_tree, path: out, listing: [a.txt, deep/b.json]}]"
    assert judged(tmp_path, listed, work) == (1, "")


def test_names_that_are_not_utf8_are_compared_and_can_be_told(tmp_path: Path, work: Path) -> None:
    (work / os.fsdecode(b"out/\xff\xfe")).write_text("x")
    value, reason = judged(
        tmp_path, "[{type: file_tree, path: out, listing: [a.txt, deep/b.json]}]", work
    )
    assert value == 0
    assert reason == "extra: '\\udcff\\udcfe'"
    reason.encode()
    assert judged(tmp_path, "[{type: file_exists, glob: 'out/??'}]", work)[0] == 1


def test_a_file_that_became_a_folder_or_a_link_while_it_was_looked_at(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor that was looked at is the one that is read."""
    target = work / "out/a.txt"

    def swapped(descriptor: int) -> str:
        if target.is_file() and not target.is_symlink():
            target.unlink()
            target.symlink_to(tmp_path / "secret.txt")
        return kind_of(descriptor)

    monkeypatch.setattr(collected, "kind_of", swapped)
    with opened_file({".": work}, "out/a.txt") as file:
        assert file.read() == b"Alpha\n"
    with pytest.raises(NotThere), opened_file({".": work}, "out/a.txt"):
        pass
    target.unlink()
    target.mkdir()
    with pytest.raises(NotThere, match="not a file"), opened_file({".": work}, "out/a.txt"):
        pass


def test_what_was_collected_may_itself_be_a_link_of_another_provider(
    tmp_path: Path, work: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "secret.txt")
    with opened({"a": link}, "a") as descriptor:
        assert kind_of(descriptor) == "other"
    with pytest.raises(NotThere), opened_file({"a": link}, "a"):
        pass
    with pytest.raises(NotThere), opened({"a": link}, "b"):
        pass


def test_folders_too_deep_or_too_full_are_a_zero(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = work / "out" / "/".join("d" * 120)
    deep.mkdir(parents=True)
    with pytest.raises(TreeTooLarge, match="deeper than 100"):
        list(entries_below({".": work}, "."))
    for kind in ("file_exists, glob: nothing", "file_tree, listing: [a]"):
        value, reason = judged(tmp_path, f"[{{type: {kind}}}]", work)
        assert (value, "deeper than 100" in reason) == (0, True)
    monkeypatch.setattr(collected, "MAX_FILES", 3)
    value, reason = judged(tmp_path, "[{type: file_exists, glob: nothing, absent: true}]", work)
    assert (value, "more than 3" in reason) == (0, True)


@pytest.mark.integration
def test_a_hundred_thousand_files_are_listed_without_holding_a_descriptor_each(
    tmp_path: Path, work: Path
) -> None:
    many = work / "many"
    many.mkdir()
    for number in range(99_000):
        name = many / f"{number}"
        if number % 30_000:
            os.link(many / f"{number - number % 30_000}", name)
        else:
            name.write_text("")
    value, reason = judged(tmp_path, "[{type: file_tree, path: many, listing: ['1', x]}]", work)
    assert value == 0
    assert "and 98989 more" in reason
    assert len(reason) < 1000


@pytest.mark.integration
@pytest.mark.parametrize(
    "fields",
    ["equals: x", "contains: x", "regex: 'x+y'", "json: {a: 1}", f"sha256: '{'0' * 64}'"],
)
def test_ten_megabytes_in_a_file_are_compared(tmp_path: Path, work: Path, fields: str) -> None:
    (work / "big").write_bytes(b"[" * TEN_MB)
    value, reason = judged(tmp_path, f"[{{type: file_content, path: big, {fields}}}]", work)
    assert value == 0
    assert len(reason) < 300
    (work / "big").write_bytes(b"[" * (TEN_MB + 1))
    value, reason = judged(tmp_path, f"[{{type: file_content, path: big, {fields}}}]", work)
    assert (value, "larger" in reason) == (0, True)


def test_a_folder_that_could_not_be_collected_has_no_absent_files(tmp_path: Path) -> None:
    validators = "[{type: file_exists, path: a, absent: true}]"
    value, reason = scored(tmp_path, validators, None, artifacts={})
    assert (value, reason) == (0, "the working folder could not be collected")


@pytest.mark.parametrize(
    ("path", "pattern", "matches"),
    [
        ("a/b/c.txt", "**/*.txt", True),
        ("c.txt", "**/*.txt", True),
        ("a/b/c.txt", "**", True),
        ("a/b/c.txt", "a/**/c.txt", True),
        ("a/c.txt", "a/**/c.txt", True),
        ("a/b/c.txt", "*/c.txt", False),
        (".hidden", "*", True),
        ("a.txt", "[ab].txt", True),
        ("x/" * 40 + "y", "**/x/" * 20 + "z", False),
        ("a" * 200, "*a" * 50 + "b", False),
    ],
)
def test_globs(path: str, pattern: str, matches: bool) -> None:
    assert matches_glob(path, pattern) == matches


@pytest.mark.parametrize(
    ("validators", "collects"),
    [
        ("[{type: file_exists, path: ./a//b}]", ("a/b",)),
        ("[{type: file_exists, path: a, absent: true}]", (".",)),
        ("[{type: file_exists, glob: '*'}]", (".",)),
        ("[{type: file_content, path: 'a/{{ id }}', equals: x}]", (".",)),
        ("[{type: file_tree, path: a, listing: [b]}]", ("a",)),
        ("[{type: file_tree, listing: [b]}]", (".",)),
    ],
)
def test_only_what_is_read_is_collected(
    tmp_path: Path, validators: str, collects: tuple[str, ...]
) -> None:
    benchmark = opened_pack(write_pack(tmp_path, validators))
    (task,) = benchmark.load_tasks()
    assert benchmark.task_input(task, attempt=0, seed=0).collect == collects


def test_a_path_of_a_case_that_leads_out_is_a_fault_of_the_pack(tmp_path: Path) -> None:
    validators = "[{type: file_exists, path: '{{ p }}'}]"
    (problem,) = problems_of(write_pack(tmp_path, validators, [{"id": "a", "q": "?", "p": "../x"}]))
    assert "cases.jsonl:1" in problem
    assert "leads out" in problem


def test_an_expected_file_that_vanished_is_a_fault_not_a_zero(tmp_path: Path, work: Path) -> None:
    hidden = tmp_path / "pack/hidden"
    hidden.mkdir(parents=True)
    (hidden / "a.txt").write_text("x")
    validators = "[{type: file_content, path: out/a.txt, same_as: 'hidden/{{ f }}'}]"
    (problem,) = problems_of(
        write_pack(tmp_path / "pack", validators, [{"id": "a", "q": "?", "f": "b.txt"}])
    )
    assert "there is no 'hidden/b.txt'" in problem
    digest = "[{type: file_content, path: out/a.txt, sha256: '{{ d }}'}]"
    (problem,) = problems_of(
        write_pack(tmp_path / "other", digest, [{"id": "a", "q": "?", "d": "zz"}])
    )
    assert "64 hexadecimal digits" in problem


def test_a_catastrophic_pattern_on_a_file_is_a_fault(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.benchmarks.pack.timebox.CPU_S", 1)
    (work / "x").write_text("a" * 60 + "b")
    fault = fault_of(
        tmp_path,
        "[{type: file_content, path: x, regex: '(a+)+$'}]",
        None,
        artifacts={".": work},
    )
    assert fault.code is IssueCode.SCORER_TIMED_OUT
