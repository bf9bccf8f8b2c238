"""Byte by byte."""

import os
import sys

EXPECTED = {
    "a/latin.txt": "t\u00e9l\u00e9, na\u00efve \n\n\u00a3 5\n".encode(),
    "a/mark.csv": "n;m\n1;\u00e4\n".encode(),
    "a/deep/old-mac.txt": b"one\ntwo\nthree\n",
    "wide.txt": "gr\u00fc\u00df\nzwei\n".encode(),
    "fine.txt": "\u20ac 7\n".encode(),
    "empty.txt": b"",
    "no-end.txt": b"last line\n",
    "blob.txt": b"MZ\x00\x01\r\n\xff",
    "script.sh": b"#!/bin/sh\r\necho \xe9\r\n",
    "mixed.CSV": b"x\r\ny",
}
found = {}
for folder, _, names in os.walk("texts"):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            found[os.path.relpath(path, "texts")] = file.read()
assert found == EXPECTED, found
print("passed", sys.argv[1])
