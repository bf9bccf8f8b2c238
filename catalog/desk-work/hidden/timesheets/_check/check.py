"""Minutes by hand: amber 480+225+235+435, basil 435+450+240, clove 450+450+470+210."""

import csv
import sys

with open("hours.csv", newline="", encoding="utf-8") as file:
    found = [row for row in csv.reader(file) if row]
assert found == [
    ["person", "days", "minutes"],
    ["clove", "4", "1580"],
    ["amber", "3", "1375"],
    ["basil", "3", "1125"],
], found
print("passed", sys.argv[1])
