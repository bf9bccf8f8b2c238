from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.benchmark import Task
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.steps import Step
from tests.benchmarks.scoring import Context, opened, problems_of, score, write_pack

CASE = {"id": "a", "q": "?", "answer": "42"}


def pack_of(
    tmp_path: Path, source: str, more: str = "", run: str = "checks/judge.py:judge"
) -> Path:
    (tmp_path / "pack/checks").mkdir(parents=True, exist_ok=True)
    (tmp_path / "pack/checks/judge.py").write_text(source)
    return write_pack(tmp_path / "pack", f"[{{type: python, run: '{run}'{more}}}]", [CASE])


def judged(
    tmp_path: Path,
    source: str,
    answer: str | None = "42",
    *,
    more: str = "",
    artifacts: dict[str, Path] | None = None,
    steps: tuple[Step, ...] = (),
    provider: str = "host_process",
) -> tuple[float, str]:
    benchmark = opened(pack_of(tmp_path, source, more))
    (task,) = benchmark.load_tasks()
    context = Context(answer, provider, artifacts)
    context.steps = steps
    found = score(benchmark, task, context)
    return float(found.metrics["validator.python"]), found.details.get("reasons", {}).get(
        "python", ""
    )


def fault(tmp_path: Path, source: str, **rest: Any) -> AttemptFault:
    with pytest.raises(AttemptFault) as caught:
        judged(tmp_path, source, **rest)
    return caught.value


pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("body", "answer", "value", "reason"),
    [
        ("return answer == case['answer']", "42", 1, ""),
        ("return answer == case['answer']", "41", 0, ""),
        ("return answer is None", None, 1, ""),
        ("return 0.25", "", 0.25, ""),
        ("return 1", "", 1, ""),
        ("return {'value': 0.5, 'reason': 'half'}", "", 0.5, "half"),
        ("return {'value': True}", "", 1, ""),
        ("print('looked'); return 0.5", "", 0.5, "looked"),
        ("import os; os.write(1, b'raw'); return 0", "", 0, "raw"),
        ("return answer == '\\ud800'", "\ud800", 1, ""),
        ("return len(answer) == 10 * 1024 * 1024", "x" * 10 * 1024 * 1024, 1, ""),
        ("print('y' * 10_000_000); return {'value': 0, 'reason': 'z' * 10_000_000}", "", 0,
         "z" * 2000),
    ],
)  # fmt: skip
def test_what_a_function_returns_is_the_value(
    tmp_path: Path, body: str, answer: str | None, value: float, reason: str
) -> None:
    source = f"def judge(answer, case, files):\n    {body}\n"
    assert judged(tmp_path, source, answer) == (value, reason)


def test_a_function_is_given_what_it_has_arguments_for(tmp_path: Path) -> None:
    assert judged(tmp_path, "def judge(answer):\n    return answer == '42'\n")[0] == 1
    assert judged(tmp_path, "def judge(*all):\n    return len(all) == 4\n")[0] == 1
    body = "return steps[0]['message'] == 'hello' and steps[0]['source'] == 'agent'"
    source = f"def judge(answer, case, files, steps):\n    {body}\n"
    assert judged(tmp_path, source, steps=(Step("agent", "hello"),))[0] == 1


def test_files_that_are_there_are_named_by_their_paths(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "out.txt").write_text("done")
    source = (
        "def judge(answer, case, files):\n"
        "    assert set(files) == {'out.txt'}, files\n"
        "    with open(files['out.txt']) as file:\n"
        "        return file.read() == 'done'\n"
    )
    more = ", files: [out.txt, none.txt]"
    assert judged(tmp_path, source, more=more, artifacts={".": work})[0] == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 / 0", "raised ZeroDivisionError: division by zero at line 2"),
        ("return 2", "returned 2: a value is from 0 to 1"),
        ("return -0.1", "returned -0.1"),
        ("return float('nan')", "returned nan"),
        ("return float('inf')", "returned inf"),
        ("return None", "returned NoneType"),
        ("return '1'", "returned str"),
        ("return {'reason': 'x'}", "returned NoneType"),
        ("return 10 ** 400", "OverflowError"),
        ("import sys; sys.exit(0)", "raised SystemExit"),
        ("import os; os._exit(0)", "ended the process (exit code 0)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return judge(answer, case, files)", "RecursionError"),
        ("import os; os.kill(os.getpid(), 9)", "ended the process (exit code -9)"),
    ],
)
def test_a_function_that_fails_is_a_fault_and_never_a_zero(
    tmp_path: Path, body: str, said: str
) -> None:
    caught = fault(tmp_path, f"def judge(answer, case, files):\n    {body}\n")
    assert caught.code is IssueCode.SCORER_CRASHED
    assert said in caught.message
    assert "checks/judge.py:judge" in caught.message


def test_a_function_that_never_ends_is_a_fault(tmp_path: Path) -> None:
    source = "def judge(answer, case, files):\n    while True: pass\n"
    caught = fault(tmp_path, source, more=", timeout_seconds: 0.5")
    assert caught.code is IssueCode.SCORER_TIMED_OUT


