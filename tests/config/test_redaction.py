"""No form of a secret passes, however it is encoded or cut."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.config.redaction import (
    REDACTED,
    RedactingFormatter,
    Redactor,
    redact_tree,
)
from steelyard.config.secret_names import is_recognisable
from steelyard.config.secrets import SecretRef, SecretStore

SECRET = 'sk-"live"/+9é secret\\x'


def redactor_of(*secrets: str) -> Redactor:
    store = SecretStore({})
    for number, secret in enumerate(secrets):
        store.put(f"config:{number}", secret)
    return Redactor(store)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
    ],
)
def test_every_text_form_is_replaced(form: str) -> None:
    assert redactor_of(SECRET).text(f"a {form} b") == f"a {REDACTED} b"
    assert redactor_of(SECRET).raw(f"a {form} b".encode()) == f"a {REDACTED} b".encode()


@given(
    st.text(alphabet="abcXYZ0189-_", min_size=8, max_size=40).filter(is_recognisable),
    st.binary(max_size=8),
    st.binary(max_size=8),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_base64_is_replaced_at_every_alignment(secret, before, after, encode) -> None:
    text = encode(before + secret.encode() + after).decode()
    shown = redactor_of(secret).text(text)
    assert REDACTED in shown
    # At most what shares a character with its neighbours stays: two bytes at either end.
    assert len(shown.replace(REDACTED, "")) <= 4 * (len(before) + len(after)) // 3 + 8


_PIECES = st.lists(
    st.one_of(st.sampled_from(["sk-abcdefgh", "sk-abcdefghij", "cdefghijklmn", "x", "sk-abc"]),
              st.text(max_size=5)),
    max_size=12,
)  # fmt: skip


@given(_PIECES, st.lists(st.integers(0, 200), max_size=10))
def test_any_split_into_chunks_gives_what_the_whole_gives(pieces, cuts) -> None:
    redactor = redactor_of("sk-abcdefgh", "sk-abcdefghij", "cdefghijklmn")
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    stream = redactor.stream()
    out, last = b"", 0
    for cut in sorted(min(cut, len(data)) for cut in cuts):
        out += stream.feed(data[last:cut])
        last = cut
    out += stream.feed(data[last:]) + stream.close()
    assert out == redactor.raw(data)
    for secret in (b"sk-abcdefgh", b"cdefghijklmn"):
        assert secret not in out


@given(_PIECES)
def test_overlapping_secrets_leave_nothing_of_either(pieces) -> None:
    redactor = redactor_of("sk-abcdefgh", "sk-abcdefghij", "cdefghijklmn")
    shown = redactor.text("".join(pieces))
    assert "sk-abcdefgh" not in shown
    assert "cdefghijklmn" not in shown
    assert redactor_of("abcdefgh", "efghijkl").text("abcdefghijkl") == REDACTED


def test_a_secret_registered_later_is_replaced() -> None:
    store = SecretStore({})
    redactor = Redactor(store)
    assert redactor.is_idle
    assert redactor.text("late-secret") == "late-secret"
    store.put("config:x", "late-secret")
    assert redactor.text("late-secret") == REDACTED
    store.put_part("config:y#0", "url-password")
    assert redactor.text("url-password") == REDACTED


@pytest.mark.parametrize("value", ["short", "EMPTY", "none", "test", "placeholder", "dummy"])
def test_values_that_look_like_ordinary_text_are_left(value: str) -> None:
    assert redactor_of(value).text(f"a {value} b") == f"a {value} b"


def test_logs_are_redacted_in_message_arguments_and_traceback() -> None:
    record: logging.LogRecord
    try:
        raise ValueError("bad sk-abcdefgh")
    except ValueError as error:
        record = logging.LogRecord(
            "third.party", logging.ERROR, __file__, 1, "got %s", ("sk-abcdefgh",),
            (ValueError, error, error.__traceback__),
        )  # fmt: skip
    inner = logging.Formatter("%(name)s %(message)s")
    text = RedactingFormatter(inner, redactor_of("sk-abcdefgh")).format(record)
    assert "sk-abcdefgh" not in text
    assert text.count(REDACTED) >= 2
    assert "Traceback" in text
    assert record.exc_text is None


def test_settings_are_shown_without_secrets() -> None:
    shown = redact_tree(
        {
            "api_key": SecretRef("env:KEY"),
            "other": SecretRef("config:x"),
            "headers": {"X-A": "v"},
            "max_tokens": 5,
            "pin_token": 1234,
            "url": "https://user:pw@host.example/v1?sig=abc",
            "list": [{"password": "p"}, {"$secret": "env:B"}],
        }
    )
    assert shown == {
        "api_key": "${KEY}",
        "other": REDACTED,
        "headers": {"X-A": REDACTED},
        "max_tokens": 5,
        "pin_token": REDACTED,
        "url": "https://host.example/v1?…",
        "list": [{"password": REDACTED}, "${B}"],
    }


def test_artifacts_are_scanned_for_any_form() -> None:
    redactor = redactor_of("sk-abcdefgh")
    assert redactor.contains_secret(b"..." + base64.b64encode(b"k=sk-abcdefgh") + b"...")
    assert not redactor.contains_secret(b"nothing here")
