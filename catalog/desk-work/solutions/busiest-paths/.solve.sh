python3 - <<'PY'
import re
from collections import Counter

LINE = re.compile(r'(\S+) \S+ \S+ \[[^]]*\] "\S+ (\S+) [^"]*" (\d+) (\d+|-) "[^"]*" "([^"]*)"')
rows = [LINE.match(line).groups() for line in open("access.log", encoding="utf-8")]
robots = {
    address
    for address, path, _, _, agent in rows
    if path.partition("?")[0] == "/robots.txt" or "bot" in agent.lower()
}
totals = Counter()
for address, path, status, size, _ in rows:
    if address not in robots and status.startswith("2") and size != "-":
        totals[path.partition("?")[0].rstrip("/") or "/"] += int(size)
with open("top.csv", "w", encoding="utf-8") as file:
    file.write("path,bytes\n")
    file.writelines(f"{path},{size}\n" for path, size in totals.most_common(3))
PY
