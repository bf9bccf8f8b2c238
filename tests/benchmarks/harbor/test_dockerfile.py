"""A Dockerfile that only brings files can be done without; any other cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.dockerfile import NeedsImage, PlainImage, read_plain


def plain(tmp_path: Path, text: str) -> PlainImage:
    (tmp_path / "data/sub").mkdir(parents=True, exist_ok=True)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "Dockerfile").write_text(text)
    return read_plain(tmp_path, tmp_path / "Dockerfile")


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("COPY a.txt .", {"a.txt": "a.txt"}),
        ("COPY a.txt ./", {"a.txt": "a.txt"}),
        ("COPY a.txt c.txt", {"a.txt": "c.txt"}),
        ("COPY a.txt /app/", {"a.txt": "a.txt"}),
        ("COPY ./a.txt /app/sub/", {"a.txt": "sub/a.txt"}),
        (
            "COPY --chown=root:root a.txt b.txt \\\n  in/",
            {"a.txt": "in/a.txt", "b.txt": "in/b.txt"},
        ),
        ("COPY *.txt .", {"a.txt": "a.txt", "b.txt": "b.txt"}),
        ("COPY data data", {"data": "data"}),
        ("COPY data/ /app", {"data": "."}),
        ("COPY . .", {".": "."}),
        ("copy data/sub x/y", {"data/sub": "x/y"}),
    ],
)
def test_copies_go_below_the_working_folder(
    tmp_path: Path, text: str, copies: dict[str, str]
) -> None:
    found = plain(tmp_path, f"# syntax\nFROM debian:bookworm-slim\nWORKDIR /app\n{text}\nCMD x\n")
    assert {
        copy.source.relative_to(tmp_path).as_posix(): copy.target for copy in found.copies
    } == copies
    assert found.workdir == "/app"


def test_variables_and_nested_working_folders_are_read(tmp_path: Path) -> None:
    found = plain(
        tmp_path, 'FROM x\nENV A=1 B="two words"\nENV C three words\nWORKDIR /app\nWORKDIR sub\n'
    )
    assert found.env == {"A": "1", "B": "two words", "C": "three words"}
    assert found.workdir == "/app/sub"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RUN make", "has RUN"),
        ("USER agent", "has USER"),
        ("ADD a.txt .", "has ADD"),
        ("FROM other", "several stages"),
        ("COPY --from=x a.txt .", "COPY --from"),
        ("COPY a.txt /etc/", "outside /app"),
        ("COPY ../secret .", "leads out"),
        ("COPY none.txt .", "not there"),
        ("COPY $X .", "a variable"),
        ("COPY 'a.txt .", "cannot be read"),
        ('COPY ["a.txt", "."]', "has `COPY"),
    ],
)
def test_whatever_only_a_build_can_do_needs_the_image(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(NeedsImage, match=words):
        plain(tmp_path, f"FROM debian\nWORKDIR /app\n{text}\n")
