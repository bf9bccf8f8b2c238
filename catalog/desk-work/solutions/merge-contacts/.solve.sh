python3 - <<'PY'
import csv
from datetime import datetime

FIELDS = ("name", "city", "phone")


def phone(text):
    text = text.strip()
    digits = "".join(c for c in text if c.isdigit())
    if not digits:
        return ""
    if text.startswith("+"):
        return f"+{digits}"
    return f"+43{digits[1:]}" if digits.startswith("0") else digits


def name(text):
    family, comma, given = text.partition(",")
    return f"{given.strip()} {family.strip()}" if comma else text.strip()


contacts = {}
sources = [
    ("crm.csv", ",", ("Email", "Name", "City", "Phone", "Updated"), "%Y-%m-%d"),
    ("shop.csv", ";", ("e-mail", "customer", "town", "phone", "changed"), "%d.%m.%Y"),
]
for rank, (file_name, delimiter, columns, form) in enumerate(sources):
    with open(file_name, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter=delimiter):
            email, who, city, number, date = (row[column] for column in columns)
            when = datetime.strptime(date.strip(), form).date().isoformat()
            fields = {"name": name(who), "city": city.strip(), "phone": phone(number)}
            contacts.setdefault(email.strip().lower(), []).append((when, -rank, fields))
with open("merged.csv", "w", newline="", encoding="utf-8") as file:
    out = csv.writer(file)
    out.writerow(["email", *FIELDS, "updated"])
    for email, versions in sorted(contacts.items()):
        versions.sort(key=lambda one: one[:2], reverse=True)
        best = [next((v[2][f] for v in versions if v[2][f]), "") for f in FIELDS]
        out.writerow([email, *best, versions[0][0]])
PY
