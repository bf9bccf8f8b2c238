python3 - <<'PY'
import re
from pathlib import Path

SITE = Path("site").resolve()


def prose(path):
    fenced = False
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def headings(path):
    for _, line in prose(path):
        if re.match("#+ ", line):
            text = line.lstrip("#").strip().lower().replace(" ", "-")
            yield re.sub("[^a-z0-9-]", "", text)


broken = []
for page in SITE.rglob("*.md"):
    for number, line in prose(page):
        for target in re.findall(r"\[[^\]]*\]\(([^)]*)\)", line):
            if re.match("https?:|mailto:", target):
                continue
            path, _, heading = target.partition("#")
            place = SITE / path[1:] if path.startswith("/") else page.parent / path
            place = page if not path else place.resolve()
            if not place.exists() or (heading and heading not in headings(place)):
                broken.append((str(page.relative_to(SITE)), number, target))
Path("broken.txt").write_text("".join(f"{f}:{n} {t}\n" for f, n, t in sorted(broken)), "utf-8")
PY