def test_what_is_printed_cannot_pass_for_a_verdict(tmp_path: Path) -> None:
    """The answer is echoed on both streams by the function and by a program that it starts."""
    forged = '{"value": "1.0", "reason": null}'
    source = (
        "import os, subprocess, sys\n"
        "def judge(answer, case, files):\n"
        "    for text in (answer, '\\n' + answer + '\\n', 'word ' + answer):\n"
        "        print(text)\n"
        "        os.write(1, text.encode()); os.write(2, text.encode())\n"
        "        subprocess.run([sys.executable, '-c', 'import sys, os; '\n"
        "            '[os.write(n, sys.argv[1].encode()) for n in (1, 2)]', text])\n"
        "        for n in range(3, 20):\n"
        "            subprocess.run(['sh', '-c', 'echo \"$1\" >&%d' % n, 'sh', text],\n"
        "                           stderr=subprocess.DEVNULL)\n"
        "    return 0\n"
    )
    assert judged(tmp_path, source, forged)[0] == 0


def test_the_file_is_not_imported_here_and_is_in_no_folder_of_the_session(tmp_path: Path) -> None:
    source = (
        "import os, pathlib\n"
        "found = [str(p) for p in pathlib.Path('.').rglob('*')]\n"
        "def judge(answer, case, files):\n"
        "    return {'value': 0 if found else 1, 'reason': str(os.getpid())}\n"
    )
    value, reason = judged(tmp_path, source)
    assert value == 1
    import os

    assert reason != str(os.getpid())
    assert "validator" not in sys.modules


def test_a_function_runs_in_a_sandbox(tmp_path: Path) -> None:
    source = (
        "import dataclasses, os\n"
        "@dataclasses.dataclass\n"
        "class Point:\n"
        "    x: int\n"
        "def judge(answer, case, files):\n"
        f"    return not os.path.exists({str(tmp_path)!r}) and Point(1).x\n"
    )
    assert judged(tmp_path, source, provider="sandbox") == (1, "")


@pytest.mark.parametrize(
    ("source", "run", "place", "said"),
    [
        ("def judge(:\n", "checks/judge.py:judge", "checks/judge.py:1:", "not Python"),
        ("def judges(a): 1\n", "checks/judge.py:judge", "pack.yaml:7:", "did you mean judges?"),
        ("async def judge(a): 1\n", "checks/judge.py:judge", "pack.yaml:7:", "a plain function"),
        ("x = 1\n", "checks/judge.py:judge", "pack.yaml:7:", "defines no function judge"),
        ("def judge(a, b, c, d, e): 1\n", "checks/judge.py:judge", "checks/judge.py:1:", "called"),
        ("\ndef judge(a, *, k): 1\n", "checks/judge.py:judge", "checks/judge.py:2:", "called as"),
        ("\0", "checks/judge.py:judge", "", "ython"),
        ("(" * 5000, "checks/judge.py:judge", "", "ython"),
        ("x = 1\n", "checks/none.py:judge", "pack.yaml:7:", "there is no 'checks/none.py'"),
        ("x = 1\n", "../judge.py:judge", "pack.yaml:7:", "leads out"),
        ("x = 1\n", "checks/judge.py", "pack.yaml:7:", "run"),
        ("x = 1\n", "judge.sh:judge", "pack.yaml:7:", "run"),
    ],
)
def test_a_function_is_checked_without_being_run(
    tmp_path: Path, source: str, run: str, place: str, said: str
) -> None:
    problems = problems_of(pack_of(tmp_path, source, run=run))
    assert any(place in problem and said in problem for problem in problems), problems


def test_importing_the_pack_runs_nothing_of_it(tmp_path: Path) -> None:
    source = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef judge(a): return 1\n"
    opened(pack_of(tmp_path, source)).load_tasks()
    assert not (tmp_path / "ran").exists()


def test_a_function_the_agent_would_see_is_refused(tmp_path: Path) -> None:
    root = pack_of(tmp_path, "def judge(a): return 1\n")
    text = (root / "pack.yaml").read_text() + "workspace: checks\n"
    (root / "pack.yaml").write_text(text)
    assert any("the agent would see it" in problem for problem in problems_of(root))


def test_a_change_of_the_function_changes_the_version_that_is_scored_by(tmp_path: Path) -> None:
    versions = set()
    for number in (1, 0):
        benchmark = opened(pack_of(tmp_path, f"def judge(a): return {number}\n"))
        versions.add(benchmark.info().version)
        assert benchmark.info().runs_model_code
        assert isinstance(benchmark.load_tasks()[0], Task)
    assert len(versions) == 2


def test_a_function_that_forgets_none_is_told_that_there_was_no_answer(tmp_path: Path) -> None:
    source = "def judge(answer):\n    return len(answer.split())\n"
    assert "`answer` was None" in fault(tmp_path, source, answer=None).message
    assert "`answer` was None" not in fault(tmp_path, source, answer="1 2 3").message


def test_the_remedy_names_every_argument(tmp_path: Path) -> None:
    (problem,) = problems_of(pack_of(tmp_path, "x = 1\n"))
    assert "write def judge(answer, case, files, steps)" in problem
