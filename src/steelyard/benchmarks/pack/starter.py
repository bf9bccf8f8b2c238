"""The pack that `pack init` writes: small, commented, and right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from steelyard.benchmarks.pack.schema import PACK_FILE
from steelyard.config.errors import BadInput, Where

_PACK: Final = """\
# A pack: a benchmark written as files. `steelyard pack check .` says what is wrong with it.
schema: pack/v1
slug: {slug}
version: 1                    # count it up when a change makes old scores incomparable
name: {name}
description: Say in a line what it measures.

# A Jinja2 template; the fields of a case are its variables. An unknown one is an error.
prompt: |
  {{{{ question }}}}
  Answer with the number alone.

cases: cases.jsonl            # or .csv, .yaml, .parquet; a list of files; or the cases themselves
category: area                # the field that groups the cases in reports
reference: "{{{{ answer }}}}"     # what `oracle` answers: the ceiling

scoring:
  validators:
    # The last number in the answer must be the expected one. Others: exact, one_of, contains,
    # regex, choice, command (a program's exit code), code (Python under given tests).
    - {{type: number, expected: "{{{{ answer }}}}"}}
  threshold: 1.0              # `correct` from this score on; without it, `score` is reported
"""
_CASES: Final = """\
{"id": "apples", "area": "sums", "question": "What is 17 apples and 25 apples?", "answer": 42}
{"id": "train", "area": "rates", "question": "A train goes 150 km in 2 hours. How many km/h is that?", "answer": 75}
{"id": "change", "area": "money", "question": "You pay 8.35 with a note of 10. How much comes back?", "answer": 1.65}
"""  # noqa: E501 — a line is a case


def write_starter(folder: Path) -> list[Path]:
    """Write the starter pack into a folder that is new or empty; give the files.

    Raises:
        BadInput: the folder holds something already, or cannot be written.
    """
    name = folder.resolve().name
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80].strip("-") or "my-pack"
    title = slug.replace("-", " ").capitalize()
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise BadInput(
                "the folder is not empty", where=Where(str(folder)), remedy="name a new one"
            )
        folder.mkdir(parents=True, exist_ok=True)
        pack, cases = folder / PACK_FILE, folder / "cases.jsonl"
        pack.write_text(_PACK.format(slug=slug, name=title), "utf-8")
        cases.write_text(_CASES, "utf-8")
    except OSError as error:
        raise BadInput(
            f"it cannot be written: {error.strerror}", where=Where(str(folder))
        ) from error
    return [pack, cases]
