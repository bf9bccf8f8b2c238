"""The mock endpoint: draws by seed, answers from everywhere, faults on order, loopback only."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from steelyard.cli.mock_model import mock_model
from steelyard.config.errors import BadInput
from steelyard.models.mock.answers import answer_of, echo, fixed, from_function, read_file
from steelyard.models.mock.chance import draw, parse_latency
from steelyard.models.mock.faults import Occasion, fault_for, parse_fault
from steelyard.models.mock.main import parse_accuracy
from steelyard.models.mock.references import ReferenceAnswers, wrong_answer
from steelyard.models.mock.reply import Received, Reply
from steelyard.models.mock.server import MockServer, MockSettings, check_host
from steelyard.models.mock.wire import Call, Turn, prompt_digest, read_call
from steelyard.testing.endpoint import MockEndpoint


def chat(server: MockServer, text: str, *, model: str = "m", host: str = "127.0.0.1:1") -> Reply:
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    return server.answer(
        Received("POST", "/v1/chat/completions", {"host": host}, json.dumps(body).encode())
    )


def said(reply: Reply) -> str:
    text: str = json.loads(reply.body)["choices"][0]["message"]["content"]
    return text


def call(text: str, nth: int = 0, model: str = "m", done: int = 0) -> Call:
    turns = (Turn("user", text), *(Turn("assistant", "x") for _ in range(done)))
    return Call("openai-chat", model, turns, False, True, {}, nth)


def test_answers_do_not_depend_on_the_order_of_calls() -> None:
    prompts = [f"prompt {i}" for i in range(20)]
    answers = {prompt_digest([Turn("user", p)]): "right" for p in prompts}
    wrong = dict.fromkeys(answers, "wrong")

    def run(order: list[str]) -> dict[str, list[str]]:
        source = ReferenceAnswers(answers, wrong, 0.5, {}, 3)
        server = MockServer(MockSettings(sources=[source]))
        got: dict[str, list[str]] = {p: [] for p in prompts}
        for prompt in order:
            got[prompt].append(said(chat(server, prompt)))
        return got

    forward = run(prompts * 5)
    assert forward == run([p for p in reversed(prompts) for _ in range(5)])
    assert any(len(set(answers)) == 2 for answers in forward.values())


def test_a_failed_call_uses_up_no_answer() -> None:
    source = read_entries([{"prompt": "q", "answer": ["first", "second"]}])
    server = MockServer(MockSettings(sources=[source], faults=[parse_fault("500:first=1")]))
    assert chat(server, "q").status == 500
    assert [said(chat(server, "q")) for _ in range(3)] == ["first", "second", "first"]


def test_accuracy_is_met_over_many_draws() -> None:
    hits = sum(draw(0, "right", "m", f"prompt {i}", 0) < 0.7 for i in range(5_000))
    assert 0.68 < hits / 5_000 < 0.72


def test_models_can_have_accuracies_of_their_own() -> None:
    digest = prompt_digest([Turn("user", "q")])
    source = ReferenceAnswers({digest: "r"}, {digest: "w"}, 1.0, {"weak": 0.0}, 0)
    texts = [getattr(source(call("q", model=model)), "text", None) for model in ("m", "weak")]
    assert texts == ["r", "w"]
    assert parse_accuracy(["0.7", "weak=0.25"]) == (0.7, {"weak": 0.25})


@pytest.mark.parametrize("value", ["2", "x", "m=", "-0.1", "nan"])
def test_an_accuracy_that_is_no_chance_is_refused(value: str) -> None:
    with pytest.raises(BadInput):
        parse_accuracy([value])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("42", "43"),
        ("paris", "rome"),
        ("    return x + 1\n", "    return None\n"),
        ("x" * 100, "I do not know."),
        ("def f(x):\n    return x\n", "def f(*args, **kwargs):\n    return None\n"),
    ],
)
def test_a_wrong_answer_looks_like_the_right_one(right: str, wrong: str) -> None:
    assert wrong_answer(right, ["paris", "rome"]) == wrong


def test_a_wrong_fenced_answer_is_fenced_code_that_ends_at_once() -> None:
    right = "```python\ndef f(x):\n    while True:\n        pass\n```\n"
    assert "def f(*args, **kwargs):\n    return None" in wrong_answer(right, [])


def test_a_benchmark_pack_answers_its_own_prompts(tmp_path: Path) -> None:
    source = tmp_path / "bench.py"
    source.write_text(BENCHMARK, encoding="utf-8")
    from steelyard.models.mock.references import from_benchmark

    found = from_benchmark(f"{source}:Sums", {}, accuracy=1.0, accuracy_by_model={}, seed=0)
    server = MockServer(MockSettings(sources=[found]))
    assert said(chat(server, "2 + 2")) == "4"
    assert said(chat(server, "unknown")) == "OK"


BENCHMARK = """
from steelyard.components.benchmark import *
from steelyard.components.values import Message

