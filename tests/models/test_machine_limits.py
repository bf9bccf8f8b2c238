"""Processes of one machine share an endpoint's rates, and learn of each other's 429s."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.clock import SystemClock
from steelyard.config.schema.request import ModelSettings
from steelyard.config.secrets import SecretStore
from steelyard.engine.services import EndpointPool
from steelyard.models import machine_limits
from steelyard.models.machine_limits import (
    FILE_NAME,
    REQUESTS,
    TOKENS,
    MachineBucket,
    MachineLimit,
    MachineTable,
)
from steelyard.models.rates import Bucket
from steelyard.testing.clock import FakeClock

KEY: Final = ("api.example", "a key")


def running() -> FakeClock:
    """Give the clock of a machine that has been up for a while."""
    clock = FakeClock()
    clock.advance(1000)
    return clock


def table(folder: Path, clock: FakeClock | None = None) -> MachineTable:
    """Open it as a process of its own does: locks are of what was opened, not of who did."""
    found = MachineTable.opened(clock or running(), folder)
    assert found is not None
    return found


def bucket(of: MachineTable, per_minute: float = 60, part: int = REQUESTS) -> MachineBucket:
    one = Bucket(per_minute, burst_s=1.0, now_s=of.now_s())
    return MachineBucket(one, of.slot(KEY), part)


def test_a_rate_is_one_for_all_processes(tmp_path: Path) -> None:
    clock = running()
    first, second = (bucket(table(tmp_path, clock)) for _ in range(2))
    now_s = clock.monotonic()
    assert first.take(1, now_s) == 0
    assert second.take(1, now_s) == pytest.approx(1.0)
    assert first.take(1, now_s) == pytest.approx(2.0)
    third = bucket(table(tmp_path, clock), part=TOKENS)
    assert third.take(1, now_s) == 0  # another rate of the same endpoint


@settings(max_examples=50)
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=60))
def test_no_minute_sees_more_than_the_rate_and_a_burst(
    steps: list[tuple[int, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    clock = running()
    folder = tmp_path_factory.mktemp("limits")
    tables = [table(folder, clock) for _ in range(4)]
    buckets = [bucket(one, per_minute=30) for one in tables]
    now_s, began = clock.monotonic(), []
    for process, pause_s in steps:
        now_s += pause_s
        began.append(now_s + buckets[process].take(1, now_s))
    began.sort()
    for index, moment in enumerate(began):
        assert sum(moment <= other < moment + 60 for other in began[index:]) <= 30 + 1
    for one in tables:
        one.close()


def test_a_429_to_one_is_a_429_to_all_and_who_comes_later_starts_there(tmp_path: Path) -> None:
    clock = running()
    first = MachineLimit(64, table(tmp_path, clock).slot(KEY))
    second = MachineLimit(16, table(tmp_path, clock).slot(KEY))
    other = MachineLimit(64, table(tmp_path, clock).slot("another endpoint"))
    began = first.epoch
    first.throttled(began)
    first.throttled(began)  # a burst counts once
    assert (first.allowed, second.allowed, other.allowed) == (32, 8, 64)
    assert (first.allowed, second.allowed) == (32, 8)
    assert MachineLimit(64, table(tmp_path, clock).slot(KEY)).allowed == 32
    clock.advance(machine_limits.KNOWN_S * 2)
    assert MachineLimit(64, table(tmp_path, clock).slot(KEY)).allowed == 64


def test_where_the_file_is_held_a_process_goes_by_what_it_knows(tmp_path: Path) -> None:
    first, second = table(tmp_path), table(tmp_path)
    rate, limit = bucket(second), MachineLimit(8, second.slot(KEY))
    with first.locked() as is_held:
        assert is_held
        assert rate.take(1, 0.0) == 0
        assert rate.take(1, 0.0) == pytest.approx(1.0)
        limit.throttled(limit.epoch)
        assert limit.allowed == 4


def test_what_another_boot_left_means_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = MachineLimit(8, table(tmp_path).slot(KEY))
    before.throttled(before.epoch)
    assert MachineLimit(8, table(tmp_path).slot(KEY)).allowed == 4
    monkeypatch.setattr(machine_limits, "_boot_id", lambda: b"the next boot...")
    assert MachineLimit(8, table(tmp_path).slot(KEY)).allowed == 8


def test_more_endpoints_than_there_are_places_take_those_unused_for_longest(tmp_path: Path) -> None:
    one = table(tmp_path)
    limits = [MachineLimit(8, one.slot(number)) for number in range(machine_limits.SLOTS + 200)]
    limits[-1].throttled(limits[-1].epoch)
    assert limits[-1].allowed == 4


@pytest.mark.parametrize("how", ["link", "folder", "open to all", "no folder"])
def test_a_file_that_is_not_ours_alone_is_not_used(how: str, tmp_path: Path) -> None:
    path = tmp_path / f"{FILE_NAME}-{os.geteuid()}"
    if how == "link":
        (tmp_path / "theirs").touch(0o600)
        path.symlink_to(tmp_path / "theirs")
    elif how == "folder":
        path.mkdir()
    elif how == "open to all":
        path.touch()
        path.chmod(0o666)
    folder = tmp_path / "none" if how == "no folder" else tmp_path
    assert MachineTable.opened(FakeClock(), folder) is None


def test_no_key_can_be_read_out_of_the_file(tmp_path: Path) -> None:
    one = table(tmp_path)
    MachineLimit(8, one.slot(("api.example", "sk-secret-key-0123456789")))
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"secret" not in path.read_bytes()
    assert b"example" not in path.read_bytes()


def test_endpoints_of_two_pools_share_what_they_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    model = ModelSettings(id="m", base_url="http://127.0.0.1:9/v1", rpm=60).model_dump(mode="json")

    async def main() -> None:
        pools = [EndpointPool(SecretStore({}), SystemClock()) for _ in range(2)]
        first, second = (pool.get(model, {}) for pool in pools)
        first.slots.limit.throttled(first.slots.limit.epoch)
        assert (first.slots.limit.allowed, second.slots.limit.allowed) == (32, 32)
        for pool in pools:
            await pool.close()

    asyncio.run(main())


PROCESS: Final = """
import sys, time
from pathlib import Path
from steelyard.components.clock import SystemClock
from steelyard.models.machine_limits import REQUESTS, MachineBucket, MachineTable
from steelyard.models.rates import Bucket
clock = SystemClock()
table = MachineTable.opened(clock, Path(sys.argv[1]))
own = Bucket(6000, burst_s=0.01, now_s=clock.monotonic())
bucket = MachineBucket(own, table.slot("k"), REQUESTS)
for _ in range(100):
    now_s = clock.monotonic()
    wait_s = bucket.take(1, now_s)
    print(now_s + wait_s)
    time.sleep(wait_s)
"""


@pytest.mark.integration
def test_real_processes_share_a_rate(tmp_path: Path) -> None:
    """Four of them ask for 100 calls each, at 100 a second: that takes four seconds, not one."""
    words = [sys.executable, "-c", PROCESS, str(tmp_path)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    began = sorted(float(line) for one in running for line in one.communicate()[0].split())
    assert [one.returncode for one in running] == [0] * 4
    assert len(began) == 400
    # A process that found the file held went by what it knew: rarely, and never for long.
    assert began[-1] - began[0] > 3.5
