"""Make the inputs that no editor should touch: damaged frames, mixed encodings, a delivery.

`python3 making/inputs.py FOLDER` writes them as `cases/` holds them. Agents never see this file.
"""

import hashlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path


def delivery() -> Iterator[tuple[str, bytes]]:
    """Yield what was listed, and what arrived: two files changed, one lost, one moved, two more."""
    listed = {
        "README.txt": b"Delivery of May\n",
        "data/prices.csv": b"sku;cents\nA1;100\n",
        "data/stock.csv": b"sku;n\nA1;4\n",
        "docs/old name.txt": b"How to install\n",
        "docs/licence.txt": b"All rights of use\n",
        "tools/run.sh": b"#!/bin/sh\necho run\n",
    }
    lines = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in listed.items())
    yield "MANIFEST", "".join(lines).encode()
    yield "README.txt", listed["README.txt"]
    yield "data/prices.csv", b"sku;cents\nA1;110\n"
    yield "data/prices.csv.orig", b"sku;cents\nA1;090\n"
    yield "data/stock.csv", listed["data/stock.csv"]
    yield "docs/new name.txt", listed["docs/old name.txt"]
    yield "tools/run.sh", b"#!/bin/sh\necho run \n"
    yield "tools/.hidden", b"left over\n"


def texts() -> Iterator[tuple[str, bytes]]:
    """Yield files of many encodings and line ends."""
    yield "a/latin.txt", "t\u00e9l\u00e9, na\u00efve \r\n\r\n\u00a3 5\r\n".encode("latin-1")
    yield "a/mark.csv", "\ufeffn;m\r\n1;\u00e4\r\n".encode()
    yield "a/deep/old-mac.txt", b"one\rtwo\rthree\r"
    yield "wide.txt", "\ufeffgr\u00fc\u00df\r\nzwei".encode("utf-16-le")
    yield "fine.txt", "\u20ac 7\n".encode()
    yield "empty.txt", b""
    yield "no-end.txt", b"last line"
    yield "blob.txt", b"MZ\x00\x01\r\n\xff"
    yield "script.sh", b"#!/bin/sh\r\necho \xe9\r\n"
    yield "mixed.CSV", b"x\r\ny"


def frame(kind: int, body: bytes, damage: int = 0) -> bytes:
    """One frame of the bus; `damage` spoils its checksum."""
    core = bytes([len(body), kind]) + body
    return b"\xa5\x5a" + core + bytes([(sum(core) & 0xFF) ^ 0xFF ^ damage])


def reading(time_s: int, sensor: int, hundredths: int, damage: int = 0) -> bytes:
    """A frame with one temperature."""
    return frame(1, struct.pack(">IBh", time_s, sensor, hundredths), damage)


def several(time_s: int, *values: tuple[int, int]) -> bytes:
    """A frame with temperatures of several sensors."""
    return frame(3, struct.pack(">I", time_s) + b"".join(struct.pack(">Bh", *v) for v in values))


def recording() -> bytes:
    """Good frames between noise, a spoilt one, a start that is none, and a cut end."""
    return b"".join(
        [
            b"\x00\x13",
            reading(1000, 1, 2150),
            frame(2, struct.pack(">I", 1005)),
            reading(1010, 2, -325),
            reading(1015, 2, 9999, damage=0x10),
            b"\xa5",
            several(1020, (1, 2175), (2, -0x8000), (3, -4000)),
            b"\xa5\x5a\x07\x01\x00",  # looks like a start; the next frame is within its length
            reading(1035, 2, 5),
            reading(1040, 6, -0x8000),
            b"\x5a\x5a",
            reading(1050, 4, 32767),
            several(1060, (9, 1200)),
            frame(9, b"\xa5\x5a\x01"),  # of an unknown kind
            reading(1061, 5, -1),
            reading(1070, 1, 2200)[:-3],
        ]
    )


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield every input: its path below `cases/`, and its bytes."""
    for name, data in delivery():
        yield f"manifest-check/delivery/{name}", data
    for name, data in texts():
        yield f"mixed-encodings/texts/{name}", data
    yield "sensor-frames/frames.bin", recording()


if __name__ == "__main__":
    for name, data in inputs():
        path = Path(sys.argv[1], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
