"""Files, variables and options become a resolved orchestration, with every fault at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from steelyard.config import checks, layers, project_parts, written_paths
from steelyard.config.checks import AUTO_ENVIRONMENT, COMPONENTS, ComponentIds
from steelyard.config.envrefs import expand
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.layers import LayerFile, Override, merged, merged_component, part
from steelyard.config.names import joined
from steelyard.config.project_parts import ProjectParts
from steelyard.config.redaction import Redactor
from steelyard.config.resolution import ConfigResolution as ConfigResolution
from steelyard.config.resolution import Provenance as Provenance
from steelyard.config.resolution import Resolution as Resolution
from steelyard.config.schema.orchestration import Orchestration, SharedRuntime
from steelyard.config.schema.request import RequestRuntime
from steelyard.config.schema.written import ConfigFile, OrchestrationFile
from steelyard.config.sealing import seal
from steelyard.config.secret_names import is_recognisable
from steelyard.config.secrets import SecretStore
from steelyard.config.source import Node, Origin, read_file
from steelyard.config.validation import conform, in_order

_REQUEST_RUNTIME: Final = tuple(RequestRuntime.model_fields)
_SHARED_RUNTIME: Final = tuple(SharedRuntime.model_fields)


class InvalidSettings(BadInput):
    """Everything that is wrong with the settings, at once."""

    healed: Resolution | None = None
    """What is left without the faults, for planning to find more; None where too little is."""

    @classmethod
    def healable(cls, problems: Sequence[Problem], healed: Resolution | None) -> InvalidSettings:
        """Make one error of many problems and of what is left without them."""
        error = cls.of(problems)
        if not isinstance(error, InvalidSettings):
            raise AssertionError("`of` makes its own class")
        error.healed = healed
        return error


def resolve_orchestration(
    source: Path | Node,
    *,
    config_files: Sequence[Path] = (),
    overrides: Sequence[Override] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    components: ComponentIds | None = None,
    finds_files: bool = True,
) -> Resolution:
    """Resolve an orchestration.

    Args:
        source: its file, YAML or JSON, relative to `cwd`; or what was read from elsewhere, whose
            relative paths then start from `cwd`.
        config_files: `--config` files, lowest first; relative to `cwd`.
        overrides: the command line's shared controls.
        environ: the variables that references name; this process's own by default.
        cwd: where the project's file is looked for; the working directory by default.
        components: the ids that exist; None: they are not checked here.
        finds_files: whether the user's and the project's file take part.

    Raises:
        InvalidSettings: everything that is wrong with the files, variables and options.
    """
    work = _Resolving(environ, cwd, components, finds_files=finds_files)
    base_dir = work.cwd if isinstance(source, Node) else (work.cwd / source).parent
    configs = work.config_layers(config_files, base_dir)
    written = work.written(source)
    line = work.command_line(overrides)
    root = work.orchestration(configs, written, line) if written is not None else None
    return work.finish(root, base_dir)


def resolve_run(
    benchmark: str,
    harness: str,
    model: str,
    *,
    config_files: Sequence[Path] = (),
    overrides: Sequence[Override] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    components: ComponentIds | None = None,
    finds_files: bool = True,
) -> Resolution:
    """Resolve one request from ids and options; arguments and errors as `resolve_orchestration`."""
    work = _Resolving(environ, cwd, components, finds_files=finds_files)
    configs = work.config_layers(config_files, work.cwd)
    ids = [
        Override(("benchmark", "id"), benchmark, "BENCHMARK"),
        Override(("harness", "id"), harness, "HARNESS"),
        Override(("model", "id"), model, "MODEL"),
    ]
    line = work.command_line([*ids, *overrides])
    return work.finish(work.single(configs, line), work.cwd)


def resolve_config(
    *,
    config_files: Sequence[Path] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    components: ComponentIds | None = None,
) -> ConfigResolution:
    """Lay the configuration files over each other.

    Raises:
        InvalidSettings: everything that is wrong with them.
    """
    work = _Resolving(environ, cwd, components)
    configs = work.config_layers(config_files, work.cwd)
    for one in work.parts:
        project_parts.check_ids(one, work.known_ids, work.problems)
    work.raise_problems()
    root = merged(configs) or Node({}, Origin(layers.DEFAULT, Where()))
    root.value.update(project_parts.shown(work.parts, work.environ, work.store))
    files = layers.layer_files(work.environ, work.cwd, config_files)
    return ConfigResolution(
        Provenance(root), tuple(files), tuple(work.warnings), work.store, tuple(work.parts)
    )


class _Resolving:
    """One resolution under way: gathers problems and warnings."""

    def __init__(
        self,
        environ: Mapping[str, str] | None,
        cwd: Path | None,
        components: ComponentIds | None,
        *,
        finds_files: bool = True,
    ) -> None:
        self._finds_files = finds_files
        self.environ = os.environ if environ is None else environ
        self.cwd = cwd or Path.cwd()
        self.store = SecretStore(self.environ)
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._has_lost_layer = False
        """A file could not be read: what it says cannot be told from the others."""
        self.known_ids = checks.RememberedIds(components) if components is not None else None
        self._base_dir = self.cwd
        self._folders: dict[str, Path] = {}
        """Of the configuration files, by how messages name them."""
        self.parts: list[ProjectParts] = []
        """What the configuration files say for eval sets, lowest first."""

    def _canonical(self, kind: str, name: str) -> str:
        return self.known_ids.canonical(kind, name) if self.known_ids is not None else name

    # --- layers ---

    def config_layers(self, config_files: Sequence[Path], base_dir: Path) -> list[Node]:
        found = []
        self._base_dir = base_dir
        files = layers.layer_files(self.environ, self.cwd, config_files)
        for file in files if self._finds_files else files[len(files) - len(config_files) :]:
            node = self.load(file, ConfigFile, "config")
            if node is not None:
                self._folders[layers.shown(file.path, self.cwd)] = file.path.parent
                found.append(written_paths.ids_from(node, file.path.parent, base_dir))
        return found

    def written(self, source: Path | Node) -> Node | None:
        if isinstance(source, Node):
            return self._prepared(source, OrchestrationFile, "orchestration", "", self.cwd)
        file = LayerFile(layers.ORCHESTRATION, self.cwd / source, "")
        return self.load(file, OrchestrationFile, "orchestration")

    def load(self, file: LayerFile, model: type[BaseModel], document: str) -> Node | None:
        try:
            read = layers.read_once if document == "config" else read_file
            node = read(file.path, layer=file.layer, shown=layers.shown(file.path, self.cwd))
        except BadInput as error:
            self.problems += error.problems
            self._has_lost_layer = True
            return None
        if node.value is None and document == "config":
            return None
        return self._prepared(node, model, document, file.scope, file.path.parent)

    def command_line(self, overrides: Sequence[Override]) -> Node:
        root = layers.overrides_node(overrides)
        line = self._prepared(root, ConfigFile, "command line", "option:", self.cwd) or root
        return written_paths.ids_from(line, self.cwd, self._base_dir)

    def _prepared(
        self, node: Node, model: type[BaseModel], document: str, scope: str, folder: Path
    ) -> Node | None:
        if not isinstance(node.value, dict):
            where = node.origin.where
            self.problems.append(
                Problem("the document must be a mapping", where, remedy="write `field: value`")
            )
            self._has_lost_layer = True
            return None
        if document == "config":
            node, parts = project_parts.taken_out(node, folder, scope)
            project_parts.check_shape(parts, self.problems)
            self.parts.append(parts)
        node = expand(node, self.environ, self.problems, self.warnings)
        node = seal(node, self.store, self.warnings, scope=scope)
        checks.misplaced(node, document, self.problems)
        checks.components(node, self.known_ids, self.problems, folder)
        return conform(node, model, self.problems)

    # --- merging ---

    def orchestration(self, configs: list[Node], written: Node, line: Node) -> Node:
        requests = part(written, "requests")
        defaults = part(written, "defaults")
        merged_requests: Any = None
        if requests is not None and isinstance(requests.value, list):
            merged_requests = [
                self._request(configs, defaults, request, line)
                for request in requests.value
                if isinstance(request.value, dict)
            ]
        root = self._shared(configs, written, line)
        if merged_requests is not None and requests is not None:
            root.value["requests"] = Node(merged_requests, requests.origin)
        return root

    def single(self, configs: list[Node], line: Node) -> Node:
        request = self._request(configs, None, None, line)
        ids = [part(request, field, "id") for field in ("model", "benchmark", "harness")]
        names = [str(node.value) if node is not None else "" for node in ids]
        request.value["name"] = Node(joined(*names), Origin(layers.DEFAULT, Where(field="name")))
        root = self._shared(configs, None, line)
        root.value["requests"] = Node([request], line.origin)
        return root

    def _shared(self, configs: list[Node], written: Node | None, line: Node) -> Node:
        below = [*configs, line]
        holder = written or line
        fields = {
            "version": part(written, "version"),
            "name": part(written, "name"),
            "task_concurrency": merged(
                [
                    *(part(node, "execution", "task_concurrency") for node in configs),
                    part(written, "task_concurrency"),
                    part(line, "execution", "task_concurrency"),
                ]
            ),
            "runtime": merged(
                [
                    *(layers.picked(part(node, "runtime"), _SHARED_RUNTIME) for node in configs),
                    part(written, "runtime"),
                    layers.picked(part(line, "runtime"), _SHARED_RUNTIME),
                ]
            ),
        }
        for field in ("budget", "prices"):
            nodes = [part(node, field) for node in below]
            nodes.insert(len(configs), part(written, field))
            fields[field] = merged(nodes)
        value = {key: node for key, node in fields.items() if node is not None}
        return Node(value, holder.origin)

    def _request(
        self, configs: list[Node], defaults: Node | None, written: Node | None, line: Node
    ) -> Node:
        stack = [*configs, defaults, written, line]
        fields: dict[str, Node | None] = {"name": part(written, "name")}
        for kind in COMPONENTS:
            fields[kind] = merged_component(
                [part(node, kind) for node in stack],
                lambda name, kind=kind: self._canonical(kind, name),  # type: ignore[misc]
            )
        environment = fields["environment"]
        if environment is not None and isinstance(environment.value, dict):
            # Fields without an id are of whatever `auto` comes to.
            auto = Node(AUTO_ENVIRONMENT, Origin(layers.DEFAULT, environment.origin.where))
            fields["environment"] = Node({"id": auto} | environment.value, environment.origin)
        for kind in COMPONENTS:
            fields[kind] = written_paths.params_from(
                kind, fields[kind], self.known_ids, self._folders, cwd=self.cwd,
                base_dir=self._base_dir,
            )  # fmt: skip
        fields["model"] = written_paths.model_from(
            merged([part(node, "model") for node in stack]), self._folders, cwd=self.cwd,
            base_dir=self._base_dir,
        )  # fmt: skip
        fields["execution"] = merged(
            [
                *(layers.without(part(node, "execution"), "task_concurrency") for node in configs),
                part(defaults, "execution"),
                part(written, "execution"),
                layers.without(part(line, "execution"), "task_concurrency"),
            ]
        )
        fields["runtime"] = self._request_runtime(configs, defaults, written, line)
        fields["output"] = merged([part(node, "output") for node in stack])
        fields["budget"] = merged([part(defaults, "budget"), part(written, "budget")])
        holder = written or line
        value = {key: node for key, node in fields.items() if node is not None}
        return Node(value, holder.origin)

    def _request_runtime(
        self, configs: list[Node], defaults: Node | None, written: Node | None, line: Node
    ) -> Node | None:
        """Merge `runtime`; where it speaks of reuse, the request goes over the command line."""
        own = part(written, "runtime")
        option = layers.picked(part(line, "runtime"), _REQUEST_RUNTIME)
        below = [
            *(layers.picked(part(node, "runtime"), _REQUEST_RUNTIME) for node in configs),
            part(defaults, "runtime"),
        ]
        reuse_layers = [*below, option, own]
        node = merged([*below, own, layers.without(option, "reuse", "reuse_run_id")])
        reuse = self._reuse(reuse_layers)
        rest = layers.without(node, "reuse", "reuse_run_id")
        return merged([rest, reuse])

    def _reuse(self, stack: Sequence[Node | None]) -> Node | None:
        """Merge `reuse` and `reuse_run_id`: naming a source turns reuse on, `false` drops it."""
        result: Node | None = None
        for node in stack:
            picked = layers.picked(node, ("reuse", "reuse_run_id"))
            if picked is None:
                continue
            reuse, source = part(picked, "reuse"), part(picked, "reuse_run_id")
            names_source = source is not None and source.value is not None
            is_off = reuse is not None and reuse.value is False
            if is_off and names_source and reuse is not None:
                self.problems.append(
                    Problem(
                        "reuse is false, and reuse_run_id names a source",
                        reuse.origin.where,
                        remedy="keep one of the two",
                    )
                )
            elif names_source and source is not None:
                picked.value["reuse"] = Node(True, source.origin)
            elif is_off and result is not None:
                result = layers.without(result, "reuse_run_id")
            result = merged([result, picked])
        return result

    # --- the end ---

    def finish(self, root: Node | None, base_dir: Path) -> Resolution:
        orchestration = None
        if root is not None:
            checks.orchestration(root, self.known_ids, self.problems)
            orchestration = _validated(root, self.problems)
            self._secret_env(root)
        if self.problems:
            self.raise_problems(self._healed(root, base_dir))
        if root is None or orchestration is None:
            raise AssertionError("no problem was reported, and nothing was resolved")
        return Resolution(
            orchestration, self.store, Provenance(root), tuple(_distinct(self.warnings)), base_dir
        )

    def _healed(self, root: Node | None, base_dir: Path) -> Resolution | None:
        if root is None or self._has_lost_layer:
            return None
        from steelyard.config.healing import healed

        found = healed(root, self.problems)
        if found is None:
            return None
        orchestration, gone = found
        return Resolution(orchestration, self.store, Provenance(root), (), base_dir, gone)

    def _secret_env(self, root: Node) -> None:
        names = part(root, "runtime", "secret_env")
        if names is None or not isinstance(names.value, list):
            return
        for node in names.value:
            if not isinstance(node.value, str):
                continue
            where = node.origin.where
            if not self.store.put_variable(node.value):
                said = f"secret_env names {node.value}, which is not set"
                self.warnings.append(Problem(said, where))
            elif not is_recognisable(self.environ[node.value]):
                said = f"{node.value} is too short or too common to be redacted"
                self.warnings.append(Problem(said, where, remedy="its text may show"))

    def raise_problems(self, healed: Resolution | None = None) -> None:
        if self.problems:
            # A key may stand in the wrong field as well: found there, it is quoted.
            text = Redactor(self.store).text
            problems = [
                replace(p, message=text(p.message), remedy=p.remedy and text(p.remedy))
                for p in self.problems
            ]
            raise InvalidSettings.healable(in_order(_distinct(problems)), healed)


def _validated(root: Node, problems: list[Problem]) -> Orchestration | None:
    from steelyard.config.source import plain

    found: list[Problem] = []
    conform(root, Orchestration, found)
    if found:
        problems += found
        return None
    return Orchestration.model_validate(plain(root), strict=True)


def _distinct(problems: Sequence[Problem]) -> list[Problem]:
    """Keep the first of the problems that share a place and a field."""
    seen: set[object] = set()
    kept = []
    for problem in problems:
        where = problem.where
        key: object = (where, None if where.line else problem.message)
        if key not in seen:
            seen.add(key)
            kept.append(problem)
    return kept
