"""Play the script on folders with spaces, undated files, ties and bad arguments."""

import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path("rotate.sh").resolve()


def left(names, count, folder_name="back ups"):
    """What the script leaves of these files, and its exit status."""
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer, folder_name)
        folder.mkdir()
        for name in names:
            Path(folder, name).write_text("x")
        ran = subprocess.run(["sh", str(SCRIPT), str(folder), count], cwd=outer, timeout=20)
        return sorted(path.name for path in folder.iterdir()), ran.returncode


dated = [f"shop 2024-01-{day:02}.sql" for day in range(1, 6)]
assert left(dated, "2") == (dated[3:], 0)
assert left(dated, "9") == (dated, 0)
assert left(dated, "0") == ([], 0)
assert left([], "2") == ([], 0)
mixed = ["README", "zz notes.txt", "b-2023-12-31.tar", "a-2024-02-01.tar", "c-2022-05-05.tar"]
assert left(mixed, "1") == (sorted(["README", "zz notes.txt", "a-2024-02-01.tar"]), 0)
# The date decides, not the name; within a day the name does.
ties = ["x-2024-03-01-a.gz", "x-2024-03-01-b.gz", "y-2024-02-28.gz", "-v 2024-02-27.gz"]
assert left(ties, "1") == (["x-2024-03-01-b.gz"], 0)
assert left(ties, "3") == (sorted(ties[:3]), 0)
for bad in ("two", "-1", "", "1.5"):
    assert left(dated, bad) == (dated, 2), bad
with tempfile.TemporaryDirectory() as outer:
    for name in dated:
        Path(outer, name).write_text("x")
    ran = subprocess.run(["sh", str(SCRIPT), "no-such-folder", "1"], cwd=outer, timeout=20)
    assert ran.returncode == 2, ran.returncode
    assert sorted(path.name for path in Path(outer).iterdir()) == dated, "deleted elsewhere"
print("passed", sys.argv[1])
