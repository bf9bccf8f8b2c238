python3 - <<'PY'
import heapq

needs = {}
for line in open("targets.txt", encoding="utf-8"):
    if line.startswith("#") or not line.strip():
        continue
    name, _, rest = line.partition(":")
    needs.setdefault(name.strip(), set()).update(rest.split())
for name in {need for found in needs.values() for need in found}:
    needs.setdefault(name, set())
open_needs = {name: set(found) for name, found in needs.items()}
ready = [name for name, found in open_needs.items() if not found]
heapq.heapify(ready)
order = []
while ready:
    name = heapq.heappop(ready)
    order.append(name)
    for other, found in open_needs.items():
        if name in found:
            found.remove(name)
            if not found:
                heapq.heappush(ready, other)
with open("order.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{name}\n" for name in order)
with open("stuck.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{name}\n" for name in sorted(set(needs) - set(order)))
PY
