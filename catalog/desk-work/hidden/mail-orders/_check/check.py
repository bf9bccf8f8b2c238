"""Ada 2+2 rye, 20 rolls halved; the inn 30*2 pretzels; Eve's plan B, as mail 10 says."""

import json
import sys

with open("orders.json", encoding="utf-8") as file:
    found = json.load(file)
assert found == {
    "ada@row.example": {"rye": 4, "roll": 10, "pretzel": 10},
    "ben@hut.example": {"roll": 12},
    "cem@inn.example": {"rye": 4, "pretzel": 60},
    "eve@mill.example": {"pretzel": 4},
}, found
print("passed", sys.argv[1])
