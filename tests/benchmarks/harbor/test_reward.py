"""A reward file that says nothing is a fault, never a zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.harbor.reward import NoReward, chosen, read_json, read_text


@pytest.mark.parametrize(("data", "value"), [(b"1", 1.0), (b" 0.25\n", 0.25), (b"1e-1", 0.1)])
def test_a_text_holds_one_number(data: bytes, value: float) -> None:
    assert read_text(data) == {"reward": value}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"passed", "not a number"),
        (b"1 0", "not a number"),
        (b"nan", "not finite"),
        (b"-inf", "not finite"),
        (b"1e999", "not finite"),
        (b"\xff\xfe", "not a number"),
    ],
)
def test_any_other_text_says_nothing(data: bytes, words: str) -> None:
    with pytest.raises(NoReward, match=words):
        read_text(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"NaN", "is not JSON"),
        (b'{"reward": NaN}', "is not JSON"),
        (b'{"reward": 1e999}', "not finite|not JSON"),
        (b"1", "no object"),
        (b"[1]", "no object"),
        (b"{}", "no reward"),
        (b'{"reward": "1"}', "not a number"),
        (b'{"reward": null}', "not a number"),
        (b'{"reward": 1, "more": {"x": 1}}', "not a number"),
    ],
)
def test_any_other_json_says_nothing(data: bytes, words: str) -> None:
    with pytest.raises(NoReward, match=words):
        read_json(data)


def test_several_rewards_are_read_and_one_of_them_stands_for_the_task() -> None:
    rewards = read_json(b'{"speed": 0.5, "reward": 1, "clean": true}')
    assert rewards == {"speed": 0.5, "reward": 1.0, "clean": 1.0}
    assert chosen(rewards, 0, 1) == 1.0


def test_the_only_reward_stands_for_the_task_whatever_it_is_called() -> None:
    assert chosen({"accuracy": 0.5}, 0, 1) == 0.5


def test_of_several_rewards_none_is_guessed() -> None:
    with pytest.raises(NoReward, match="a, b, and none is called 'reward'"):
        chosen({"b": 1.0, "a": 0.0}, 0, 1)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_reward_out_of_range_is_refused_and_none_other(value: float) -> None:
    if -1 <= value <= 2:
        assert chosen({"reward": value}, -1, 2) == value
    else:
        with pytest.raises(NoReward, match="is not from -1 to 2"):
            chosen({"reward": value}, -1, 2)
