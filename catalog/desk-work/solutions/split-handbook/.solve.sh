python3 - <<'PY'
import re
from pathlib import Path

chapters, fence = [("front", [])], None
with open("handbook.md", encoding="utf-8", newline="") as file:
    for line in file:
        mark = re.match("(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None and line.rstrip() == fence:
            fence = None
        elif fence is None and line.startswith("# "):
            name = re.sub("[^a-z0-9]+", "-", line[2:].lower()).strip("-")
            chapters.append((name, []))
        chapters[-1][1].append(line)
Path("chapters").mkdir(exist_ok=True)
for number, (name, lines) in enumerate(chapters):
    Path("chapters", f"{number:02}-{name}.md").write_bytes("".join(lines).encode())
PY
