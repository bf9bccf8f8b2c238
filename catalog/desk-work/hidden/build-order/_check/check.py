"""The order follows from the rules alone, so there is one right answer."""

import sys

ORDER = """\
firmware-kit glass loader config firmware pictures profile frame rubber panel shell texts manual
wire antenna zip kit
"""
STUCK = ["app", "driver", "poster", "radio"]

with open("order.txt", encoding="utf-8") as file:
    order = file.read().split()
with open("stuck.txt", encoding="utf-8") as file:
    stuck = file.read().split()
assert stuck == STUCK, stuck
assert order == ORDER.split(), order
print("passed", sys.argv[1])
