"""What a verifier's reward file says. Nothing that it fails to say is ever taken for zero."""

from __future__ import annotations

import math
from typing import Final

import orjson

MAX_BYTES: Final = 64 * 1024
MAX_REWARDS: Final = 200
REWARD: Final = "reward"
"""The key that stands for the task, and the name of a reward.txt's one number."""


class NoReward(ValueError):
    """A reward file that says nothing; its words are for people and begin after its name."""


def read_text(data: bytes) -> dict[str, float]:
    """Read a `reward.txt`: one number.

    Raises:
        NoReward: it is none, or not finite.
    """
    text = _text(data)
    try:
        value = float(text)
    except ValueError:
        raise NoReward(f"holds {text[:80]!r}, which is not a number") from None
    return {REWARD: _finite(value, text)}


def read_json(data: bytes) -> dict[str, float]:
    """Read a `reward.json`: an object of numbers.

    Raises:
        NoReward: it is none, or one of them is not finite.
    """
    text = _text(data)
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NoReward(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise NoReward('holds no object: write a number for each reward, as {"reward": 1.0}')
    if not found:
        raise NoReward("holds no reward")
    if len(found) > MAX_REWARDS:
        raise NoReward(f"holds more than {MAX_REWARDS} rewards")
    rewards = {}
    for name, value in found.items():
        if not isinstance(value, bool | int | float):
            raise NoReward(f"holds {name} = {str(value)[:80]!r}, which is not a number")
        rewards[name] = _finite(float(value), f"{name} = {value}")
    return rewards


def chosen(rewards: dict[str, float], lowest: float, highest: float) -> float:
    """Give the reward that stands for the task.

    It is the one called `reward`, or the only one.

    Raises:
        NoReward: there are several and none is called so, or it is out of range.
    """
    if REWARD in rewards:
        value = rewards[REWARD]
    elif len(rewards) == 1:
        value = next(iter(rewards.values()))
    else:
        raise NoReward(f"holds {', '.join(sorted(rewards)[:10])}, and none is called {REWARD!r}")
    if not lowest <= value <= highest:
        raise NoReward(f"holds {value:g}, which is not from {lowest:g} to {highest:g}")
    return value


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise NoReward("is empty")
    return text


def _finite(value: float, said: str) -> float:
    if not math.isfinite(value):
        raise NoReward(f"holds {said[:80]}, which is not finite")
    return value
