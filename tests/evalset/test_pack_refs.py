"""Pack refs: every form, no match, two matches, and what is surely absent."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest

from steelyard.benchmarks.pack.versions import new_version
from steelyard.components.catalog import catalog_pack
from steelyard.config.errors import BadInput, Where
from steelyard.evalset.pack_refs import Packs, resolve_pack
from steelyard.evalset.project import read_project
from steelyard.evalset.set_document import PinnedPack
from tests.evalset.projects import write_pack


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "steelyard.yaml").write_text("packs: ['packs/*']")
    write_pack(tmp_path / "packs" / "refunds", version=3)
    write_pack(tmp_path / "packs" / "tickets")
    return tmp_path


def found(project: Path, ref: str) -> PinnedPack:
    packs = Packs(read_project(environ={}, cwd=project).packs)
    return resolve_pack(ref, packs, project, Where("set.yaml", 4, 5))


def refused(project: Path, ref: str) -> str:
    with pytest.raises(BadInput) as raised:
        found(project, ref)
    assert raised.value.problems[0].where == Where("set.yaml", 4, 5)
    return str(raised.value)


@pytest.mark.parametrize(
    "ref",
    ["refunds", "refunds@3", "refunds@v3", "my-team/refunds", "my-team/refunds@3", "a/b/refunds@v3",
     "./packs/refunds", "packs/refunds", " refunds ", "./packs/refunds/pack.yaml",
     "catalog/refunds", "catalog/refunds@3"],
)  # fmt: skip
def test_every_form_leads_to_the_projects_pack(project: Path, ref: str) -> None:
    pack = found(project, ref)
    assert (pack.ref, pack.slug, pack.version) == (ref, "refunds", 3)
    assert pack.path == str(project / "packs" / "refunds")
    assert re.fullmatch("[0-9a-f]{64}", pack.digest)


def test_an_absolute_path_and_a_uuid_lead_there_too(project: Path) -> None:
    pack = found(project, str(project / "packs" / "refunds"))
    assert UUID(pack.uuid).version == 5
    for ref in (pack.uuid, pack.uuid.upper()):
        assert found(project, ref).path == pack.path


def test_the_uuid_is_that_of_content_and_version_wherever_the_pack_lies(project: Path) -> None:
    here = found(project, "refunds")
    elsewhere = write_pack(project / "elsewhere" / "refunds", version=3)
    assert found(project, str(elsewhere)).uuid == here.uuid
    (elsewhere / "notes.txt").write_text("more")
    assert found(project, str(elsewhere)).uuid != here.uuid
    write_pack(elsewhere, version=4)
    (elsewhere / "notes.txt").unlink()
    assert found(project, str(elsewhere)).uuid != here.uuid


def test_the_catalog_is_used_in_place_where_the_project_has_no_such_pack(project: Path) -> None:
    pack = found(project, "catalog/code-review")
    assert pack.path == str(catalog_pack("code-review"))
    assert found(project, pack.uuid).path == pack.path
    assert list((project / "packs").iterdir()) == [
        path for path in (project / "packs").iterdir() if path.name in ("refunds", "tickets")
    ]


def test_the_projects_own_pack_comes_before_the_catalogs(project: Path) -> None:
    own = write_pack(project / "packs" / "code-review", version=9)
    assert found(project, "catalog/code-review").path == str(own)
    assert found(project, "catalog/code-review@1").path == str(catalog_pack("code-review"))


@pytest.mark.parametrize("text", ["slug: [", "schema: pack/v1\nversion: 1", "7", ""])
def test_an_own_pack_that_may_be_it_is_an_error_and_no_fall_through(
    project: Path, text: str
) -> None:
    (project / "packs" / "broken").mkdir()
    (project / "packs" / "broken" / "pack.yaml").write_text(text)
    said = refused(project, "catalog/code-review")
    assert "cannot be told" in said
    assert "broken/pack.yaml" in said
    assert found(project, "catalog/refunds").slug == "refunds"


def test_an_own_pack_that_is_malformed_is_an_error_and_no_fall_through(project: Path) -> None:
    own = write_pack(project / "packs" / "code-review")
    (own / "pack.yaml").write_text("schema: pack/v1\nslug: code-review\nversion: 1\n")
    with pytest.raises(BadInput) as raised:
        found(project, "catalog/code-review")
    assert all("code-review/pack.yaml" in str(one.where.file) for one in raised.value.problems)


def test_an_own_pack_whose_folder_is_gone_is_an_error_and_no_fall_through(project: Path) -> None:
    (project / "steelyard.yaml").write_text("packs: [packs/refunds, packs/gone]")
    said = refused(project, "catalog/code-review")
    assert "there is no pack at packs/gone" in said
    assert "steelyard.yaml:1:24" in said


def test_an_own_pack_that_is_surely_another_is_no_obstacle(project: Path) -> None:
    (project / "packs" / "tickets" / "pack.yaml").write_text(
        "schema: pack/v1\nslug: tickets\nversion: 1\nnonsense: true\n"
    )
    assert found(project, "catalog/code-review").path == str(catalog_pack("code-review"))


@pytest.mark.parametrize(
    ("ref", "said", "remedy"),
    [
        ("refund", "the project has no pack 'refund'", "did you mean refunds?"),
        ("refunds@4", "the pack refunds has no version 4", "there is refunds@3"),
        ("code-review", "the project has no pack 'code-review'", "write catalog/code-review"),
        ("catalog/code-reviw", "neither the project nor the catalog", "catalog/code-review?"),
        ("catalog/code-review@7", "is of version 1, not 7", "write catalog/code-review@1"),
        ("./packs/refnds", "there is no pack at ./packs/refnds", "did you mean ./packs/refunds?"),
        ("refunds@", "is no pack ref", "write a UUID, slug"),
        ("refunds@three", "is no pack ref", "write a UUID, slug"),
        ("../", "not a pack", "pack"),
        ("00000000-0000-0000-0000-000000000000", "no pack has a version with the id", "pack list"),
    ],
)
def test_no_match_names_what_is_near(project: Path, ref: str, said: str, remedy: str) -> None:
    message = refused(project, ref)
    assert said in message
    assert remedy in message


def test_two_packs_of_one_slug_are_both_listed(project: Path) -> None:
    other = write_pack(project / "packs" / "refunds-2", version=4)
    text = (other / "pack.yaml").read_text().replace("refunds-2", "refunds")
    (other / "pack.yaml").write_text(text)
    said = refused(project, "refunds")
    assert str(other) in said
    assert str(project / "packs" / "refunds") in said
    assert "refunds@3 or refunds@4" in said
    assert found(project, "refunds@4").path == str(other)


def test_two_packs_of_one_version_are_both_listed(project: Path) -> None:
    write_pack(project / "more" / "refunds", version=3)
    (project / "steelyard.yaml").write_text("packs: ['packs/*', more/refunds]")
    for ref in ("refunds", "refunds@3", "catalog/refunds"):
        said = refused(project, ref)
        assert str(project / "more" / "refunds") in said
        assert str(project / "packs" / "refunds") in said


def test_a_folder_and_a_slug_that_differ_are_two_matches(project: Path) -> None:
    write_pack(project / "team" / "refunds", version=7)
    said = refused(project, "team/refunds")
    assert "is named by 2" in said
    assert found(project, "./team/refunds").version == 7


def test_a_pack_that_is_named_twice_is_one(project: Path) -> None:
    (project / "steelyard.yaml").write_text("packs: ['packs/*', packs/refunds, ./packs/refunds/]")
    assert found(project, "refunds").version == 3


def test_kept_versions_stay_findable_and_the_slug_means_the_pack_itself(project: Path) -> None:
    before = found(project, "refunds")
    (project / "steelyard.yaml").write_text("packs: [packs/refunds]")
    new_version(project / "packs" / "refunds")
    assert found(project, "refunds").version == 4
    kept = found(project, "refunds@3")
    assert (kept.uuid, kept.digest) == (before.uuid, before.digest)
    assert found(project, before.uuid).path == kept.path


@pytest.mark.parametrize("cases", [[], "none.jsonl"])
def test_a_pack_without_cases_is_refused(project: Path, cases: object) -> None:
    file = project / "packs" / "refunds" / "pack.yaml"
    written = re.sub(r'"cases": \[.*?\]', f'"cases": {cases!r}'.replace("'", '"'), file.read_text())
    file.write_text(written)
    with pytest.raises(BadInput) as raised:
        found(project, "refunds")
    assert "refunds/pack.yaml" in str(raised.value.problems[0].where.file)


@pytest.mark.parametrize("ref", ["a\0b", "../\0", "x" * 5000, "/" + "x" * 5000, "\ud800", "@", "/"])
def test_what_no_file_can_be_called_is_refused_all_the_same(project: Path, ref: str) -> None:
    refused(project, ref)


def test_a_far_name_is_not_offered_and_an_empty_pattern_is_named(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text('packs: ["pcks/*"]\n')
    own = read_project(cwd=tmp_path, environ={}).packs
    with pytest.raises(BadInput) as raised:
        Packs(own).resolve("refunds", tmp_path)
    first, second = raised.value.problems
    assert "did you mean" not in str(first.remedy)
    assert "no folder with a pack.yaml matches 'pcks/*'" in second.message
    assert Packs(own).resolve("catalog/code-review", tmp_path).pinned.slug == "code-review"
