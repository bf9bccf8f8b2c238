"""What is wrong with a task.toml is said at once, each fault at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.document import read_document, refusals
from steelyard.config.errors import Problem


def problems_of(tmp_path: Path, text: str) -> list[Problem]:
    path = tmp_path / "task.toml"
    path.write_text(text)
    return read_document(path, shown="task.toml")[1]


def said(problems: list[Problem]) -> list[tuple[int | None, str, str]]:
    return [(one.where.line, one.message, one.remedy or "") for one in problems]


def test_unknown_fields_are_named_with_their_lines_and_the_nearest_names(tmp_path: Path) -> None:
    found = said(
        problems_of(
            tmp_path,
            'schema_version = "1.4"\n'
            "[agent]\n"
            "timeout_secs = 5\n"
            "[environment]\n"
            "cpu = 1\n"
            "[verifier.environment]\n"
            'docker_imgae = "x"\n'
            "[[steps]]\n"
            'name = "one"\n'
            "min_rewards = 1\n",
        )
    )
    assert [(line, message) for line, message, _ in found] == [
        (3, "unknown field 'timeout_secs'"),
        (5, "unknown field 'cpu'"),
        (7, "unknown field 'docker_imgae'"),
        (10, "unknown field 'min_rewards'"),
    ]
    near = [remedy.partition("?")[0] for _, _, remedy in found]
    assert near == [
        f"did you mean {name}" for name in ("timeout_sec", "cpus", "docker_image", "min_reward")
    ]


def test_missing_fields_are_named_at_the_table_that_lacks_them(tmp_path: Path) -> None:
    text = (
        '[task]\nversion = "1"\n[[steps]]\nmin_reward = 1\n[environment.healthcheck]\nretries = 3\n'
    )
    found = said(problems_of(tmp_path, text))
    assert sorted((line, message) for line, message, _ in found) == [
        (1, "the required field name is missing"),
        (3, "the required field name is missing"),
        (5, "the required field command is missing"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('schema_version = "2.0"', 1, "not a version of the format"),
        ("schema_version = 1.4", 1, "not a version of the format"),
        ("[agent]\ntimeout_sec = 0", 2, "found 0"),
        ("[agent]\ntimeout_sec = inf", 2, "found inf"),
        ('[agent]\ntimeout_sec = "5"', 2, "found the text '5'"),
        ("[environment]\ncpus = nan", 2, "found nan"),
        ('[environment]\nmemory = "2 lots"', 2, "is no size"),
        ('[environment]\nmemory = "2G"\nmemory_mb = 1', 2, "memory and memory_mb differ"),
        ('[environment]\nworkdir = "app"', 2, "found the text 'app'"),
        ('[environment]\nnetwork_mode = "open"', 2, "found the text 'open'"),
        ('[environment]\nallowed_hosts = ["a.example"]', 2, "allowed_hosts belongs to"),
        ('[environment]\nnetwork_mode = "allowlist"', 1, "names no host"),
        (
            '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.example", "http://b"]',
            3,
            "is no host",
        ),
        ('[verifier.env]\n"A-B" = "1"', 2, "is no name of a variable"),
        (
            '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1',
            2,
            "contradicts",
        ),
        ('artifacts = ["../x"]', 1, "may not hold `..`"),
        ('[[steps]]\nname = "a/b"', 2, "cannot name a folder"),
        ('[[steps]]\nname = "a"\n[[steps]]\nname = "A"', 4, "two steps are called"),
        ('multi_step_reward_strategy = "mean"', 1, "belongs to a task with [[steps]]"),
        ("steps = []", 1, "steps is empty"),
        ('version = "1.0"\nschema_version = "1.0"', 1, "both version and schema_version"),
        ('[task]\nname = "no slash"', 2, "found the text 'no slash'"),
    ],
)
def test_each_wrong_value_is_said_at_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    (problem,) = problems_of(tmp_path, text + "\n")
    assert words in problem.message
    assert problem.where.line == line
    assert problem.remedy or words


def test_old_and_new_forms_are_read(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(
        'version = "1.0"\n[metadata]\nauthor_name = "A"\nanything = [1, {x = 2}]\n'
        '[environment]\nmemory = "2G"\nstorage = "512M"\nallow_internet = false\ncpus = 1\n'
        "[agent]\ntimeout_sec = 900\n"
    )
    document, problems = read_document(path, shown="task.toml")
    assert problems == []
    assert document is not None
    environment = document.table.environment
    assert (environment.memory, environment.storage, environment.cpus) == (2048, 512, 1)
    assert document.table.agent.timeout_sec == 900
    assert list(refusals(document)) == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[environment]\ngpus = 1", 2, "GPU"),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "2x2"', 1, "TPU"),
        ('[environment]\nos = "windows"', 2, "windows"),
        ('[environment]\nskills_dir = "/skills"', 2, "skills"),
        ('[[environment.mcp_servers]]\nname = "x"\nurl = "http://x"', 1, "tool servers"),
        ('[agent]\nuser = "agent"', 2, "as the user 'agent'"),
        ("[verifier]\nuser = 1000", 2, "as the user 1000"),
        ('[[verifier.collect]]\ncommand = "x"\nservice = "db"', 3, "service 'db'"),
        ('artifacts = [{ source = "/x", service = "db" }]', 1, "service 'db'"),
    ],
)
def test_what_this_version_cannot_do_is_refused_at_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = tmp_path / "task.toml"
    path.write_text(text + "\n")
    document, problems = read_document(path, shown="task.toml")
    assert problems == []
    assert document is not None
    (refused,) = refusals(document)
    assert words in refused.message
    assert refused.where.line == line


@pytest.mark.parametrize(
    "text", ["[environment]\ngpus = 0", '[agent]\nuser = "root"', "[verifier]\nuser = 0"]
)
def test_what_asks_for_nothing_special_is_not_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "task.toml"
    path.write_text(text + "\n")
    document, _ = read_document(path, shown="task.toml")
    assert document is not None
    assert list(refusals(document)) == []
