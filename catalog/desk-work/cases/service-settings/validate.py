"""Say what is wrong with a service.ini, one fault at a time."""

import configparser
import sys
from pathlib import Path


def fault(settings, folder):
    """Give the first fault; None where there is none."""
    server, logs, upstream = settings["server"], settings["logs"], settings["upstream"]
    if not 1 <= int(server["port"]) <= 65535:
        return "server.port is no port"
    if not server["workers"].isdigit() or int(server["workers"]) > 12:
        return "server.workers must be a number, at most 12"
    if server.getboolean("tls") and not (folder / server["certificate"]).is_file():
        return "server.certificate: no such file"
    if logs["level"] not in ("debug", "info", "warning", "error"):
        return "logs.level is unknown"
    if int(upstream["timeout_seconds"]) <= int(upstream["retry_seconds"]):
        return "upstream.timeout_seconds must be greater than upstream.retry_seconds"
    return None


if __name__ == "__main__":
    parser = configparser.ConfigParser()
    parser.read_string(Path(sys.argv[1]).read_text("utf-8"))
    found = fault(parser, Path(sys.argv[1]).parent)
    print(found or "accepted")
    sys.exit(1 if found else 0)
