"""A YAML scanner that ends at deep nesting, before that costs time.

Open brackets are read ahead of, and each looks at all before it: 50,000 of them on a line would
take minutes. Imported where YAML is read only.
"""

from __future__ import annotations

from typing import Any, Final

from ruamel.yaml.scanner import Scanner

MAX_OPEN: Final = 1_000
"""Brackets; documents of ours have far fewer, and a scanner that stops here stops at once."""


class TooManyOpen(Exception):
    """More brackets stand open than any document of ours has."""


class BoundedScanner(Scanner):
    """ruamel's scanner, with an end to nesting."""

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
        """Open a bracket.

        Raises:
            TooManyOpen: too many are open.
        """
        if len(self.flow_context) >= MAX_OPEN:
            raise TooManyOpen
        super().fetch_flow_collection_start(TokenClass, to_push)
