"""The agent's watch: what stands still, and that no moment is counted twice."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.clock import AgentTimer, utc_text

# hypothesis draws moments without a zone
EARLIEST = datetime(1970, 1, 2, tzinfo=UTC).replace(tzinfo=None)
LATEST = datetime(2200, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class HandClock:
    def __init__(self) -> None:
        self.at_s = 100.0

    def monotonic(self) -> float:
        return self.at_s

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class Limit:
    """Counts what a deadline was moved by, pauses included."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self._paused_at: float | None = None
        self.moved_s = 0.0

    def pause(self) -> None:
        assert self._paused_at is None
        self._paused_at = self._clock.at_s

    def resume(self) -> None:
        assert self._paused_at is not None
        self.moved_s += self._clock.at_s - self._paused_at
        self._paused_at = None

    def extend(self, seconds: float) -> None:
        self.moved_s += seconds


def test_calls_that_fail_side_by_side_are_forgiven_once() -> None:
    clock = HandClock()
    limit = Limit(clock)
    timer = AgentTimer(clock, limit)
    clock.at_s += 0.8
    for _ in range(6):
        timer.forgive(0.8)
    assert timer.waited_s == limit.moved_s
    assert abs(timer.waited_s - 0.8) < 1e-9
    assert abs(timer.elapsed_s) < 1e-9


def test_what_failed_before_somebody_began_to_wait_is_forgiven_while_they_wait() -> None:
    clock = HandClock()
    limit = Limit(clock)
    timer = AgentTimer(clock, limit)
    clock.at_s += 1.0
    with timer.waiting():
        clock.at_s += 2.0
        timer.forgive(3.0)
        assert abs(timer.waited_s - 3.0) < 1e-9
    assert abs(timer.waited_s - 3.0) < 1e-9
    assert abs(limit.moved_s - 3.0) < 1e-9


def test_what_was_waited_inside_of_a_failed_try_is_not_forgiven_again() -> None:
    clock = HandClock()
    timer = AgentTimer(clock)
    clock.at_s += 1.0
    with timer.waiting():
        clock.at_s += 2.0
    clock.at_s += 1.0
    timer.forgive(4.0)
    assert abs(timer.waited_s - 4.0) < 1e-9
    assert abs(timer.elapsed_s) < 1e-9


def test_nothing_before_the_agent_began_is_forgiven() -> None:
    clock = HandClock()
    timer = AgentTimer(clock)
    clock.at_s += 1.0
    timer.forgive(50.0)
    assert abs(timer.waited_s - 1.0) < 1e-9


@given(st.lists(st.tuples(st.sampled_from("wfp"), st.integers(0, 20)), max_size=40))
def test_waited_time_is_the_union_of_waits_and_failed_tries(
    acts: list[tuple[str, int]],
) -> None:
    clock = HandClock()
    limit = Limit(clock)
    timer = AgentTimer(clock, limit)
    lost: set[int] = set()
    begun = now = 0
    for act, size in acts:
        if act == "f":
            timer.forgive(float(size))
            lost.update(range(max(begun, now - size), now))
            continue
        if act == "w":
            with timer.waiting():
                clock.at_s += size
            lost.update(range(now, now + size))
        else:
            clock.at_s += size
        now += size
    assert abs(timer.waited_s - len(lost)) < 1e-6
    assert abs(limit.moved_s - len(lost)) < 1e-6
    assert abs(timer.elapsed_s - (now - len(lost))) < 1e-6


@given(
    st.lists(st.datetimes(min_value=EARLIEST, max_value=LATEST)),
    st.integers(-720, 840),
)
def test_a_moment_is_written_alike_whatever_was_written_before(
    moments: list[datetime], minutes: int
) -> None:
    zone = timezone(timedelta(minutes=minutes))
    for moment in moments:
        for near in (moment, moment + timedelta(milliseconds=999), moment - timedelta(seconds=1)):
            here = near.replace(tzinfo=UTC)
            whole = here.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
            assert utc_text(here) == whole
            assert utc_text(here.astimezone(zone)) == whole
