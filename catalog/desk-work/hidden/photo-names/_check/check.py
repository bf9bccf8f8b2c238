"""Every name with its content."""

import os
import sys

EXPECTED = {
    "20240702-001.jpg": "picture 4\n",
    "20240702-001.meta": "taken: 2024-07-02 23:59:59\n",
    "20240703-001.png": "picture 3\n",
    "20240703-002.jpg": "picture 5\n",
    "20240703-002.meta": "taken: 2024-07-03 15:20:00\n",
    "20240703-003.jpg": "picture 1\n",
    "20240703-003.meta": "camera: C2\ntaken: 2024-07-03 15:20:00\n",
    "20240703-004.jpg": "picture 2\n",
    "20240703-004.meta": "taken: 2024-07-03 18:00:00\ncamera: C2\n",
    "logo.PNG": "picture 6\n",
}
found = {}
for name in os.listdir("photos"):
    with open(os.path.join("photos", name), encoding="utf-8") as file:
        found[name] = file.read()
assert found == EXPECTED, found
print("passed", sys.argv[1])
