"""Find components by id, without importing those that are not used.

Built-ins stand in a table of strings; installed packages add ids through entry points; a user may
name `package.module:Class` or `./path/file.py:Class`. Only a user's own configuration reaches
this module: a pack or a candidate's tree never names a class.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from steelyard.components import id_forms
from steelyard.components.catalog import CATALOG, catalog_pack
from steelyard.components.contract import UnusableComponent as UnusableComponent
from steelyard.components.id_forms import IdFault
from steelyard.components.importing import load_class, load_file_class
from steelyard.components.plugins import (
    PlugIn,
    UnreadablePackage,
    missing_module,
    plug_ins,
    unreadable_packages,
)
from steelyard.config.errors import BadInput

log = logging.getLogger(__name__)


class Kind(StrEnum):
    """The kinds of component; the value is the name that commands use."""

    BENCHMARK = "benchmark"
    HARNESS = "harness"
    ENVIRONMENT = "environment"
    ANALYZER = "analyzer"
    SCANNER = "scanner"

    @property
    def group(self) -> str:
        """The entry-point group that adds ids of this kind."""
        plural = {"harness": "harnesses"}.get(self.value, f"{self.value}s")
        return f"steelyard.{plural}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A built-in: where it lives and what it is, as strings."""

    target: str
    """`module:Class`, imported when used."""
    summary: str
    aliases: tuple[str, ...] = ()
    extra: str | None = None
    """The optional dependency group it needs."""


PACK_TARGET: Final = "steelyard.benchmarks.pack:PackBenchmark"
"""Serves every benchmark id that is a path to a folder, or the name of a catalog pack."""
RULES_TARGET: Final = "steelyard.scanners.rule_files.scanner:RuleFileScanner"
"""Makes the class of every scanner id that is a path to a file of rules."""

BUILTINS: Final[Mapping[Kind, Mapping[str, Entry]]] = MappingProxyType(
    {
        Kind.BENCHMARK: {
            "humaneval": Entry(
                "steelyard.benchmarks.humaneval:HumanEval",
                "164 Python functions to complete, scored by running their tests",
                extra="humaneval",
            ),
            "harbor": Entry(
                "steelyard.benchmarks.harbor:Harbor",
                "a folder of tasks in Harbor's format",
            ),
            "terminal_bench_2": Entry(
                "steelyard.benchmarks.harbor:TerminalBench2",
                "Terminal-Bench 2.0, its task folders brought in once",
            ),
            "terminal_bench_2_1": Entry(
                "steelyard.benchmarks.harbor:TerminalBench21",
                "Terminal-Bench 2.1, its task folders brought in once",
            ),
            "terminal_bench_2_verified": Entry(
                "steelyard.benchmarks.harbor:TerminalBench2Verified",
                "Terminal-Bench 2.0 with repaired environments and instructions",
            ),
            **{name: Entry(PACK_TARGET, summary) for name, summary in CATALOG.items()},
        },
        Kind.HARNESS: {
            "chat": Entry(
                "steelyard.harnesses.chat:Chat",
                "one model call, the task's text as it is",
                aliases=("openai_chat",),
            ),
            "command": Entry(
                "steelyard.harnesses.command:Command",
                "any program of the environment, its model calls through the gateway",
            ),
            "claude_code": Entry(
                "steelyard.harnesses.cli_agent.agents:ClaudeCode",
                "Claude Code, installed once and mounted; speaks anthropic",
            ),
            "codex": Entry(
                "steelyard.harnesses.cli_agent.agents:Codex",
                "Codex, installed once and mounted; speaks openai-responses",
            ),
            "mini_swe_agent": Entry(
                "steelyard.harnesses.cli_agent.agents:MiniSweAgent",
                "mini-SWE-agent, installed once and mounted; speaks openai-chat",
            ),
            "terminal_agent": Entry(
                "steelyard.harnesses.terminal_agent:TerminalAgent",
                "a model with a shell, nothing to install; speaks every protocol",
            ),
            "terminus2": Entry(
                "steelyard.harnesses.terminus2:Terminus2",
                "Terminus 2 of the harbor package, in tmux; speaks every protocol",
            ),
            "oracle": Entry("steelyard.harnesses.oracle:Oracle", "plays each task's reference"),
            "nop": Entry("steelyard.harnesses.nop:Nop", "does nothing; the floor"),
        },
        Kind.ENVIRONMENT: {
            "host_process": Entry(
                "steelyard.environments.host_process:HostProcess",
                "programs on this machine, held by nothing",
            ),
            "sandbox": Entry(
                "steelyard.environments.sandbox:Sandbox",
                "bubblewrap: no network, read-only system, limits, no daemon",
            ),
            "docker": Entry(
                "steelyard.environments.docker.provider:Docker",
                "a container of Docker or Podman: images, limits, closed or named networks",
                extra="docker",
            ),
        },
        Kind.ANALYZER: {
            "failures": Entry(
                "steelyard.analyzers.failures:Failures",
                "sorts the attempts that got nothing by what went wrong, with examples",
            ),
        },
        Kind.SCANNER: {
            "reward-hacking": Entry(
                "steelyard.scanners.reward_hacking:RewardHacking",
                "work on the tests, the scorer or the reward in place of the task",
            ),
            "tool-misuse": Entry(
                "steelyard.scanners.tool_misuse:ToolMisuse",
                "destruction outside the workspace, secrets sent out, calls repeated in vain",
            ),
            "sandbox-escape-attempt": Entry(
                "steelyard.scanners.sandbox_escape:SandboxEscape",
                "metadata services, sockets of engines, other processes, namespaces, tunnels",
            ),
            "instruction-injection-compliance": Entry(
                "steelyard.scanners.instruction_injection:InstructionInjection",
                "obeyed what a tool's result or a file said; asks a judge model",
                aliases=("instruction-injection",),
            ),
        },
    }
)


