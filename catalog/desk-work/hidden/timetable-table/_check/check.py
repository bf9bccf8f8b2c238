"""Every place of the grid."""

import csv
import sys

CLIMBING = "Climbing, closed < 12 y"
EXPECTED = [
    ["Hour", "Hall A", "Hall B", "Hall C"],
    ["9", "Judo & Karate", "Gymnastics", "Gymnastics"],
    ["10", "Judo & Karate", "Dance", CLIMBING],
    ["11", "School sports", "School sports", CLIMBING],
    ["12", "School sports", "School sports", CLIMBING],
    ["13", "Fencing", "", "\u201cOpen hall\u201d"],
]
with open("timetable.csv", newline="", encoding="utf-8") as file:
    found = [row for row in csv.reader(file) if row]
assert found == EXPECTED, found
print("passed", sys.argv[1])
