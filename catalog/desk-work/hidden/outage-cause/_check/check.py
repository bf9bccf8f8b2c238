"""14:00:21 on a clock 3 minutes behind is 14:03:21, just before the store grows slow."""

import sys

with open("cause.txt", encoding="utf-8") as file:
    found = file.read().strip().removeprefix("logs/")
assert found == "store.log:5", found
print("passed", sys.argv[1])
