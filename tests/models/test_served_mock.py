"""`mock-model://` URLs are served by their caller: no second process, nothing left behind."""

from __future__ import annotations

import asyncio
import socket

import pytest

from steelyard.benchmarks.pack import PackBenchmark
from steelyard.components.catalog import catalog_pack
from steelyard.components.clock import AgentTimer, SystemClock
from steelyard.components.model import ModelRequest
from steelyard.config.errors import BadInput
from steelyard.config.secrets import SecretStore
from steelyard.models.address import parse_address
from steelyard.models.client import Endpoint, make_endpoint


def endpoint(url: str) -> Endpoint:
    settings = {"id": "m", "base_url": url}
    return make_endpoint(settings, SecretStore({}), clock=SystemClock(), seed=0)


async def asked(url: str, times: int = 1) -> tuple[list[str], int]:
    """Ask the first case of code-review at once so often; give the answers and the port."""
    pack = PackBenchmark(PackBenchmark.Params(path=str(catalog_pack("code-review"))))
    task = pack.load_tasks()[0]
    request = ModelRequest(pack.task_input(task, attempt=1, seed=0).messages)
    made = endpoint(url)
    try:
        client = made.client(AgentTimer(SystemClock()))
        responses = await asyncio.gather(*(client.generate(request) for _ in range(times)))
        return [response.text for response in responses], made.upstream._port
    finally:
        await made.close()


def reference() -> str | None:
    pack = PackBenchmark(PackBenchmark.Params(path=str(catalog_pack("code-review"))))
    found = pack.reference(pack.load_tasks()[0])
    return found.answer if found is not None else None


def test_a_model_that_is_always_right_answers_with_the_references() -> None:
    answers, _ = asyncio.run(asked("mock-model://code-review", times=3))
    assert answers == [reference()] * 3


def test_a_model_that_is_never_right_does_not() -> None:
    answers, _ = asyncio.run(asked("mock-model://paper-trail,code-review/0"))
    assert answers != [reference()]


def test_an_unknown_prompt_is_answered_all_the_same() -> None:
    assert asyncio.run(asked("mock-model://"))[0] == ["OK"]


def test_nothing_listens_once_its_connections_are_closed() -> None:
    _, port = asyncio.run(asked("mock-model://code-review"))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mock-model://code-review/2", "not of the form"),
        ("mock-model://code-review/often", "not of the form"),
        ("mock-model://code-review?accuracy=1", "not of the form"),
        ("mock-model://code-reviw", "unknown benchmark 'code-reviw'"),
        ("mock-model://refunds/0.8", "a pack is named by its folder: mock-model://./FOLDER/0.8"),
    ],
)
def test_a_url_that_asks_for_nothing_known_is_refused(url: str, said: str) -> None:
    with pytest.raises(BadInput, match="base_url") as raised:
        parse_address(url)
    assert said in str(raised.value)


def test_a_pack_is_named_by_its_folder_and_its_last_number_is_the_chance() -> None:
    folder = str(catalog_pack("code-review"))
    for text, names, chance in (
        (f"{folder}/0.5", (folder,), 0.5),
        (folder, (folder,), 1.0),
        (f"{folder}/", (folder,), 1.0),
        (f"paper-trail,{folder}/0", ("paper-trail", folder), 0.0),
        ("catalog/code-review/0.5", ("code-review",), 0.5),
    ):
        mock = parse_address(f"mock-model://{text}").mock
        assert mock is not None
        assert (mock.benchmarks, mock.accuracy) == (names, chance)
    assert asyncio.run(asked(f"mock-model://{folder}"))[0] == [reference()]
    with pytest.raises(BadInput, match=r"there is no pack at \./nowhere"):
        parse_address("mock-model://./nowhere/0.5")


def test_two_urls_do_not_share_a_line() -> None:
    first, second = (parse_address(f"mock-model://code-review/{n}") for n in (0.2, 0.8))
    assert first != second
    assert first.is_local
