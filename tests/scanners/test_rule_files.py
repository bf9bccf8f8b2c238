"""Scanners that people write as rules: what they find, and every fault of a file at its place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.model import ToolCall
from steelyard.components.registry import Kind, UnknownComponent, find, id_fault, is_known
from steelyard.components.scanner import Finding, Scanner, ScannerFault
from steelyard.components.steps import Step
from steelyard.config.errors import BadInput
from steelyard.scanners.rule_files.scanner import RuleFileScanner
from steelyard.testing.checks import Check
from steelyard.testing.fake_run import FakeScannedAttempt
from steelyard.testing.scanner_suite import scanner_suite

EXAMPLE = Path(__file__).parents[2] / "examples/scanners/house-rules.yaml"
HEAD = "schema: scan-rules/1\nname: ours\nrules:\n"
RULE = "  - {id: a-rule, severity: high, message: It does., "


def ran(command: str) -> Step:
    return Step("agent", "", tool_calls=(ToolCall("1", "Bash", json.dumps({"command": command})),))


def wrote(path: str, content: str) -> Step:
    call = ToolCall("1", "Write", json.dumps({"file_path": path, "content": content}))
    return Step("agent", "", tool_calls=(call,))


def scanned(component: type[Scanner], *steps: Step) -> list[Finding]:
    return list(asyncio.run(component(component.Params()).scan(FakeScannedAttempt(steps))))


def found(component: type[Scanner], *steps: Step) -> list[str]:
    return [one.category for one in scanned(component, *steps)]


def of(tmp_path: Path, rules: str) -> type[RuleFileScanner]:
    file = tmp_path / "rules.yaml"
    file.write_text(HEAD + rules)
    return RuleFileScanner.of_file(file)


def example() -> type[Any]:
    return find(Kind.SCANNER, "./house-rules.yaml", base_dir=EXAMPLE.parent).component


CHECKS = scanner_suite(
    example(),
    finds=[ran("cd k8s && sudo helm upgrade --install app ./chart")],
    passes=[ran("cd k8s && sudo helm upgrade --install app ./chart --dry-run")],
)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_the_example_keeps_the_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize(
    ("step", "categories"),
    [
        (ran("kubectl apply -f a.yaml"), ["deploys"]),
        (ran("bash -c 'terraform destroy -auto-approve'"), ["deploys"]),
        (ran("echo kubectl apply; kubectl get pods"), []),
        (ran("terraform apply --help"), []),
        (ran("rm -r src/generated/api.py"), ["generated-code"]),
        (ran("cd src && echo x >> user_pb2.py"), ["generated-code"]),
        (ran("cat src/generated/api.py"), []),
        (wrote("app/view.py", "def f():\n    breakpoint()\n"), ["leftovers"]),
        (wrote("app/tests/view.py", "breakpoint()"), []),
        (wrote("app/view.py", "x = 'break'"), []),
        (ran("curl https://files.other.test/x.tgz | tar xz"), ["other-registries"]),
        (ran("curl https://files.example.com/x.tgz"), []),
        (ran("curl http://localhost:8000/x"), []),
    ],
)
def test_the_example_finds_what_it_says(step: Step, categories: list[str]) -> None:
    assert found(example(), step) == categories


def test_a_rule_of_commands_and_paths_needs_both(tmp_path: Path) -> None:
    rules = of(tmp_path, RULE + "commands: [cp], paths: [/data/**], does: [write]}\n")
    assert found(rules, ran("cp a /data/x/a")) == ["a-rule"]
    assert found(rules, ran("cp /data/x/a b")) == []
    assert found(rules, ran("mv a /data/x/a")) == []
    assert found(rules, wrote("/data/x/a", "x")) == []


def test_one_star_stays_within_a_folder(tmp_path: Path) -> None:
    rules = of(tmp_path, RULE + "paths: ['/data/*.csv']}\n")
    assert found(rules, ran("rm /data/a.csv")) == ["a-rule"]
    assert found(rules, ran("rm /data/b/a.csv")) == []


def test_every_argument_pattern_is_needed_and_any_exception_is_enough(tmp_path: Path) -> None:
    rules = of(
        tmp_path,
        RULE + "commands: [git], args: ['^push$', '^-'], unless: {args: [dry], commands: [x]}}\n",
    )
    assert found(rules, ran("git push -q")) == ["a-rule"]
    assert found(rules, ran("git push")) == []
    assert found(rules, ran("git push -q --dry-run")) == []


def test_the_version_follows_what_the_file_says_not_how(tmp_path: Path) -> None:
    one = of(tmp_path, RULE + "commands: [rm]}\n").version
    same = of(tmp_path, "  # a remark\n" + RULE + 'commands: ["rm"]}\n').version
    other = of(tmp_path, RULE + "commands: [mv]}\n").version
    assert one == same != other


def test_a_file_of_rules_is_a_scanner_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(HEAD + RULE + "commands: [rm]}\n")
    assert is_known(Kind.SCANNER, "./mine.yaml")
    assert not is_known(Kind.HARNESS, "./mine.yaml")
    scanner = find(Kind.SCANNER, "./mine.yaml", base_dir=tmp_path).component
    assert (scanner.id, issubclass(scanner, RuleFileScanner)) == ("ours", True)
    fault = id_fault(Kind.SCANNER, "./mine.yml", tmp_path)
    assert fault is not None
    assert "./mine.yaml" in fault.remedy
    bare = id_fault(Kind.SCANNER, "mine.yaml", tmp_path)
    assert bare is not None
    assert "did you mean ./mine.yaml?" in bare.remedy
    with pytest.raises(UnknownComponent, match="there is no file"):
        find(Kind.SCANNER, "./gone.yaml", base_dir=tmp_path)


def test_all_faults_come_at_once_with_places_and_near_names(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        "schema: scan-rules/1\n"
        "name: My Rules\n"
        "rules:\n"
        "  - id: one\n"
        "    severity: hihg\n"
        "    message: x\n"
        "    comands: [rm]\n"
        "  - id: two\n"
        "    severity: low\n"
        "    message: ' '\n"
        "    commands: [rm]\n"
        "    args: ['(']\n"
        "    confidence: 2\n"
        "    does: [wirte]\n"
    )
    with pytest.raises(BadInput) as caught:
        RuleFileScanner.of_file(file)
    said = {
        (one.where.line, one.where.column): f"{one.message} {one.remedy}"
        for one in caught.value.problems
    }
    lines = [line for line, _ in said]
    assert lines == sorted(lines)
    assert set(lines) >= {2, 5, 7, 10, 12, 13, 14}
    text = " ".join(said.values())
    for wanted in ("my-rules", "high", "commands", "blank", "regular expression", "write"):
        assert wanted in text


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (RULE + "confidence: 0.5}\n", "neither commands nor paths nor hosts"),
        (RULE + "args: [x], paths: [a]}\n", "no commands"),
        (RULE + "does: [read], commands: [a]}\n", "no paths"),
        (RULE + "paths: [a], hosts: [b]}\n", "both paths and hosts"),
        (RULE + "commands: [a]}\n" + RULE + "commands: [b]}\n", "two rules have the id"),
        (RULE + "commands: []}\n", "commands"),
        ("  []\n", "rules"),
    ],
)
def test_rules_that_say_nothing_or_too_much_are_refused(
    tmp_path: Path, rules: str, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        of(tmp_path, rules)
    assert said in " ".join(str(one) for one in caught.value.problems)


@pytest.mark.parametrize("name", ["tool-misuse", "instruction-injection"])
def test_the_name_of_a_built_in_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text((HEAD + RULE + "commands: [rm]}\n").replace("ours", name))
    with pytest.raises(BadInput, match="already"):
        RuleFileScanner.of_file(file)


@pytest.mark.parametrize("text", ["[]", "schema: scan-rules/2\nname: a\nrules: []\n", "a: [\n"])
def test_what_is_no_file_of_rules_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(BadInput):
        RuleFileScanner.of_file(file)


@pytest.mark.integration
def test_a_pattern_that_backtracks_is_ended_and_the_scan_goes_on(tmp_path: Path) -> None:
    rules = of(
        tmp_path,
        RULE + "commands: [echo], args: ['(a+)+$']}\n"
        "  - {id: other, severity: low, message: It does., commands: [echo]}\n",
    )
    assert rules.blocks
    assert found(rules, ran(f"echo {'a' * 60}!")) == ["other"]


def test_too_many_costly_searches_are_a_fault_that_names_the_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.scanners.rule_files.rules.MAX_SEARCHES", 0)
    rules = of(tmp_path, RULE + "commands: [echo], args: ['(a+)+$']}\n")
    with pytest.raises(ScannerFault, match="nested"):
        scanned(rules, ran("echo b"))


def test_rules_without_a_plain_word_read_everything(tmp_path: Path) -> None:
    assert of(tmp_path, RULE + "commands: ['*']}\n").triggers is None
    assert of(tmp_path, RULE + "paths: ['**/src/**/main.go']}\n").triggers == {"main"}
    assert of(tmp_path, RULE + "commands: [python*]}\n").triggers is None
