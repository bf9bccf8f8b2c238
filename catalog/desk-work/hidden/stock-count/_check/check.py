"""At 17:30: bolt-8 400-150+50, bolt-10 120+150, cap 35+4-9 (VOID 9 came later), nut-8 390-105."""

import csv
import sys

with open("wrong.csv", newline="", encoding="utf-8") as file:
    found = [row for row in csv.reader(file) if row]
assert found == [
    ["article", "expected", "counted"],
    ["cap", "30", "32"],
], found
print("passed", sys.argv[1])
