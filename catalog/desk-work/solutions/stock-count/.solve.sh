python3 - <<'PY'
import csv

BOX = {"bolt": 50, "nut": 100, "washer": 250, "cap": 24, "tube": 10, "ring": 20}


def table(name):
    with open(name, newline="", encoding="utf-8") as file:
        return {row["article"]: int(row["pieces"]) for row in csv.DictReader(file)}


moves = [line.split() for line in open("moves.log", encoding="utf-8")]
moves = [move for move in moves if move[0] <= "17:30"]
void = {f"#{move[3]}" for move in moves if move[2] == "VOID"}
stock = table("opening.csv")
for _, number, kind, *rest in moves:
    if number in void or kind == "VOID":
        continue
    article, pieces = rest[0], int(rest[1])
    if rest[-1] == "boxes":
        pieces *= BOX[article.partition("-")[0]]
    stock[article] = stock.get(article, 0) + (pieces if kind == "IN" else -pieces)
    if kind == "SWAP":
        stock[rest[2]] = stock.get(rest[2], 0) + pieces
counted = table("count.csv")
with open("wrong.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file)
    out.writerow(["article", "expected", "counted"])
    for article in sorted(stock.keys() | counted.keys()):
        expected, found = stock.get(article, 0), counted.get(article)
        if (found or 0) != expected:
            out.writerow([article, expected, "" if found is None else found])
PY
