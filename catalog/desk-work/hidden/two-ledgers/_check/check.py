"""K1-E1 is 2 days (2024 is a leap year), K3-E4 2 before K2-E2 3; K5-E6 are 4 days apart."""

import csv
import sys

with open("open.csv", newline="", encoding="utf-8") as file:
    found = [row for row in csv.reader(file) if row]
assert found == [
    ["side", "id", "cents"],
    ["bank", "K5", "30000"],
    ["books", "E6", "30000"],
    ["books", "E8", "-4500"],
    ["books", "E12", "120000"],
], found
print("passed", sys.argv[1])