class Sums(Benchmark):
    api = 1
    id = "sums"
    def info(self):
        return BenchmarkInfo("sums", "1", (binary("correct"),), "correct", False)
    def load_tasks(self):
        return [Task(str(n), {"n": n}) for n in range(5)]
    def task_input(self, task, *, attempt, seed):
        n = task.data["n"]
        return TaskInput((Message("user", f"{n} + {n}"),))
    def reference(self, task):
        return Reference(answer=str(2 * task.data["n"]))
    async def evaluate(self, task, context):
        return Evaluation({"correct": True})
"""


def read_entries(entries: list[Any]) -> Any:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(json.dumps(entry) for entry in entries))
        file.flush()
        return read_file(Path(file.name))


def test_a_file_answers_by_prompt_before_match_and_by_model() -> None:
    source = read_entries(
        [
            {"match": "needle", "answer": "matched"},
            {"prompt": "a needle", "model": "other", "answer": "not for m"},
            {"prompt": "a needle", "answer": "exact"},
        ]
    )
    assert source(call("a needle")).text == "exact"
    assert source(call("a needle", model="other")).text == "not for m"
    assert source(call("two needles")).text == "matched"
    assert source(call("hay")) is None


def test_turns_script_a_whole_conversation() -> None:
    source = read_entries(
        [{"match": "", "turns": [{"tool_calls": [{"name": "ls"}]}, {"answer": "done"}]}]
    )
    assert source(call("go")).tool_calls[0].name == "ls"
    assert source(call("go", done=1)).text == "done"
    assert source(call("go", done=5)).text == "done"


def test_a_bad_answers_file_names_every_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"answer": "x"}\nnot json\n{"answer_": "x"}\n{"prompt": "p"}\n')
    with pytest.raises(BadInput) as caught:
        read_file(path)
    assert [problem.where.line for problem in caught.value.problems] == [2, 3, 4]


def test_a_function_answers(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def answer(call):\n    return call['prompt'].upper() + str(call['nth'])\n")
    got = from_function(f"{path}:answer")(call("abc", nth=2))
    assert got is not None
    assert got.text == "ABC2"


def test_a_function_that_fails_is_a_500_not_a_crash() -> None:
    def boom(_call: Call) -> None:
        raise RuntimeError("boom")

    reply = chat(MockServer(MockSettings(sources=[boom])), "q")
    assert (reply.status, b"boom" in reply.body) == (500, True)


@pytest.mark.parametrize("data", [3, {"answer_": "x"}, {"turns": []}, {"tool_calls": [{}]}])
def test_an_answer_of_a_wrong_form_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        answer_of(data, call("q"))


def occasion(number: int, of_prompt: int = 0, model: str = "m") -> Occasion:
    return Occasion(number, of_prompt, f"digest {number}", model)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("500", [0, 1, 2, 3, 4, 5]),
        ("500:first=2", [0, 1]),
        ("500:after=2,first=2", [2, 3]),
        ("500:every=3", [2, 5]),
        ("500:model=other", []),
        ("500:rate=0", []),
        ("500:rate=1", [0, 1, 2, 3, 4, 5]),
        ("500:per=prompt,first=1", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_fault_meets_the_calls_it_was_ordered_for(text: str, met: list[int]) -> None:
    fault = parse_fault(text)
    assert [n for n in range(6) if fault_for([fault], occasion(n), 0)] == met


@pytest.mark.parametrize(
    "text",
    [
        *("200", "999", "rest", "500:firsts=1", "500:first=x", "500:rate=2", "reset:at=end"),
        *("500:first", "huge_body:mb=0", "500:every=0", "wrong_usage:how=odd"),
        "hang:retry_after=1",
    ],
)
def test_a_fault_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--fault"):
        parse_fault(text)


def test_latencies_have_the_shape_that_was_asked_for() -> None:
    assert parse_latency("0.2").at(0.9) == 0.2
    assert parse_latency("uniform:1,3").at(0.25) == 1.5
    assert parse_latency("lognormal:2,0.5").at(0.5) == pytest.approx(2)
    assert parse_latency("exponential:1").at(0.5) == pytest.approx(0.6931, abs=1e-4)


@pytest.mark.parametrize("text", ["", "fast", "uniform:1", "fixed:-1", "normal:1,2", "nan"])
def test_a_latency_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="latency"):
        parse_latency(text)


def test_the_same_conversation_has_one_digest_in_all_protocols() -> None:
    messages = [{"role": "user", "content": "q"}]
    system = {"role": "system", "content": "s"}
    bodies = {
        "openai-chat": {"messages": [system, *messages]},
        "openai-responses": {"input": messages, "instructions": "s"},
        "anthropic": {"messages": messages, "system": "s", "max_tokens": 1},
    }
    digests = {
        prompt_digest(read_call(name, json.dumps({"model": "m", **body}).encode()).turns)
        for name, body in bodies.items()
    }
    assert len(digests) == 1


def test_another_host_name_is_refused() -> None:
    server = MockServer(MockSettings(sources=[echo]))
    assert chat(server, "q", host="evil.example:80").status == 403
    assert chat(server, "q", host="localhost:99").status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_an_address_that_others_reach_is_refused(host: str) -> None:
    with pytest.raises(BadInput, match="this machine only"):
        check_host(host)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"model": 3}', b'{"model": "m"}', b"\xff"])
@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
def test_a_malformed_request_is_a_400(path: str, body: bytes) -> None:
    server = MockServer(MockSettings(sources=[fixed("x")]))
    assert server.answer(Received("POST", f"/v1/{path}", {"host": "localhost"}, body)).status == 400


def test_options_that_contradict_are_refused() -> None:
    result = CliRunner().invoke(mock_model, ["--echo", "--text", "x"])
    assert isinstance(result.exception, BadInput)


@pytest.mark.integration
def test_the_command_says_where_it_listens_and_ends_at_once(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [sys.executable, "-m", "steelyard.cli.mock_model", "--port-file", str(port_file)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == f"listening on http://127.0.0.1:{port_file.read_text().strip()}/v1\n"
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(10) == 0
    process.stdout.close()


@pytest.mark.integration
def test_a_call_in_flight_does_not_hold_the_server_up() -> None:
    with MockEndpoint("--fault", "hang") as running:
        host = running.origin.removeprefix("http://")
        link = http.client.HTTPConnection(host)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]})
        link.request("POST", "/v1/chat/completions", body)
        deadline = time.monotonic() + 20
        while running.stats()["by_model"].get("m") is None and time.monotonic() < deadline:
            time.sleep(0.02)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    link.close()


@pytest.mark.integration
def test_stats_count_and_reset_forgets() -> None:
    with MockEndpoint("--echo", "--keep-bodies", "2") as running:
        host = running.origin.removeprefix("http://")
        link = http.client.HTTPConnection(host)
        for number in range(3):
            body = {"model": f"m{number}", "messages": [{"role": "user", "content": "q"}]}
            link.request("POST", "/v1/chat/completions", json.dumps(body))
            link.getresponse().read()
        link.request("HEAD", "/")
        assert link.getresponse().read() == b""
        link.request("GET", "/v1/nothing")
        missing = link.getresponse()
        missing.read()
        assert missing.status == 404
        link.close()
        stats = running.stats()
        assert stats["calls"] == 3
        assert stats["by_status"] == {"200": 3}
        assert [json.loads(kept["body"])["model"] for kept in stats["bodies"]] == ["m1", "m2"]
        running.reset()
        assert running.stats()["calls"] == 0


@pytest.mark.integration
def test_a_request_body_may_not_be_endless() -> None:
    async def run() -> bytes:
        with MockEndpoint() as running:
            port = int(running.origin.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n"
                b"content-length: 99999999999\r\n\r\n"
            )
            answer = b""
            try:
                for _ in range(64):
                    writer.write(b"x" * 1024 * 1024)
                    await writer.drain()
                answer = await asyncio.wait_for(reader.read(100), 10)
            except ConnectionError:
                answer = b"HTTP/1.1 413 (closed)"
            finally:
                writer.close()
            return answer

    assert asyncio.run(run()).startswith(b"HTTP/1.1 413")


def test_stats_count_the_tokens_that_were_said_to_be_used() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79}
    server = MockServer(MockSettings(sources=[lambda call: answer_of({"usage": usage}, call)]))
    assert json.loads(chat(server, "hi").body)["usage"] == usage
    assert server.stats.as_json()["tokens"] == {"input": 70, "output": 9}
