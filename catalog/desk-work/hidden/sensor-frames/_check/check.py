"""What making/inputs.py of the pack put into the recording, but for what is damaged."""

import sys

EXPECTED = """\
time,sensor,celsius
1000,1,21.50
1010,2,-3.25
1020,1,21.75
1020,3,-40.00
1035,2,0.05
1050,4,327.67
1060,9,12.00
1061,5,-0.01
"""
with open("readings.csv", encoding="utf-8") as file:
    found = file.read().strip().split("\n")
assert found == EXPECTED.strip().split("\n"), found
print("passed", sys.argv[1])
