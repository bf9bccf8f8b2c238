"""Secrets for every entrance, and every form in which one could come out again.

Written without the product's own forms: what it forgets must be found.
"""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

# Quotes, backslashes, non-ASCII, spaces, line ends, URL and Markdown marks, where the place of
# the secret allows them.
SECRETS = {
    "api_key": 'sk-"key"\\one/é_*~+A1',
    "api_key_variable": "sk-variable_B2+/=\\n",
    "option_key": "sk-option'C3'\\\\end",
    "url_user": "user_d4[d4]",
    "url_password": "p&ss/w%rd_E5",
    "url_query": "query+F6 /F6=x",
    "header": 'head"er\\G7_é',
    "param_key": 'line one\nline "two" \\ H8 \u2028 ☃ 🙂',
    "param_nested": "nested_tab\t\x1b[31m_I9",
    "param_auth": "auth_<b>&J0</b>",
    "secret_env": "env'K1'\\x41\x7f",
    "config_layer": "layer_L2_ünïcode",
    "number": "8374650192837",
    "analyzer_key": "analyzer-M3 <é>\\",
    "judge_key": "sk-judge_N4'=+",
}


def forms(secret: str) -> set[bytes]:
    """Every way a secret is ever written."""
    raw = secret.encode()
    texts = {secret, repr(secret)[1:-1], ascii(secret)[1:-1]}
    texts |= {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    for base in (secret, repr(secret)[1:-1]):
        for ascii_only in (True, False):
            once = json.dumps(base, ensure_ascii=ascii_only)[1:-1]
            texts |= {once, once.replace("/", "\\/")}
            texts |= {json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    texts |= {html.escape(secret), html.escape(secret, quote=False)}
    found = {text.encode("utf-8", "surrogatepass") for text in texts}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            # The middle part depends on the secret alone, whatever stands around it.
            found.add(encode(b"\0" * offset + raw)[offset + 1 : -4])
    return {form for form in found if len(form) >= 6}


FORMS = {name: forms(secret) for name, secret in SECRETS.items()}


def found_in(data: bytes | str) -> list[str]:
    """Name the secrets that stand in what came out, with the form."""
    data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return sorted(
        f"{name} as {form!r}" for name, known in FORMS.items() for form in known if form in data
    )


def found_below(folder: Path) -> list[str]:
    """Name the secrets in the files below a folder, their names too."""
    found = []
    for path in sorted(folder.rglob("*")):
        found += [f"name of {path.name}: {one}" for one in found_in(path.name)]
        if path.is_file():
            found += [f"{path.name}: {one}" for one in found_in(path.read_bytes())]
    return found


def said_in_every_form() -> str:
    """What a hostile endpoint or plug-in would say: every secret, every form, once."""
    lines = []
    for secret in SECRETS.values():
        raw = secret.encode()
        lines += [
            secret,
            json.dumps(secret),
            json.dumps(secret, ensure_ascii=False),
            json.dumps({"body": json.dumps({"key": secret})}),
            repr(secret),
            ascii(secret),
            quote(raw, safe=""),
            quote_plus(raw),
            html.escape(secret),
            *(base64.b64encode(b"abc"[:offset] + raw + b"xyz").decode() for offset in range(3)),
            base64.urlsafe_b64encode(raw).decode(),
        ]
    return "\n".join(lines)
