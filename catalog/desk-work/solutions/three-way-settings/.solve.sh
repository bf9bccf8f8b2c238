python3 - <<'PY'
import json

NOTHING = object()


def load(name):
    with open(f"{name}.json", encoding="utf-8") as file:
        return json.load(file)


def merge(base, ours, theirs, path):
    if json_equal(ours, theirs) or json_equal(theirs, base):
        return ours
    if json_equal(ours, base):
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        known = base if isinstance(base, dict) else {}
        merged = {}
        for key in {**known, **ours, **theirs}:
            sides = (side.get(key, NOTHING) for side in (known, ours, theirs))
            value = merge(*sides, [*path, key])
            if value is not NOTHING:
                merged[key] = value
        return merged
    conflicts.append(".".join(path))
    return base


def json_equal(one, other):
    if one is NOTHING or other is NOTHING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


conflicts = []
merged = merge(load("base"), load("ours"), load("theirs"), [])
with open("merged.json", "w", encoding="utf-8") as file:
    json.dump(merged, file, indent=2)
with open("conflicts.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{path}\n" for path in sorted(conflicts))
PY
