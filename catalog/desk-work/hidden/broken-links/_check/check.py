"""The list, line by line."""

import sys

EXPECTED = """\
guide/games/go.md:5 ./../rules.md#fees
guide/games/go.md:5 /start.md
guide/rules.md:3 games/chess.md
guide/rules.md:9 #what-was-allowed
imprint.md:4 /img/desk.txt
index.md:4 /about/map.md
index.md:8 #news
"""
with open("broken.txt", encoding="utf-8") as file:
    found = file.read().strip().split("\n")
assert found == EXPECTED.strip().split("\n"), found
print("passed", sys.argv[1])