class UnknownComponent(BadInput):
    """An id that nothing answers to."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A known component, for `list`; nothing of it has been imported."""

    id: str
    summary: str
    origin: str
    """`built-in`, or the distribution that brings it."""
    aliases: tuple[str, ...] = ()
    extra: str | None = None
    problem: str | None = None
    """Why it cannot be used, as far as can be told without importing it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A component's class, with the id that records and identities use."""

    id: str
    """Aliases resolved."""
    component: type[Any]


RESERVED: Final[Mapping[Kind, Mapping[str, str]]] = MappingProxyType(
    {Kind.ENVIRONMENT: {"auto": "the rule that picks an environment"}}
)
"""Ids that are no component and that no package may take, each with what it is."""


@cache
def _plugins(kind: Kind) -> tuple[PlugIn, ...]:
    taken = dict.fromkeys(_built_in_ids(kind), "built in")
    return plug_ins(kind.group, {**taken, **RESERVED.get(kind, {})})


def _built_in_ids(kind: Kind) -> list[str]:
    aliases = [alias for entry in BUILTINS[kind].values() for alias in entry.aliases]
    return [*BUILTINS[kind], *aliases]


def extra_of(kind: Kind, component_id: str) -> str | None:
    """Name the optional dependency of our package that a built-in needs; None for none."""
    entry = BUILTINS[kind].get(component_id)
    return entry.extra if entry is not None else None


def list_components(kind: Kind) -> list[Listing]:
    """List the known components of a kind, built-ins first; imports none of them."""
    built_in = [
        Listing(name, entry.summary, "built-in", entry.aliases, entry.extra)
        for name, entry in BUILTINS[kind].items()
    ]
    return built_in + [
        Listing(one.id, one.target, one.origin, problem=_problem(one)) for one in _plugins(kind)
    ]


def _problem(plug_in: PlugIn) -> str | None:
    if plug_in.refusal is not None:
        return f"refused: {plug_in.refusal}"
    missing = missing_module(plug_in)
    return None if missing is None else f"unusable: there is no module {missing}"


def unreadable_plugins(kind: Kind) -> tuple[UnreadablePackage, ...]:
    """List installed packages of which nobody can say what they declare."""
    return unreadable_packages(kind.group)


def canonical_id(kind: Kind, name: str) -> str:
    """Resolve an alias of a built-in; other ids come back as they are."""
    for known, entry in BUILTINS[kind].items():
        if name in entry.aliases:
            return known
    return name


def is_pack_path(name: str) -> bool:
    """True where a benchmark id is a path to a folder, not a name or a class."""
    return id_forms.is_path(name) and not id_forms.is_file_class(name)


def pack_folder(name: str, base_dir: Path) -> Path | None:
    """Give the folder of a benchmark id that is a pack, in the catalog or at a path.

    Args:
        name: the id as written.
        base_dir: what relative paths start from.

    Returns:
        An absolute path, which need not exist; None where the id is no pack.
    """
    return (base_dir / name).resolve() if is_pack_path(name) else catalog_pack(name)


