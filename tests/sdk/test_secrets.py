"""A key that is handed over is nowhere: in no repr, error, event, page, log or file."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

import steelyard as sy
from tests.sdk.parts import Say, Sums

CANARY = "canary-7f3d91c0aa55"


def _mapping(url: str, **model: Any) -> dict[str, Any]:
    return {
        "requests": [
            {
                "name": "r",
                "benchmark": {"id": Sums},
                "harness": {"id": "chat"},
                "model": {"id": "small", "base_url": url, "api_key": CANARY} | model,
            }
        ]
    }


def _request(url: str, **model: Any) -> sy.Request:
    return sy.Request(Sums, "chat", sy.Model("small", url, CANARY, **model), name="r")


SOURCES = {
    "mapping": _mapping,
    "values": lambda url, **model: sy.Orchestration([_request(url, **model)]),
    "hidden by pydantic": lambda url, **model: _mapping(url, api_key=SecretStr(CANARY), **model),
}


@pytest.mark.integration
@pytest.mark.parametrize("form", SOURCES)
def test_a_key_is_nowhere_in_what_a_launch_gives(
    form: str, model_url: str, own_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = SOURCES[form](model_url)
    shown: list[str] = [] if form == "mapping" else [repr(source)] * (form == "values")
    resolved = sy.resolve(source)
    shown += [repr(resolved), str(resolved)]
    with caplog.at_level(logging.DEBUG):
        result = sy.launch(
            source, on_event=lambda event: shown.append(f"{event} {event.as_json()}")
        )
    run = result.require_completed()["r"]
    shown += [repr(result), repr(run), result._repr_html_(), run._repr_html_(), str(run.metrics)]
    shown += [run.to_pandas().to_csv(), str(list(run.attempts()))]
    shown += [record.getMessage() for record in caplog.records]
    assert len(shown) > 10
    assert [text for text in shown if CANARY in text] == []
    files = [path for path in own_folder.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("form", SOURCES)
def test_a_key_is_in_no_error(form: str) -> None:
    for model in ({"temperatur": CANARY}, {"api_protocol": CANARY}, {"rpm": CANARY}):
        if form == "values" and "temperatur" in model:
            continue  # a `Model` has no such field
        with pytest.raises(sy.BadInput) as caught:
            sy.launch(SOURCES[form]("http://127.0.0.1:9/v1", **model))
        assert CANARY not in str(caught.value)
        assert CANARY not in repr(caught.value.problems)
        text = "".join(traceback.format_exception(caught.value))
        lines = [line for line in text.splitlines() if CANARY in line]
        assert lines == []


def test_a_model_and_what_holds_one_show_ids_only() -> None:
    model = sy.Model("small", f"http://u:{CANARY}@h/v1", CANARY, extra_headers={"X": CANARY})
    request = sy.Request({"id": "p", "api_key": CANARY}, {"id": "h", "token": CANARY}, model)
    whole = sy.Orchestration([request], defaults={"model": {"api_key": CANARY}})
    assert repr(model) == "Model('small')"
    assert repr(request) == "<Request p × h × small>"
    assert repr(whole) == "<Orchestration 1 request>"
    assert CANARY not in f"{model} {request} {whole} {model!s} {[model]}"


def test_a_key_in_an_instance_s_params_is_in_no_file(own_folder: Path) -> None:
    harness = Say(Say.Params(text=f"the key is {CANARY}", api_key=CANARY))
    events: list[str] = []
    run = sy.run(Sums, harness, on_event=lambda event: events.append(str(event.as_json())))
    assert next(run.attempts()).answer == "the key is [redacted]"
    assert not any(CANARY in event for event in events)
    assert CANARY not in run._repr_html_()
    for path in own_folder.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def test_a_key_from_a_variable_is_shown_as_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDK_KEY", CANARY)
    source = _mapping("http://127.0.0.1:9/v1", api_key="${SDK_KEY}")
    found = sy.resolve(source)
    assert found.requests[0].settings["model"]["api_key"] == "${SDK_KEY}"
    assert found.requests[0].endpoint_host == "127.0.0.1:9"
    assert CANARY not in repr(found)


def test_what_a_harness_logs_or_raises_is_redacted_for_the_caller_s_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Leaky(Say):
        api = 1
        id = "leaky"

        async def run(self, context: sy.HarnessContext) -> sy.HarnessResult:
            raise RuntimeError(f"cannot log in with {self.params.api_key}")

    with caplog.at_level(logging.DEBUG):
        run = sy.run(Sums, Leaky(Leaky.Params(api_key=CANARY)))
    issue = next(run.attempts()).issues[0]
    assert issue.message.endswith("cannot log in with [redacted]")
    assert any("cannot log in with [redacted]" in r.getMessage() for r in caplog.records)
    assert not any(CANARY in f"{r.getMessage()} {r.exc_text} {r.args}" for r in caplog.records)


def test_an_error_of_planning_says_no_key_nor_does_what_it_came_of() -> None:
    class Keyed(Say):
        """Takes a token that must be a number."""

        api = 1
        id = "keyed"

        class Params(BaseModel):  # type: ignore[misc]
            access_token: int = 0
            text: str = ""

        def __init__(self, params: Any) -> None:
            super().__init__(params)
            raise LookupError(f"no such account: {params.text}")

    store = {"id": Keyed, "text": CANARY}
    for harness in ({"id": Keyed, "access_token": CANARY}, store | {"access_token": 5}):
        for call in (sy.launch, sy.resolve):
            request = sy.Request(Sums, harness, sy.Model("none", api_key=CANARY), name="r")
            with pytest.raises(sy.BadInput) as caught:
                call(request)
            shown = traceback.format_exception(caught.value)
            assert [line for line in shown if CANARY in line] == []
            assert CANARY not in repr(caught.value)
            assert "harness" in str(caught.value)
