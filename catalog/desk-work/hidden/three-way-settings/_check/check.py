"""Compare as data; true and 1 are not the same."""

import json
import sys

MERGED = {
    "name": "depot",
    "port": 8080,
    "tags": ["a", "b", "c"],
    "limits": {"cpu": 4, "memory": 1024},
    "mail": {"host": "mx2.example", "tls": True},
    "cache": {"kind": "memory", "size": 64},
    "debug": None,
    "queue": {"depth": 10},
    "zone": "eu",
}
with open("merged.json", encoding="utf-8") as file:
    found = json.load(file)
assert json.dumps(found, sort_keys=True) == json.dumps(MERGED, sort_keys=True), found
with open("conflicts.txt", encoding="utf-8") as file:
    conflicts = file.read().split()
assert conflicts == ["cache", "port", "queue.host"], conflicts
print("passed", sys.argv[1])
