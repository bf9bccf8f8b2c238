"""Odd questions in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.evalset.exporting import Export
from steelyard.evalset.querying import QueryRefused, ask
from steelyard.evalset.set_reader import OpenedSet
from tests.evalset.sets import verdicts, write_set


@pytest.fixture
def rows(tmp_path: Path) -> Export:
    root = write_set(tmp_path, verdicts({"base": {"c": [True]}, "new": {"c": [False]}}))
    return Export(OpenedSet(root))


@pytest.mark.parametrize("query", ["", "  ", ";", "-- nothing"])
def test_no_query_is_refused(rows: Export, query: str) -> None:
    with pytest.raises(QueryRefused, match="no query"):
        ask(rows, query)


def test_columns_of_one_name_are_told_apart(rows: Export) -> None:
    answer = ask(rows, 'SELECT 1 AS "a", 2 AS "a", 3 AS "a_2", 4 AS "a"')
    assert answer.columns == ("a", "a_2", "a_2_2", "a_3")
    assert answer.rows == [(1, 2, 3, 4)]
