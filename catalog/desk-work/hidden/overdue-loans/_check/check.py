"""Another library, and days at the edges."""

import sqlite3
import sys

# As in schema.sql, which may have been changed.
SCHEMA = """
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL, born_on TEXT NOT NULL);
CREATE TABLE loans (id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members (id),
    title TEXT NOT NULL, lent_on TEXT NOT NULL, returned_on TEXT);
CREATE TABLE renewals (loan_id INTEGER NOT NULL REFERENCES loans (id), renewed_on TEXT NOT NULL);
"""
with open("query.sql", encoding="utf-8") as file:
    query = file.read().strip().removesuffix(";")


def listed(members, loans, renewals, today):
    """The query's rows on a library of its own."""
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    base.executescript(SCHEMA)
    base.executemany("INSERT INTO members VALUES (?, ?, ?)", members)
    base.executemany("INSERT INTO loans VALUES (?, ?, ?, ?, ?)", loans)
    base.executemany("INSERT INTO renewals VALUES (?, ?)", renewals)
    rows = [dict(row) for row in base.execute(query, {"today": today})]
    assert all(list(row) == ["name", "books", "days", "fee_cents"] for row in rows), rows
    return [tuple(row.values()) for row in rows]


MEMBERS = [
    (1, "Zoe", "1970-01-01"), (2, "Abe", "2006-03-15"), (3, "Bea", "2006-03-16"),
    (4, "Abe", "1990-05-05"), (5, "Cyd", "1999-09-09"), (6, "Dov", "1960-12-31"),
]  # fmt: skip
LOANS = [
    (1, 1, "a", "2024-02-15", None),  # due on 14 March: 1 day
    (2, 1, "b", "2023-12-01", None),  # renewed twice, the later one counts: due on 2 March, 13 days
    (3, 2, "c", "2023-01-01", None),  # eighteen today: pays, at most 500
    (4, 3, "d", "2023-01-01", None),  # eighteen tomorrow: free
    (5, 4, "e", "2024-02-14", None),  # another member of the same name: 2 days
    (6, 5, "f", "2024-02-16", None),  # due today: not overdue
    (7, 6, "g", "2023-11-11", "2024-03-14"),
]
RENEWALS = [(2, "2024-02-03"), (2, "2023-12-28"), (7, "2023-12-01")]
found = listed(MEMBERS, LOANS, RENEWALS, "2024-03-15")
days = 439 - 28  # from 1 January 2023 to 15 March 2024
assert found == [
    ("Abe", 1, days, 500), ("Zoe", 2, 13, 280), ("Abe", 1, 2, 40), ("Bea", 1, days, 0)
], found  # fmt: skip
assert all(type(value) is int for row in found for value in row[1:]), found
assert listed(MEMBERS, [], [], "2024-03-15") == []
print("passed", sys.argv[1])
