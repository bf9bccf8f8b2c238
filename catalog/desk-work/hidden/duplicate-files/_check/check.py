"""What is a file, what a link, and where the links lead."""

import os
import sys

SAME, REPORT = "same text, seven times\n", "# Report\n\nNothing to report.\n"
FILES = {
    "a.txt": SAME,
    "deep/only.txt": "only here\n",
    "x/one/report.md": REPORT,
    "x/near.md": "# Report\n\nNothing to report!\n",
    "empty-1": "",
    "empty-2": "",
}
LINKS = {
    "b.txt": "a.txt",
    "deep/er/a.txt": "../../a.txt",
    "deep/copy of a.txt": "../a.txt",
    "x/report-final.md": "one/report.md",
}
files, links = {}, {}
for folder, _, names in os.walk("archive"):
    for name in names:
        path = os.path.join(folder, name)
        relative = os.path.relpath(path, "archive")
        if os.path.islink(path):
            links[relative] = os.readlink(path).removeprefix("./")
        else:
            with open(path, encoding="utf-8") as file:
                files[relative] = file.read()
assert files == FILES, files
assert links == LINKS, links
with open("saved.txt", encoding="utf-8") as file:
    saved = file.read().strip()
assert saved == str(3 * len(SAME) + len(REPORT)), saved
print("passed", sys.argv[1])
