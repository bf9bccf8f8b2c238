"""Titles as parts of web addresses."""

import re
import unicodedata


def slug(title):
    """Give lower-case ASCII letters and digits, joined by single dashes."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
