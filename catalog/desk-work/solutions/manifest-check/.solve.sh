python3 - <<'PY'
import hashlib
from pathlib import Path

ROOT = Path("delivery")
listed = {}
for line in (ROOT / "MANIFEST").read_text("utf-8").split("\n"):
    if line:
        digest, path = line.split("  ", 1)
        listed[path] = digest
there = {
    str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in ROOT.rglob("*")
    if path.is_file() and path != ROOT / "MANIFEST"
}
lines = [(p, f"changed {p}") for p in listed if p in there and there[p] != listed[p]]
extra = {there[p]: p for p in sorted(there.keys() - listed.keys(), reverse=True)}
for path in sorted(listed.keys() - there.keys()):
    new = extra.pop(listed[path], None)
    lines.append((path, f"moved {path} -> {new}" if new else f"missing {path}"))
lines += [(path, f"extra {path}") for path in extra.values()]
Path("report.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)), "utf-8")
PY
