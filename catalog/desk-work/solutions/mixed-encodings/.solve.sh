python3 - <<'PY'
from pathlib import Path


def decoded(data):
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


for path in Path("texts").rglob("*"):
    if path.suffix not in (".txt", ".csv") or not path.is_file():
        continue
    text = decoded(path.read_bytes())
    if text is not None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if text and not text.endswith("\n"):
            text += "\n"
        path.write_bytes(text.encode())
PY
