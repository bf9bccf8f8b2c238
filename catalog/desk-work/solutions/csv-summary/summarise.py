"""Summarise the columns of a CSV file."""

import csv
import io
import json
import re
import sys

NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


def number(text):
    """A number, an int where it has no fraction."""
    return float(text) if "." in text else int(text)


def summary(cells):
    """What is told of one column."""
    filled = [cell for cell in cells if cell]
    found = {"filled": len(filled), "distinct": len(set(filled))}
    if filled and all(NUMBER.fullmatch(cell) for cell in filled):
        values = [number(cell) for cell in filled]
        found |= {"min": min(values), "max": max(values)}
    return found


def main():
    """Read standard input, print the object."""
    text = sys.stdin.buffer.read().decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows:
        print("{}")
        return
    header, *rest = rows
    columns = [[] for _ in header]
    for count, row in enumerate((row for row in rest if row), 1):
        if len(row) > len(header):
            sys.exit(f"row {count} has more cells than the header")
        for column, cell in zip(columns, row, strict=False):
            column.append(cell.strip())
    print(json.dumps({name: summary(c) for name, c in zip(header, columns, strict=True)}))


main()
