"""An id that leads nowhere says what it was probably meant to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.registry import Kind, UnusableComponent, find, id_fault


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for pack in ("units", "packs/spelling"):
        (tmp_path / pack).mkdir(parents=True)
        (tmp_path / pack / "pack.yaml").write_text("schema: pack/v1\n")
    (tmp_path / "my_harness.py").write_text("class Mine: ...\nclass Other: ...\n")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        (Kind.HARNESS, "my_harness.py:Mine", "./my_harness.py:Mine"),
        (Kind.HARNESS, "sub/my_harness.py:Mine", "./sub/my_harness.py:Mine"),
        (Kind.HARNESS, "my_harness.py", "./my_harness.py:CLASS"),
        (Kind.HARNESS, "./my_harnes.py:Mine", "./my_harness.py:Mine"),
        (Kind.HARNESS, "Chat", "chat"),
        (Kind.BENCHMARK, "units", "./units"),
        (Kind.BENCHMARK, "packs/spelling", "./packs/spelling"),
        (Kind.BENCHMARK, "./unitz", "./units"),
        (Kind.BENCHMARK, "./pakcs/spelling", "./packs/spelling"),
        (Kind.BENCHMARK, "./packs", "./packs/spelling"),
        (Kind.BENCHMARK, "./packs/speling", "./packs/spelling"),
    ],
)
def test_a_near_miss_is_offered(folder: Path, kind: Kind, name: str, meant: str) -> None:
    fault = id_fault(kind, name, folder)
    assert fault is not None
    assert f"did you mean {meant}?" in fault.remedy


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.HARNESS, "chat"),
        (Kind.HARNESS, "./my_harness.py:Mine"),
        (Kind.HARNESS, "some.package:Mine"),
        (Kind.BENCHMARK, "./units"),
        (Kind.BENCHMARK, "./units/pack.yaml"),
    ],
)
def test_what_leads_somewhere_has_no_fault(folder: Path, kind: Kind, name: str) -> None:
    assert id_fault(kind, name, folder) is None


def test_a_python_file_where_a_pack_is_wanted_is_told_apart(folder: Path) -> None:
    fault = id_fault(Kind.BENCHMARK, "./my_harness.py", folder)
    assert fault is not None
    assert "./my_harness.py:CLASS" in fault.remedy


def test_where_nothing_is_near_the_way_to_make_one_is_said(folder: Path) -> None:
    fault = id_fault(Kind.BENCHMARK, "./quite-something-else", folder)
    assert fault is not None
    assert fault.message == "there is no pack at ./quite-something-else"
    assert "pack init" in fault.remedy


@pytest.mark.parametrize(
    ("name", "remedy"), [("Min", "did you mean Mine?"), ("Zzz", "it has: Mine, Other")]
)
def test_a_class_that_is_missing_names_the_file_as_it_was_written(
    folder: Path, name: str, remedy: str
) -> None:
    with pytest.raises(UnusableComponent) as caught:
        find(Kind.HARNESS, f"./my_harness.py:{name}", base_dir=folder)
    (problem,) = caught.value.problems
    assert problem.message.endswith(f"./my_harness.py has no class {name}")
    assert problem.remedy == remedy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import json\njson.loads('{')\n", "JSONDecodeError"),
        ("\nx = (\n", "SyntaxError: '(' was never closed ("),
        ("\nimport nothing_of_that_name\n", "ModuleNotFoundError"),
        ("\nraise SystemExit(4)\n", "SystemExit: 4"),
    ],
)
def test_a_file_that_cannot_be_imported_names_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "h.py").write_text(text)
    with pytest.raises(UnusableComponent) as caught:
        find(Kind.HARNESS, "./h.py:Mine", base_dir=tmp_path)
    assert said in str(caught.value)
    assert "h.py:2)" in str(caught.value)


@pytest.mark.parametrize("name", ["./" + "x" * 5000, "./a\0b", "./" + "x" * 5000 + ".py:Mine"])
def test_a_name_that_no_file_can_have_is_refused_like_any_other(folder: Path, name: str) -> None:
    for kind in (Kind.BENCHMARK, Kind.HARNESS):
        assert id_fault(kind, name, folder) is not None


def test_an_unreadable_neighbour_is_passed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_file = Path.is_file

    def guarded(path: Path) -> bool:
        if "packs" in path.parts:
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", guarded)
    fault = id_fault(Kind.BENCHMARK, "./unitz", folder)
    assert fault is not None
    assert "./units?" in fault.remedy
