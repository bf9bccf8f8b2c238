"""The pure parts of the client: the adaptive limit, the rates, the backoff, the verdicts."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.issues import IssueCode
from steelyard.models.adaptive import AdaptiveLimit
from steelyard.models.backoff import Backoff, retry_after_s
from steelyard.models.rates import Bucket
from steelyard.models.refusals import address_hint, endpoint_words, verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_limit_starts_at_its_maximum_and_halves_on_429() -> None:
    limit = AdaptiveLimit(64)
    limit.throttled(limit.epoch)
    assert limit.allowed == 32


def test_a_burst_of_429s_counts_once() -> None:
    limit = AdaptiveLimit(64)
    epoch = limit.epoch
    for _ in range(64):
        limit.throttled(epoch)
    assert limit.allowed == 32


def test_a_limit_grows_by_one_a_round_of_successes() -> None:
    limit = AdaptiveLimit(8)
    limit.throttled(limit.epoch)
    for _ in range(5):
        limit.succeeded()
    assert limit.allowed == 5


@given(st.integers(1, 100), st.lists(st.booleans(), max_size=300))
def test_a_limit_stays_between_one_and_its_maximum(maximum: int, events: list[bool]) -> None:
    limit = AdaptiveLimit(maximum)
    for is_success in events:
        if is_success:
            limit.succeeded()
        else:
            limit.throttled(limit.epoch)
        assert 1 <= limit.allowed <= maximum


@given(
    st.floats(1, 1000),
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 20)), min_size=1, max_size=80),
)
def test_no_minute_sees_more_than_the_rate_and_a_burst(
    per_minute: float, takes: list[tuple[float, float]]
) -> None:
    bucket = Bucket(per_minute, burst_s=1, now_s=0)
    now_s = 0.0
    granted: list[tuple[float, float]] = []
    for gap_s, units in takes:
        now_s += gap_s
        granted.append((now_s + bucket.take(units, now_s), units))
    capacity = max(1.0, per_minute / 60)
    for start, _ in granted:
        window = [units for at, units in granted if start <= at < start + 60]
        assert sum(window) <= per_minute + capacity + max(window) + 1e-6


def test_a_bucket_that_is_full_lets_one_request_go_at_once() -> None:
    bucket = Bucket(60, burst_s=1, now_s=0)
    assert [round(bucket.take(1, 0), 6) for _ in range(3)] == [0, 1, 2]


def test_tokens_used_beyond_the_reservation_are_paid_back() -> None:
    bucket = Bucket(60, burst_s=10, now_s=0)
    bucket.take(1, 0)
    bucket.settle(29, 0)
    assert bucket.take(1, 0) == pytest.approx(21)


def test_a_backoff_is_spread_over_the_whole_interval() -> None:
    backoff = Backoff(base_s=1, cap_s=8)
    waits = [backoff.wait_s(10, None, random.Random(i)) for i in range(200)]
    assert 0 <= min(waits) < 1
    assert 7 < max(waits) <= 8


def test_a_backoff_of_one_seed_is_always_the_same() -> None:
    first, second = random.Random(7), random.Random(7)
    waits = [[Backoff().wait_s(n, None, chance) for n in range(5)] for chance in (first, second)]
    assert waits[0] == waits[1]


def test_what_the_endpoint_asks_for_is_waited_in_full() -> None:
    assert 3 <= Backoff(base_s=0.5).wait_s(0, 3, random.Random(0)) <= 3.5


def test_an_endpoint_cannot_make_us_wait_for_ever() -> None:
    assert Backoff(base_s=0).wait_s(0, 1e9, random.Random(0)) == 300


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10.0),
        ("Wed, 31 Dec 2025 23:59:10 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_header_makes_us_stumble(value: str) -> None:
    found = retry_after_s(value, NOW)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("status", "code", "is_transient", "is_request_fault"),
    [
        (400, IssueCode.MODEL_REQUEST_REFUSED, False, False),
        (401, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (402, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (403, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (404, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (307, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (405, IssueCode.MODEL_ENDPOINT_REJECTED, False, True),
        (408, IssueCode.MODEL_UNAVAILABLE, True, False),
        (409, IssueCode.MODEL_UNAVAILABLE, True, False),
        (413, IssueCode.MODEL_REQUEST_REFUSED, False, False),
        (422, IssueCode.MODEL_REQUEST_REFUSED, False, False),
        (429, IssueCode.MODEL_UNAVAILABLE, True, False),
        (500, IssueCode.MODEL_UNAVAILABLE, True, False),
        (503, IssueCode.MODEL_UNAVAILABLE, True, False),
        (529, IssueCode.MODEL_UNAVAILABLE, True, False),
    ],
)
def test_each_status_has_its_cause(
    status: int, code: IssueCode, is_transient: bool, is_request_fault: bool
) -> None:
    found = verdict(status, b"")
    assert (found.code, found.is_transient, found.is_request_fault) == (
        code,
        is_transient,
        is_request_fault,
    )


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "no"},
        {"message": "This model's maximum context length is 8192 tokens"},
        {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000"},
        {"type": "exceed_context_size_error", "message": "the request exceeds"},
    ],
)
def test_a_refusal_for_length_is_a_context_overflow(error: dict[str, str]) -> None:
    assert verdict(400, orjson.dumps({"error": error})).code is IssueCode.CONTEXT_OVERFLOW


def test_words_about_length_change_nothing_about_a_401() -> None:
    body = orjson.dumps({"error": {"message": "maximum context length"}})
    assert verdict(401, body).code is IssueCode.MODEL_ENDPOINT_REJECTED


def test_a_429_without_money_is_not_tried_again() -> None:
    body = orjson.dumps({"error": {"code": "insufficient_quota", "message": "pay"}})
    found = verdict(429, body)
    assert (found.is_transient, found.is_request_fault) == (False, True)


@pytest.mark.parametrize(
    ("status", "target", "asks"),
    [
        (404, "/chat/completions", True),
        (404, "/v1/chat/completions", False),
        (404, "/openai/v2/chat/completions?v1", False),
        (404, "/api/chat/completions?api-version=/v1", True),
        (401, "/chat/completions", False),
    ],
)
def test_a_404_without_a_version_in_its_address_asks_after_it(
    status: int, target: str, asks: bool
) -> None:
    assert ("did you leave out /v1?" in address_hint(status, target)) is asks


@given(st.binary(max_size=300), st.integers(300, 599))
def test_no_body_makes_a_verdict_stumble(body: bytes, status: int) -> None:
    verdict(status, body)
    assert len(endpoint_words(body)) <= 302
