"""Write more log than anybody reads, then end."""

import sys
from pathlib import Path

line = '{"say": "' + "x" * 1000 + '"}\n'
with Path(sys.argv[1]).open("a") as log:
    for _ in range(60_000):
        log.write(line)
