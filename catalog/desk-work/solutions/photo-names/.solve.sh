python3 - <<'PY'
import re
from collections import Counter
from pathlib import Path

folder = Path("photos")
pictures = []
for path in folder.iterdir():
    if path.suffix == ".meta":
        continue
    meta = path.with_suffix(".meta")
    if meta.exists():
        taken = re.sub(r"\D", "", re.search(r"^taken: (.*)$", meta.read_text(), re.M)[1])
    else:
        found = re.match(r"IMG_(\d{8})_(\d{6})", path.name)
        taken = found[1] + found[2] if found else None
    if taken:
        pictures.append((taken, path.name, path, meta if meta.exists() else None))
moves, count = [], Counter()
for taken, _, path, meta in sorted(pictures, key=lambda one: one[:2]):
    count[taken[:8]] += 1
    stem = f"{taken[:8]}-{count[taken[:8]]:03}"
    suffix = path.suffix.lower().replace(".jpeg", ".jpg")
    moves.append((path, f"{stem}{suffix}"))
    if meta:
        moves.append((meta, f"{stem}.meta"))
# By way of names that nobody has: an old name can be another one's new name.
for number, (path, _) in enumerate(moves):
    path.rename(folder / f"moving.{number}.tmp")
for number, (_, name) in enumerate(moves):
    (folder / f"moving.{number}.tmp").rename(folder / name)
PY
