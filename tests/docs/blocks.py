"""The code blocks of the documents: where they stand, what they hold, whether they are run.

A block after `<!-- run -->` is run as it stands. A block whose first line names a file
(`# pack.yaml`) is that file, from where it stands on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.project.checkout import ROOT

DOCUMENTS = tuple(sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]))

_FENCE = re.compile(
    r"(?P<mark><!-- run -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
_NAME = re.compile(r"\A# (\S+\.(?:py|ya?ml|jsonl?|toml))\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a document."""

    document: Path
    line: int
    language: str
    text: str
    is_run: bool

    @property
    def place(self) -> str:
        """For messages and test ids."""
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """The file that it is; None where it is only shown."""
        found = _NAME.match(self.text)
        return found[1] if found else None


@cache
def blocks_of(document: Path) -> tuple[Block, ...]:
    """Every fenced block of a document, in order."""
    text = document.read_text()
    return tuple(
        Block(
            document,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            found["mark"] is not None,
        )
        for found in _FENCE.finditer(text)
    )


def all_blocks(*languages: str) -> list[Block]:
    """Every block of these languages in all documents."""
    return [
        block
        for document in DOCUMENTS
        for block in blocks_of(document)
        if block.language in languages
    ]


def write(folder: Path, block: Block) -> None:
    """Write the file that a block is, below a folder."""
    path = folder / (block.file_name or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text)
