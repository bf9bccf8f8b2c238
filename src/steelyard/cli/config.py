"""`steelyard config`: show settings and where they come from, explain them, check them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from steelyard.cli.dry_run import resolved, settings_json
from steelyard.cli.options import config_option, output_options
from steelyard.cli.output import print_json, print_table, print_warnings, say, warnings_json
from steelyard.cli.streams import redact_with
from steelyard.components.known import REGISTRY
from steelyard.config.errors import Problem
from steelyard.config.layers import shown
from steelyard.config.redaction import Redactor, redact_tree
from steelyard.config.reference import settings_of
from steelyard.config.resolve import Provenance, Resolution, resolve_config, resolve_orchestration
from steelyard.config.schema.written import ConfigFile, OrchestrationFile
from steelyard.config.source import FieldPath, path_text, plain


@click.group(invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show, explain or check settings."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@output_options
def show(file: Path | None, config_files: tuple[Path, ...], as_json: bool, debug: bool) -> int:
    """Show every value with the layer it comes from; of an orchestration FILE where given."""
    warnings: tuple[Problem, ...]
    if file is None:
        found = resolve_config(config_files=config_files, components=REGISTRY)
        redact_with(Redactor(found.secrets).text)
        tree: dict[str, Any] = ConfigFile().model_dump()
        tree = redact_tree(_laid_over(tree, plain(found.provenance.root)))
        provenance, warnings = found.provenance, found.warnings
    else:
        resolution = resolve_orchestration(file, config_files=config_files, components=REGISTRY)
        redact_with(_redactor(resolution).text)
        tree = settings_json(resolution)
        provenance, warnings = resolution.provenance, resolution.warnings
    rows = [_row(path, value, provenance) for path, value in _leaves(tree)]
    if as_json:
        values = [
            {"key": key, "value": value, "layer": layer, "where": where or None}
            for key, value, layer, where in rows
        ]
        print_json({"settings": values, "warnings": warnings_json(warnings)})
    else:
        print_table(("setting", "value", "layer", "where"), rows)
        print_warnings(warnings)
    return 0


def _redactor(resolution: Resolution) -> Redactor:
    names = resolution.orchestration.runtime.secret_env
    return Redactor(resolution.secrets, secret_env=names)


def _laid_over(base: Any, top: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(top, dict):
        return top
    return base | {
        key: _laid_over(base[key], value) if key in base else value for key, value in top.items()
    }


def _leaves(tree: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        for index, value in enumerate(tree):
            yield from _leaves(value, (*path, index))
    else:
        yield path, tree


def _row(path: FieldPath, value: Any, provenance: Provenance) -> tuple[str, Any, str, str]:
    origin = provenance.origin(path)
    where = str(origin.where) if origin is not None else ""
    return path_text(path), value, provenance.layer(path), where


@config.command()
@output_options
def docs(as_json: bool, debug: bool) -> int:
    """Explain every setting of configuration files and of orchestrations."""
    for title, model in (("configuration file", ConfigFile), ("orchestration", OrchestrationFile)):
        settings = list(settings_of(model))
        if as_json:
            continue
        say(f"{title}:")
        print_table(
            ("key", "type", "default", "meaning"),
            [
                (
                    setting.key,
                    setting.type,
                    "required" if setting.is_required else _default(setting.default),
                    setting.meaning,
                )
                for setting in settings
            ],
        )
        say()
    if as_json:
        print_json(
            {
                name: [
                    {
                        "key": setting.key,
                        "type": setting.type,
                        "default": setting.default,
                        "required": setting.is_required,
                        "meaning": setting.meaning,
                    }
                    for setting in settings_of(model)
                ]
                for name, model in (("config", ConfigFile), ("orchestration", OrchestrationFile))
            }
        )
    return 0


def _default(value: Any) -> str:
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@config_option
@output_options
def check(file: Path | None, config_files: tuple[Path, ...], as_json: bool, debug: bool) -> int:
    """Check the configuration files, and an orchestration FILE where given; list every problem.

    Of an orchestration, the fields and packs of its components are checked as `launch` does it.
    """
    warnings: tuple[Problem, ...] = ()
    if file is not None:
        from steelyard.components.clock import SystemClock
        from steelyard.engine.plan import make_plan

        resolution = resolved(
            lambda: resolve_orchestration(file, config_files=config_files, components=REGISTRY)
        )
        redact_with(_redactor(resolution).text)
        plan = make_plan(resolution, clock=SystemClock())
        warnings = (*plan.warnings, *plan.lacking)
    # What is wrong with the configuration files was said with what is wrong with FILE.
    found = resolve_config(config_files=config_files, components=REGISTRY)
    files = [shown(one.path, Path.cwd()) for one in found.files]
    files += [] if file is None else [str(file)]
    warnings = warnings or found.warnings
    if as_json:
        print_json({"files": files, "problems": [], "warnings": warnings_json(warnings)})
    else:
        print_warnings(warnings)
        say(f"no problems in {', '.join(files)}" if files else "there are no configuration files")
    return 0
