python3 - <<'PY'
import csv
from html.parser import HTMLParser


class Table(HTMLParser):
    def __init__(self):
        super().__init__()
        self.grid, self.row, self.cell = {}, -1, None

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.row += 1
        elif tag in ("td", "th"):
            given = dict(attributes)
            self.span = int(given.get("rowspan", 1)), int(given.get("colspan", 1))
            self.cell = []

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)

    def handle_endtag(self, tag):
        if tag not in ("td", "th"):
            return
        column = 0
        while (self.row, column) in self.grid:
            column += 1
        for down in range(self.span[0]):
            for right in range(self.span[1]):
                self.grid[self.row + down, column + right] = " ".join("".join(self.cell).split())
        self.cell = None


table = Table()
with open("timetable.html", encoding="utf-8") as file:
    table.feed(file.read())
height, width = (max(place[axis] for place in table.grid) + 1 for axis in (0, 1))
with open("timetable.csv", "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([table.grid[r, c] for c in range(width)] for r in range(height))
PY
