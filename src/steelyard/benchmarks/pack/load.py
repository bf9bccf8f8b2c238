"""Load a pack: its file, templates, folders and validators, checked as a whole.

Its cases are read by `case_checks.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.benchmarks.pack.digest import data_digest, folder_digest
from steelyard.benchmarks.pack.document import Document, parse_pack, shown_path
from steelyard.benchmarks.pack.healing import Healed
from steelyard.benchmarks.pack.judging.static_checks import judge_problems
from steelyard.benchmarks.pack.matching import BadPattern, Matcher, matcher
from steelyard.benchmarks.pack.paths import (
    PathProblem,
    file_in,
    folder_in,
    overlaps,
    relative_parts,
)
from steelyard.benchmarks.pack.schema import (
    PACK_FILE,
    PackFile,
    ReferenceFiles,
)
from steelyard.benchmarks.pack.template import ATTEMPT_VARIABLES, Template
from steelyard.benchmarks.pack.tool_calling.expected import with_templates
from steelyard.benchmarks.pack.validators.build import build_validators
from steelyard.benchmarks.pack.validators.contract import Validator
from steelyard.benchmarks.pack.validators.making import TemplateSet
from steelyard.components.artifacts import EvaluationMode
from steelyard.components.benchmark import EnvironmentNeeds, TaskLimits
from steelyard.components.environment import Resources
from steelyard.components.id_forms import missing_pack
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.source import read_file
from steelyard.config.validation import in_order

CASES_FOLDER = "cases"
"""`cases/<id>/` holds what is laid over the working folder of that case alone."""


@dataclass(frozen=True, slots=True)
class ReferenceTemplates:
    """What `oracle` plays, for every case."""

    answer: Template | None
    files: Template | None
    command: tuple[Template, ...] | None
    tool_calls: tuple[tuple[str, Any], ...] = ()
    """Names, and arguments whose texts are templates."""


@dataclass(frozen=True, slots=True)
class PackPathUse:
    """A path that the pack names, perhaps different for each case."""

    template: Template
    field: tuple[str | int, ...]
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Pack:
    """A loaded pack; its cases are read by `case_checks.load_cases`."""

    root: Path
    document: Document
    file: PackFile
    messages: tuple[tuple[str, Template], ...]
    reference: ReferenceTemplates | None
    validators: tuple[Validator, ...]
    extract: Matcher | None
    workspace: Path | None
    case_folders: frozenset[str]
    """Ids that have a folder of their own below `cases/`."""
    collect: tuple[str, ...]
    reads_steps: bool
    """True where scoring looks at the trajectory."""
    needs: EnvironmentNeeds
    limits: TaskLimits
    paths: tuple[PackPathUse, ...]
    required: dict[str, tuple[str | int, ...]]
    """The fields every case must have, and the first template that reads each."""
    shown_fields: tuple[str, ...]
    """The fields that the agent can see, sorted."""
    shown_digest: str
    """Of all that the agent can see in every case: prompts, workspace, needs, limits."""
    scoring_digest: str
    digest: str
    """Of every file of the pack."""
    healed: Healed
    """What of it could be read; the rest stands for itself only in a pack without problems."""
    faulty: frozenset[str | int | None]
    """The numbers of the validators of which a problem was said already."""
    unreadable: frozenset[str | int | None]
    """Those of them that no case can be held against."""


def load_pack(path: Path) -> Pack:
    """Load a pack's folder (or the folder of its `pack.yaml`); the cases are not read.

    Raises:
        BadInput: all that is wrong with it, each with file, line and column.
    """
    pack, problems = read_pack(path)
    if pack is None or problems:
        raise BadInput.of(problems)
    return pack


def read_pack(path: Path) -> tuple[Pack | None, list[Problem]]:
    """Load a pack as far as it can be read, so that its cases can be looked at all the same.

    Returns:
        The pack, None where its file is too far from the schema, and all that is wrong with it.

    Raises:
        BadInput: there is no pack, or its file is not well formed.
    """
    fault = missing_pack(shown_path(path), Path.cwd())
    if fault is not None:
        raise BadInput(fault.message, remedy=fault.remedy)
    root = (path.parent if path.name == PACK_FILE and path.is_file() else path).resolve()
    document = Document(read_file(root / PACK_FILE, shown=shown_path(root / PACK_FILE)))
    found, problems = parse_pack(document)
    if found is None:
        return None, problems
    loader = _Loader(root, document, found)
    pack = loader.load()
    problems += filter(found.speaks_of_pack, loader.problems)
    # A path is compiled once to be used and once to be looked up: one complaint is enough.
    return pack, in_order(problems)


class _Loader:
    """Gathers problems while the parts of a pack are made."""

    def __init__(self, root: Path, document: Document, found: Healed) -> None:
        self.root, self.document, self.file, self.found = root, document, found.file, found
        self.templates = TemplateSet(document)
        self.problems: list[Problem] = self.templates.problems
        self.paths: list[PackPathUse] = []

    def load(self) -> Pack:
        file = self.file
        messages = self._messages()
        shown = self.templates.required.copy()
        self.templates.required.clear()
        reference = self._reference()
        validators = build_validators(file.scoring, self.root, self.templates)
        for name in ATTEMPT_VARIABLES & self.templates.required.keys():
            self.problems.append(
                self.document.problem(f"only prompts see {name!r}", *self.templates.required[name])
            )
        has_answer = reference is not None and reference.answer is not None
        self.problems += judge_problems(self.document, file, messages, has_reference=has_answer)
        self._scoring_paths()
        workspace = self._workspace()
        case_folders = self._case_folders()
        self._keep_hidden(workspace)
        collect = self._collect(bool(workspace or case_folders))
        fields = sorted(
            {name for _, template in messages for name in template.variables} - ATTEMPT_VARIABLES
        )
        needs = EnvironmentNeeds(
            image=file.environment.image,
            network=file.environment.network,
            resources=Resources(cpu=file.environment.cpu, memory_mb=file.environment.memory_mb),
        )
        return Pack(
            root=self.root,
            document=self.document,
            file=file,
            messages=messages,
            reference=reference,
            validators=tuple(validators),
            extract=self._extract(),
            workspace=workspace,
            case_folders=case_folders,
            collect=collect,
            reads_steps=any(validator.reads_steps for validator in validators),
            needs=needs,
            limits=self._limits(),
            paths=tuple(self.paths),
            required={
                name: path
                for name, path in {**self.templates.required, **shown}.items()
                if name not in ATTEMPT_VARIABLES and name != "id"
            },
            shown_fields=tuple(fields),
            shown_digest=self._shown_digest(messages, workspace, needs, collect),
            scoring_digest=data_digest(_scoring_rules(file)),
            digest=self._digest(self.root),
            healed=self.found,
            faulty=frozenset(self.templates.faulty),
            unreadable=frozenset(self.templates.unreadable) | self.found.lost_validators,
        )

    def _messages(self) -> tuple[tuple[str, Template], ...]:
        file = self.file
        if file.messages is not None:
            return tuple(
                (message.role, self.templates.compile(message.content, "messages", n, "content"))
                for n, message in enumerate(file.messages)
            )
        prompt = ("user", self.templates.compile(file.prompt, "prompt"))
        if file.system is None:
            return (prompt,)
        return (("system", self.templates.compile(file.system, "system")), prompt)

    def _reference(self) -> ReferenceTemplates | None:
        found = self.file.reference
        if found is None:
            return None
        if not isinstance(found, ReferenceFiles):
            return ReferenceTemplates(self.templates.compile(found, "reference"), None, None)
        command = None
        if found.command is not None:
            command = tuple(self.templates.each(found.command, "reference", "command"))
        files = self.templates.maybe(found.files, "reference", "files")
        if files is not None:
            self._use_path(files, ("reference", "files"), is_folder=True)
        answer = self.templates.maybe(found.answer, "reference", "answer")
        calls = tuple(
            (call.name, with_templates(call.arguments, self.templates.compile, path))
            for number, call in enumerate(found.tool_calls or ())
            for path in [("reference", "tool_calls", number, "arguments")]
        )
        return ReferenceTemplates(answer, files, command, calls)

    def _scoring_paths(self) -> None:
        for number, spec in enumerate(self.file.scoring.validators):
            fields = [(name, True) for name in spec.PACK_FOLDERS]
            for name, is_folder in [*fields, *((name, False) for name in spec.PACK_FILES)]:
                source = spec.pack_path(name)
                if source is not None:
                    path = ("scoring", "validators", number, name)
                    template = self.templates.compile(source, *path)
                    self._use_path(template, path, is_folder=is_folder)

    def _use_path(
        self, template: Template, field: tuple[str | int, ...], *, is_folder: bool
    ) -> None:
        self.paths.append(PackPathUse(template, field, is_folder))
        if template.is_constant:
            self._looked_up(template.source, field, is_folder=is_folder)

    def _looked_up(
        self, text: str, field: tuple[str | int, ...], *, is_folder: bool
    ) -> Path | None:
        try:
            return (folder_in if is_folder else file_in)(self.root, text)
        except PathProblem as error:
            self.problems.append(self.document.problem(str(error), *field))
            return None

    def _workspace(self) -> Path | None:
        if self.file.workspace is None:
            return None
        return self._looked_up(self.file.workspace, ("workspace",), is_folder=True)

    def _case_folders(self) -> frozenset[str]:
        folder = self.root / CASES_FOLDER
        if folder.is_symlink() or not folder.is_dir():
            return frozenset()
        names = []
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                names.append(path.name)
                self._looked_up(f"{CASES_FOLDER}/{path.name}", ("cases",), is_folder=True)
        return frozenset(names)

    def _keep_hidden(self, workspace: Path | None) -> None:
        """Refuse a pack that would show the agent what it must not see."""
        shown = [(workspace, "the workspace")] if workspace is not None else []
        cases = self.root / CASES_FOLDER
        if cases.is_dir():
            shown.append((cases, f"{CASES_FOLDER}/"))
        named = [self.file.cases] if isinstance(self.file.cases, str) else self.file.cases
        hidden: list[tuple[tuple[str | int, ...], str]] = [
            (("cases",), item) for item in named if isinstance(item, str)
        ]
        for use in self.paths:
            # Of a path that differs by case, the part before the first variable is what can be
            # compared here.
            source = use.template.source.partition("{{")[0]
            if use.template.is_constant or source.count("/"):
                fixed = source if use.template.is_constant else source.rpartition("/")[0]
                hidden.append((use.field, fixed))
        for field, text in hidden:
            try:
                path = self.root.joinpath(*relative_parts(text))
            except PathProblem:
                continue  # said where the path is looked up
            for folder, name in shown:
                if overlaps(path, folder):
                    self.problems.append(
                        self.document.problem(
                            f"{text!r} overlaps {name}, so the agent would see it",
                            *field,
                            remedy="keep references, hidden files and cases in folders apart",
                        )
                    )

    def _collect(self, has_files: bool) -> tuple[str, ...]:
        """Name what scoring needs of the agent's working folder.

        Programs that score look at all of it, where the task is about files at all; in mode `reuse`
        they stand in it.
        """
        file = self.file
        reference = file.reference
        has_files = (
            has_files
            or file.answer.file is not None
            or file.answer.command is not None
            or (
                isinstance(reference, ReferenceFiles)
                and (reference.files is not None or reference.command is not None)
            )
        )
        specs = file.scoring.validators
        paths: dict[str, None] = {}
        for number, spec in enumerate(specs):
            for text, field in spec.collected():
                paths[text] = None
                if text != ".":
                    self._inner_path(text, ("scoring", "validators", number, *field))
        if file.answer.file is not None:
            self._inner_path(file.answer.file, ("answer", "file"))
        is_carried = file.scoring.mode != EvaluationMode.REUSE.value
        if is_carried and any(spec.looks_at_work for spec in specs) and (has_files or paths):
            return tuple(dict.fromkeys((".", *paths)))
        return tuple(paths)

    def _inner_path(self, text: str, field: tuple[str | int, ...]) -> None:
        try:
            relative_parts(text)
        except PathProblem as error:
            self.problems.append(self.document.problem(str(error), *field))

    def _extract(self) -> Matcher | None:
        pattern = self.file.answer.extract
        if pattern is None:
            return None
        try:
            return matcher(pattern)
        except BadPattern as error:
            self.problems.append(self.document.problem(str(error), "answer", "extract"))
            return None

    def _limits(self) -> TaskLimits:
        limits = self.file.limits
        specs = self.file.scoring.validators
        seconds = sum(spec.longest_s() for spec in specs)
        if any(spec.waits_for_others for spec in specs):
            seconds = 0.0  # a judge's own timeouts and retries hold; a slow one is not a crash
        return TaskLimits(
            run_seconds=limits.seconds,
            evaluation_seconds=seconds + 120 if seconds else None,
            turns=limits.turns,
            output_tokens=limits.output_tokens,
        )

    def _shown_digest(
        self,
        messages: tuple[tuple[str, Template], ...],
        workspace: Path | None,
        needs: EnvironmentNeeds,
        collect: tuple[str, ...],
    ) -> str:
        file = self.file
        shown: dict[str, Any] = {
            "messages": [[role, template.source] for role, template in messages],
            "workspace": self._digest(workspace) if workspace is not None else None,
            "needs": needs.as_json(),
            "limits": file.limits.model_dump(mode="json"),
            "answer": [file.answer.file, file.answer.command],
            "collect": list(collect),
        }
        return data_digest(shown)

    def _digest(self, folder: Path) -> str:
        try:
            return folder_digest(folder)
        except (PathProblem, OSError) as error:
            self.problems.append(Problem(str(error), Where(shown_path(folder))))
            return ""


def _scoring_rules(file: PackFile) -> dict[str, Any]:
    """Give what decides a score; what came later only where the pack says it."""
    rules = file.scoring.model_dump(mode="json")
    later = {"mode": None, "timed_out": "failure"}
    return {name: rule for name, rule in rules.items() if name not in later or rule != later[name]}
