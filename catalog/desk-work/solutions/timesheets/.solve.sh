python3 - <<'PY'
import re
from pathlib import Path

SHIFT = re.compile(r"(\w+) (\d\d):(\d\d) - (\d\d):(\d\d)(?: break (\d+))?")
rows = []
for path in Path("sheets").glob("*.txt"):
    days, minutes = set(), 0
    for line in path.read_text("utf-8").split("\n"):
        found = SHIFT.fullmatch(line.strip())
        if found is None:
            continue
        begin, end = int(found[2]) * 60 + int(found[3]), int(found[4]) * 60 + int(found[5])
        days.add(found[1])
        minutes += (end - begin) % (24 * 60) - int(found[6] or 0)
    rows.append((path.stem, len(days), minutes))
rows.sort(key=lambda row: row[2], reverse=True)
lines = ["person,days,minutes", *("%s,%d,%d" % row for row in rows)]
Path("hours.csv").write_text("\n".join(lines) + "\n", "utf-8")
PY
