"""Exactly the values that LIMITS.md gives; the rest as it was."""

import configparser
import sys

parser = configparser.ConfigParser()
with open("service.ini", encoding="utf-8") as file:
    parser.read_file(file)
found = {name: dict(parser[name]) for name in parser.sections()}
assert found == {
    "server": {
        "host": "127.0.0.1",
        "port": "8443",
        "workers": "12",
        "tls": "on",
        "certificate": "certs/service-2025.pem",
    },
    "logs": {"level": "info", "keep_days": "30", "folder": "logs"},
    "upstream": {
        "url": "https://stock.internal.example/api",
        "retry_seconds": "5",
        "timeout_seconds": "10",
    },
}, found
print("passed", sys.argv[1])