def is_known(kind: Kind, name: str) -> bool:
    """True where the id is in the tables or has the form of a path; imports nothing."""
    if kind is Kind.BENCHMARK and is_pack_path(name):
        return True
    if kind is Kind.SCANNER and id_forms.is_rule_file(name):
        return True
    if id_forms.is_module_class(name) or id_forms.is_file_class(name):
        return True
    return canonical_id(kind, name) in known_ids(kind)


def id_fault(kind: Kind, name: str, base_dir: Path | None) -> IdFault | None:
    """Say what is wrong with an id, as far as can be told without an import.

    Args:
        kind: what it must be.
        name: the id as written.
        base_dir: what relative paths start from; None: files are not looked at.

    Returns:
        None where it leads somewhere.
    """
    if is_known(kind, name):
        if base_dir is None:
            return None
        if kind is Kind.BENCHMARK and is_pack_path(name):
            return id_forms.missing_pack(name, base_dir)
        if kind is Kind.SCANNER and id_forms.is_rule_file(name):
            return id_forms.missing_rule_file(name, base_dir)
        is_file = id_forms.is_file_class(name)
        return id_forms.missing_file(kind.value, name, base_dir) if is_file else None
    meant = id_forms.meant(kind.value, name, base_dir) if base_dir is not None else None
    known = known_ids(kind)
    near = meant or next(iter(difflib.get_close_matches(name.lower(), known, n=1)), None)
    remedy = f"did you mean {near}? " if near else ""
    if meant is None:
        plural = f"{kind.value}{'es' if kind.value.endswith('s') else 's'}"
        shown = f"(`steelyard list {plural}` shows them)"
        remedy += f"known: {', '.join(known) or 'none'} {shown}"
    return IdFault(f"unknown {kind.value} {name!r}", remedy.strip())


def known_ids(kind: Kind) -> list[str]:
    """Every id and alias, for messages and checks; imports nothing."""
    ids = [*BUILTINS[kind], *(one.id for one in _plugins(kind)), *_built_in_ids(kind)]
    return list(dict.fromkeys(ids))


def find(kind: Kind, name: str, *, base_dir: Path | None = None) -> Found:
    """Import the component that an id names.

    Args:
        kind: what it must be.
        name: an id, an alias, `package.module:Class`, `./file.py:Class`, for a benchmark the
            path of a pack's folder, or for a scanner that of a file of rules.
        base_dir: what relative paths start from; the working directory by default.

    Raises:
        UnknownComponent: nothing has that id.
        BadInput: a file of rules is not what it should be; all that is wrong with it.
        UnusableComponent: it cannot be imported, is not of that kind, declares another `api`, or
            is an id that two packages declare. A package that declares the id of a built-in is
            refused, with a warning, and the built-in found.
    """
    name = canonical_id(kind, name)
    if kind is Kind.BENCHMARK and is_pack_path(name):
        return Found(name, load_class(PACK_TARGET, kind.value, name))
    if kind is Kind.SCANNER and id_forms.is_rule_file(name):
        folder = base_dir or Path.cwd()
        if (missing := id_forms.missing_rule_file(name, folder)) is not None:
            raise UnknownComponent(missing.message, remedy=missing.remedy)
        rules = load_class(RULES_TARGET, kind.value, name)
        return Found(name, rules.of_file(folder / name, shown=name))
    if id_forms.is_file_class(name):
        return Found(name, load_file_class(name, kind.value, base_dir or Path.cwd()))
    if id_forms.is_module_class(name):
        return Found(name, load_class(name, kind.value, name))
    declared = [one for one in _plugins(kind) if one.id == name]
    if name in BUILTINS[kind]:
        for one in declared:
            _warn_of(one, kind)
        return Found(name, load_class(BUILTINS[kind][name].target, kind.value, name))
    if declared:
        if declared[0].refusal is not None:
            raise UnusableComponent(
                f"the {kind.value} {name!r} of {declared[0].origin} is refused: "
                f"{declared[0].refusal}",
                remedy="rename its entry point, or uninstall the package",
            )
        return Found(
            name, load_class(declared[0].target, kind.value, name, declared_id=declared[0].id)
        )
    fault = id_fault(kind, name, base_dir or Path.cwd())
    message = fault.message if fault is not None else f"unknown {kind.value} {name!r}"
    raise UnknownComponent(message, remedy=fault.remedy if fault is not None else None)


@cache
def _warn_of(plug_in: PlugIn, kind: Kind) -> None:
    """Once a process: its user may have meant the plug-in."""
    log.warning(
        "the %s %r of %s is refused: %s", kind.value, plug_in.id, plug_in.origin, plug_in.refusal
    )
