python3 - <<'PY'
import csv
from datetime import date
from decimal import Decimal


def read(name):
    with open(name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


bank = [
    (row["id"], date.fromisoformat(row["date"]), int(Decimal(row["amount"]) * 100))
    for row in read("bank.csv")
]
books = [
    (row["id"], date.fromisoformat(row["date"]), int(row["cents"]))
    for row in read("books.csv")
    if row["state"] != "cancelled"
]
pairs = sorted(
    (abs((one[1] - other[1]).days), one[1], other[1], one, other)
    for one in bank
    for other in books
    if one[2] == other[2] and abs((one[1] - other[1]).days) <= 3
)
taken = set()
for *_, one, other in pairs:
    if one not in taken and other not in taken:
        taken |= {one, other}
with open("open.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file)
    out.writerow(["side", "id", "cents"])
    out.writerows(["bank", one[0], one[2]] for one in bank if one not in taken)
    out.writerows(["books", one[0], one[2]] for one in books if one not in taken)
PY
