python3 - <<'PY'
import struct

with open("frames.bin", "rb") as file:
    data = file.read()
lines, at = ["time,sensor,celsius"], 0
while at + 5 <= len(data):
    size = data[at + 2]
    end = at + 4 + size
    good = data[at : at + 2] == b"\xa5\x5a" and end < len(data)
    if not good or (sum(data[at + 2 : end]) & 0xFF) ^ 0xFF != data[end]:
        at += 1
        continue
    body = data[at + 4 : end]
    if data[at + 3] in (1, 3):
        (when,) = struct.unpack(">I", body[:4])
        for sensor, value in struct.iter_unpack(">Bh", body[4:]):
            if value != -0x8000:
                lines.append(f"{when},{sensor},{value / 100:.2f}")
    at = end + 1
with open("readings.csv", "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
PY
