python3 - <<'PY'
import re
from datetime import datetime, timedelta
from pathlib import Path

WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri"]
STEP = timedelta(minutes=30)


class Person:
    def __init__(self, path):
        lines = path.read_text("utf-8").split("\n")
        self.shift = timedelta(hours=int(lines[0].removeprefix("UTC")))
        self.rules = [line for line in lines[1:] if line]

    def is_free(self, utc):
        local = utc + self.shift
        day, clock = local.strftime("%Y-%m-%d"), local.strftime("%H:%M")
        works = False
        for rule in self.rules:
            kind, *rest = rule.split()
            if kind == "hours":
                first, last = (WEEK.index(name) for name in rest[0].split("-"))
                works = first <= local.weekday() <= last and rest[1] <= clock < rest[3]
            elif kind == "off" and rest[0] == day:
                return False
            elif kind == "every" and rest[0] <= clock < rest[2]:
                return False
            elif kind == "busy" and rest[0] == day and rest[1] <= clock < rest[3]:
                return False
        return works


people = [Person(path) for path in sorted(Path("calendars").glob("*.cal"))]
begin = datetime(2024, 6, 3)
while not all(p.is_free(begin + STEP * n) for p in people for n in range(3)):
    begin += STEP
Path("slot.txt").write_text(begin.strftime("%Y-%m-%d %H:%M\n"), "utf-8")
PY
