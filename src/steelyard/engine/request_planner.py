"""Plan one request: make its components, check what belongs together, find its place on the disk.

Everything that is wrong is gathered, so that it comes at once. `plan.py` puts requests together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.components.analyzer import Analyzer
from steelyard.components.benchmark import Benchmark, BenchmarkInfo
from steelyard.components.contract import described, own_code
from steelyard.components.environment import Environment
from steelyard.components.extras import install_command
from steelyard.components.harness import Harness
from steelyard.components.registry import Kind, extra_of
from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.resolve import Resolution
from steelyard.config.schema.request import Request
from steelyard.config.secrets import resealed, sealed_json
from steelyard.engine.analyzers import chosen_analyzers, make_analyzers
from steelyard.engine.plan_checks import (
    HealedFields,
    endpoint_problems,
    folder_problems,
    is_about,
    is_unpriced,
    missing_run,
    moved,
    other_protocol,
    placed,
    scoring_model_problems,
    task_problems,
)
from steelyard.engine.plan_values import (
    attempt_tokens,
    attempt_usd,
    price_values,
    saved_artifacts,
    time_limits,
    with_attempt_bounds,
)
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.run_document import run_document
from steelyard.engine.services import Maker, Services
from steelyard.engine.spec import ComponentSpec, RequestSpec
from steelyard.results.identity import (
    base_of,
    evaluation_parts,
    generation_parts,
    resolved_early_stop,
)
from steelyard.results.layout import RunPaths


class RequestPlanner:
    """Plans one request, gathering what is wrong."""

    def __init__(self, resolution: Resolution, request: Request, index: int, maker: Maker) -> None:
        self.resolution = resolution
        self.request = request
        self.index = index
        self.maker = maker
        self.problems: list[Problem] = []
        self.lacking: list[Problem] = []
        self.warnings: list[Problem] = []
        self.faults = HealedFields(resolution.healed, index)

    def where(self, path: str) -> Where:
        """Give the place of a field of the request."""
        return self.resolution.provenance.where(("requests", self.index, *path.split(".")))

    def wrong(self, path: str, message: str, remedy: str | None = None) -> None:
        """Note a problem at a field, unless a fault there has been said already."""
        if not self.faults.cover(path):
            self.problems.append(Problem(message, self.where(path), remedy))

    def component(self, kind: Kind, spec: ComponentSpec) -> Any:
        """Make a component; None where it cannot be made even without its faulty fields."""
        if self.faults.cover(kind.value, f"{kind.value}.id"):
            return None  # nobody knows which one is meant
        try:
            return self.maker.component(
                kind,
                spec,
                self.resolution.provenance.root,
                at=("requests", self.index, kind.value),
            )
        except BadInput as error:
            found = placed(error.problems, self.where(f"{kind.value}.id"))
            whole = (self.where(kind.value), self.where(f"{kind.value}.id"))
            if self.faults.cover(f"{kind.value}.params"):
                found = []  # its fields stand one level too deep: it seems to lack them
            elif self.faults.are_below(kind.value):
                # What is wrong with it as a whole may be that it lacks a field with a fault.
                found = [problem for problem in found if problem.where not in whole]
            self.problems += found
            return self._without_faults(kind, spec, error.problems)

    def _without_faults(self, kind: Kind, spec: ComponentSpec, problems: Sequence[Problem]) -> Any:
        """Make a component of the fields that are in order, to judge the request's others by."""
        at = ("requests", self.index, kind.value)
        root = self.resolution.provenance.root
        params = {
            name: value
            for name, value in spec.params.items()
            if not is_about(problems, root.at((*at, name)))
        }
        if len(params) == len(spec.params):
            return None
        try:
            return self.maker.component(kind, ComponentSpec(spec.id, params), root, at=at)
        except BadInput:
            return None  # what else is wrong with it has been said, or follows

    def plan(self) -> RequestPlan | None:
        """Plan it; None where something is wrong, which stands in `problems` and `lacking`."""
        request = self.request
        benchmark_spec = _component_spec(request.benchmark.id, request.benchmark.params)
        harness_spec = _component_spec(request.harness.id, request.harness.params)
        benchmark = self.component(Kind.BENCHMARK, benchmark_spec)
        harness = self.component(Kind.HARNESS, harness_spec)
        data_dir = self.resolution.orchestration.runtime.data_dir
        for component in (benchmark, harness):
            if component is not None and data_dir is not None:
                component.data_dir = Path(data_dir)
        info = self._info(benchmark)
        # As much as can be judged of a request is, so that its problems come at once.
        paths = self._paths()
        if info is not None:
            self._check_strategy(info)
        self._check_model(harness)
        self._check_price(harness)
        self._check_scoring_models(benchmark if info is not None else None)
        analyzers = self._analyzers()
        environment_spec = self._environment_spec(info, harness)
        environment = (
            self.component(Kind.ENVIRONMENT, environment_spec) if environment_spec else None
        )
        for kind, component in (
            (Kind.BENCHMARK, benchmark),
            (Kind.HARNESS, harness),
            (Kind.ENVIRONMENT, environment),
        ):
            if component is None:
                continue
            lacking = self._lacking(kind, component)
            if lacking is not None:
                self.lacking.append(lacking)
        self._check_artifacts()
        if info is not None and not self.problems:
            self.problems += task_problems(benchmark, request.execution, self.where)
        if paths is not None:
            self._check_reused_run(paths)
        if info is None or harness is None or environment is None or environment_spec is None:
            return None
        if self.problems or paths is None or self.faults.is_any:
            return None
        model = (
            sealed_json(request.model.model_dump(mode="python"))
            if harness.traits.calls(request.model.id)
            else None
        )
        whole = self.resolution.orchestration
        spec = RequestSpec(
            request_name=request.name,
            benchmark=benchmark_spec,
            harness=harness_spec,
            environment=environment_spec,
            model=model,
            limits=time_limits(request),
            prices=price_values(whole),
            data_dir=whole.runtime.data_dir,
            cleanup_grace_s=whole.runtime.cleanup_grace_seconds,
            attempt_usd=attempt_usd(whole, request),
            attempt_tokens=attempt_tokens(whole, request),
            save_artifacts=saved_artifacts(request),
            keep_environment=request.execution.keep_environment,
            seed=request.execution.seed,
        )
        plan = self._finished(
            spec, Services(benchmark, harness, environment, None, self.maker.clock), info, paths
        )
        plan = replace(plan, analyzers=analyzers)
        self._check_keeping(environment)
        self._check_reuse(plan)
        return plan

    def _check_keeping(self, environment: Environment) -> None:
        """Warn where environments are to be kept by a provider that keeps none."""
        if self.request.execution.keep_environment and not environment.keeps_sessions:
            self.warnings.append(
                Problem(
                    f"{environment.id} keeps no environment: each ends with its execution",
                    self.where("execution.keep_environment"),
                    remedy="save the files with execution.save_artifacts, or name another one",
                )
            )

    def _check_artifacts(self) -> None:
        """What is to be kept must lie in the environment."""
        for wanted in saved_artifacts(self.request):
            if (problem := wanted.problem()) is not None:
                remedy = "name paths of the environment, relative to the working folder"
                self.wrong("execution.save_artifacts", problem, remedy)

    def _check_reused_run(self, paths: RunPaths) -> None:
        """A named source must be there: known before the request is known to be in order."""
        named = self.request.runtime.reuse_run_id
        if named is not None and (problem := missing_run(paths, named)) is not None:
            self.problems.append(replace(problem, where=self.where("runtime.reuse_run_id")))

    def _check_reuse(self, plan: RequestPlan) -> None:
        """A named source must fit as well; the newest one is looked for when running."""
        named = self.request.runtime.reuse_run_id
        if named is None:
            return
        from steelyard.results.reuse import choose_source

        try:
            choose_source(plan.paths.namespace_dir, plan.shape, named)
        except BadInput as error:
            self.problems += moved(error.problems, self.where("runtime.reuse_run_id"))

    def _info(self, benchmark: Any) -> BenchmarkInfo | None:
        if benchmark is None:
            return None
        try:
            return described(self.request.benchmark.id, benchmark)
        except BadInput as error:
            self.problems += placed(error.problems, self.where("benchmark.id"))
            return None

    def _lacking(self, kind: Kind, component: Any) -> Problem | None:
        """Say what this machine lacks to run a component, and which extra would bring it."""
        extra: str | None = None
        try:
            is_benchmark = isinstance(component, Benchmark)
            has_lacks = isinstance(component, Benchmark | Harness)
            ask = component.lacking if has_lacks else component.unavailable
            what = f"the {kind.value} {component.id!r}: {ask.__name__}()"
            reason: str | None = own_code(what, component, ask)
            if reason is None and is_benchmark:
                what = f"the {kind.value} {component.id!r}: missing_extra()"
                extra = own_code(what, component, component.missing_extra)
        except BadInput as error:
            found = placed(error.problems, self.where(f"{kind.value}.id"))
            self.problems += [problem for problem in found if problem not in self.problems]
            return None
        if reason is not None:
            has_extra = getattr(component, "has_extra", None)
            # Where it is an engine that is missing, installing a package helps nobody.
            is_missing = has_extra is None or not has_extra()
            extra = extra_of(kind, component.id) if is_missing else None
        elif extra is not None:
            reason = f"it needs the extra {extra}: {install_command(extra)}"
        if reason is None:
            return None
        text = f"{component.id} cannot run here: {reason}"
        is_program = isinstance(component, Harness) and component.installation() is not None
        program = component.id if is_program else None
        return Problem(text, self.where(kind.value), extra=extra, program=program)

    def _analyzers(self) -> tuple[Analyzer, ...]:
        """Make what reads the run at its end; what is wrong with one is a problem of its line."""
        if self.faults.cover("execution.analysis"):
            return ()
        made = make_analyzers(
            chosen_analyzers(self.request.execution.analysis),
            self.maker,
            self.resolution.provenance.root,
            at=("requests", self.index, "execution", "analysis"),
        )
        self.problems += made.problems
        self.lacking += made.lacking
        return made.analyzers

    def _environment_spec(
        self, info: BenchmarkInfo | None, harness: Harness | None
    ) -> ComponentSpec | None:
        written = self.request.environment
        if written.id != "auto":
            return _component_spec(written.id, written.params)
        if info is None or harness is None:
            return None  # it depends on both
        from steelyard.environments.auto import resolve_auto

        try:
            runs_model_code = info.runs_model_code or harness.traits.runs_model_code
            chosen = resolve_auto(runs_model_code, wants_images=info.wants_images)
            return _component_spec(chosen, written.params)
        except BadInput as error:
            self.problems += moved(error.problems, self.where("environment"))
            return None

    def _check_strategy(self, info: BenchmarkInfo) -> None:
        attempts = self.request.execution.attempts
        if self.faults.are_below("benchmark"):
            return  # its metrics may depend on them
        primary = next(metric for metric in info.metrics if metric.name == info.primary)
        if primary.kind == "scalar" and attempts.strategy == "pass":
            self.wrong(
                "execution.attempts.strategy",
                f"strategy `pass` needs a binary metric; {info.id}'s primary metric "
                f"{info.primary!r} is scalar",
                "write `strategy: avg`",
            )

    def _check_model(self, harness: Harness | None) -> None:
        model = self.request.model.id
        calls_model = model != "none" if harness is None else harness.traits.calls(model)
        if harness is not None and calls_model and model == "none":
            self.wrong("model.id", f"the harness {harness.id} calls a model", "name one")
        elif harness is not None and not harness.traits.calls_model and model != "none":
            self.wrong(
                "model.id",
                f"the harness {harness.id} calls no model, so {model!r} would name results that "
                "are not its own",
                "write `model: {id: none}`",
            )
        if harness is not None and (refused := other_protocol(harness, self.request.model)):
            self.wrong("model.api_protocol", *refused)
        if calls_model:
            secrets = self.maker.secrets
            found = endpoint_problems(self.request.model, secrets, self.where)
            if self.faults.cover("model.api_protocol"):
                found = []  # which parameters and headers it takes depends on it
            self.problems += found

    def _check_price(self, harness: Harness | None) -> None:
        """A dollar budget can't hold what has no price."""
        if harness is None or not harness.traits.calls(self.request.model.id):
            return
        if self.faults.cover("model.base_url") or self.faults.are_in_prices:
            return
        whole, request = self.resolution.orchestration, self.request
        if not self._has_dollar_bound():
            return
        if whole.runtime.allow_unpriced or request.model.id == "none":
            return
        if is_unpriced(request.model, self.maker.secrets, price_values(whole)):
            self.wrong(
                "model.id",
                f"the price of {request.model.id!r} is not known, and the budget is in dollars",
                "write it under `prices:`, or give --allow-unpriced to count it as free",
            )

    def _has_dollar_bound(self) -> bool:
        whole, request = self.resolution.orchestration, self.request
        bounds = (whole.budget.usd, request.budget.usd, attempt_usd(whole, request))
        return any(bound is not None for bound in bounds)

    def _check_scoring_models(self, benchmark: Any) -> None:
        """A judge is another model: named, reachable and priced before anything runs."""
        if benchmark is None or self.faults.are_below("benchmark"):
            return
        if not benchmark.params.model_fields_set.issuperset(self.request.benchmark.params):
            return  # made without a field that is at fault, perhaps the judge itself
        whole, where = self.resolution.orchestration, self.where("benchmark")
        is_free = whole.runtime.allow_unpriced or self.faults.are_in_prices
        prices = None if is_free or not self._has_dollar_bound() else price_values(whole)
        self.problems += scoring_model_problems(benchmark, self.maker.secrets, prices, where)

    def _paths(self) -> RunPaths | None:
        output = self.request.output
        results_dir = Path(self.resolution.orchestration.runtime.results_dir)
        paths = RunPaths(results_dir, output.run_name, self.request.name, output.run_id)
        if self.faults.are_in_run_dir:
            return None  # nobody knows which folder is meant
        origin = self.resolution.provenance.origin(("runtime", "results_dir"))
        found = folder_problems(paths, self.where, origin.where if origin is not None else None)
        self.problems += found
        return None if found else paths

    def _filled(self, component: Benchmark | Harness, written: Mapping[str, Any]) -> dict[str, Any]:
        """A component's parameters with its defaults, secrets as references once more."""
        dumped = component.params.model_dump(mode="json")
        filled: dict[str, Any] = resealed(dumped, written, self.resolution.secrets)
        return filled

    def _finished(
        self, spec: RequestSpec, services: Services, info: BenchmarkInfo, paths: RunPaths
    ) -> RequestPlan:
        request = with_attempt_bounds(self.resolution.orchestration, self.request)
        harness = services.harness
        attempts = request.execution.attempts
        early_stop = resolved_early_stop(attempts)
        generation = generation_parts(
            request,
            harness_version=harness.version,
            environment_id=spec.environment.id,
            harness_params=harness.generation_params(self._filled(harness, request.harness.params)),
        )
        evaluation = evaluation_parts(
            request,
            benchmark_id=info.id,
            benchmark_version=info.version,
            benchmark_params=services.benchmark.scoring_params(
                self._filled(services.benchmark, request.benchmark.params)
            ),
        )
        document = partial(
            run_document,
            request,
            info,
            plan={"k": attempts.k, "strategy": attempts.strategy, "early_stop": early_stop},
            identities={"generation": generation, "evaluation": evaluation},
            environment=spec.environment.id,
            project_dir=self.resolution.base_dir,
            prices=spec.prices,
        )
        return RequestPlan(
            request=request,
            spec=spec,
            services=services,
            info=info,
            paths=paths,
            generation_base=base_of(generation),
            evaluation_base=base_of(evaluation),
            early_stop=early_stop,
            # A task that stops at its first success tries one attempt at a time: started
            # together, all k would be paid for before the first could make the rest needless.
            attempts_may_overlap=info.attempts_may_overlap
            and harness.traits.attempts_may_overlap
            and not early_stop,
            provider_is_local=type(services.environment).is_local,
            document=document,
        )


def _component_spec(component_id: str, params: Mapping[str, Any]) -> ComponentSpec:
    return ComponentSpec(component_id, sealed_json(params))
