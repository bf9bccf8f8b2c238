"""One line for each kind; making/inputs.py of the pack made the delivery."""

import sys

EXPECTED = """\
changed data/prices.csv
extra data/prices.csv.orig
missing docs/licence.txt
moved docs/old name.txt -> docs/new name.txt
extra tools/.hidden
changed tools/run.sh
"""
with open("report.txt", encoding="utf-8") as file:
    found = file.read().strip().split("\n")
assert found == EXPECTED.strip().split("\n"), found
print("passed", sys.argv[1])
