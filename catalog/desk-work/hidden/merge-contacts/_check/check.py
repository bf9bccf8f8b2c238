"""Row by row; quoting and line ends do not matter."""

import csv
import sys

EXPECTED = [
    ["email", "name", "city", "phone", "updated"],
    ["ida.moor@mail.example", "Ida Moor", "Vienna", "+4315550101", "2024-02-11"],
    ["kai@dune.example", "Kai Dune", "Bonn", "+43305550105", "2024-01-18"],
    ["lea.stone@mail.example", "Lea Stone-Hill", "Steyr", "+436645550102", "2024-03-05"],
    ["noa@field.example", "Noa Field", "Berlin", "+49305550103", "2022-07-19"],
    ["tom@berg.example", "Tom Berg", "Graz", "+433165550104", "2023-12-01"],
    ["uma@lake.example", "Uma Lake", "Wels", "", "2024-01-05"],
]
with open("merged.csv", newline="", encoding="utf-8") as file:
    found = [row for row in csv.reader(file) if row]
assert found == EXPECTED, found
print("passed", sys.argv[1])
