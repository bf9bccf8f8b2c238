"""Pages of the documentation site that are made, not written: a hook of mkdocs.

The reference comes from the schemas and the commands themselves; the files at the project's top
become pages, so that links to them lead somewhere on the site as they do in the repository.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from mkdocs.structure.files import File, Files

from steelyard.cli.main import COMMANDS, cli
from steelyard.cli.schema import MEANINGS, SCHEMAS, schema_of
from steelyard.config.reference import SettingDoc, settings_of

ROOT: Final = Path(__file__).resolve().parent.parent
TOP: Final = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "threat-model.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files at the top of the repository, and the pages they become."""

_LINK: Final = re.compile(r"\[([^\]\n]*)\]\(([^)\s]+)\)")
_OUTSIDE: Final = re.compile(r"^[a-z]+:|^#")


def on_files(files: Files, config: Any) -> Files:
    """Add what is made to what is written."""
    for name, page in TOP.items():
        _add(files, config, page, _as_page((ROOT / name).read_text()))
    _add(files, config, "reference/commands.md", commands_page())
    _add(files, config, "reference/settings.md", settings_page())
    _add(files, config, "reference/packs.md", packs_page())
    _add(files, config, "reference/formats.md", formats_page())
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=2, ensure_ascii=False)
        _add(files, config, f"reference/{name}.schema.json", text)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links out of the docs folder lead to the pages that the files at the top become."""
    depth = page.file.src_uri.count("/")
    return _LINK.sub(lambda found: _inside(found, depth), markdown)


def _add(files: Files, config: Any, uri: str, text: str) -> None:
    files.append(File.generated(config, uri, content=text))


def _as_page(text: str) -> str:
    """Take a file at the top into the docs folder: its links begin there."""

    def moved(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        if _OUTSIDE.match(target):
            return found[0]
        if target.startswith("docs/"):
            return f"[{label}]({target.removeprefix('docs/')})"
        path, hash_, anchor = target.partition("#")
        return f"[{label}]({TOP[path]}{hash_}{anchor})" if path in TOP else label

    return _LINK.sub(moved, text)


def _inside(found: re.Match[str], depth: int) -> str:
    label, target = found[1], found[2]
    if _OUTSIDE.match(target) or not target.startswith("../" * (depth + 1)):
        return found[0]
    path, hash_, anchor = target.removeprefix("../" * (depth + 1)).partition("#")
    if path in TOP:
        return f"[{label}]({'../' * depth}{TOP[path]}{hash_}{anchor})"
    return f"`{path}`" if label.strip("`") == path else f"{label} (`{path}`)"


def commands_page() -> str:
    """Write every command with its arguments and options, as `--help` says them."""
    parts = ["# Commands", "Made from the commands themselves: `steelyard COMMAND --help`.", ""]
    context = click.Context(cli, info_name="steelyard")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if command is not None:
            parts += _command(command, context, name, level=2)
    return "\n".join(parts) + "\n"


def _command(
    command: click.Command, parent: click.Context, name: str, *, level: int
) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * level} `{context.command_path}`\n"
    yield _escaped(inspect.cleandoc((command.help or "").replace("\b", "")))
    yield f"\n```text\n{command.get_usage(context)}\n```\n"
    rows = [record for p in command.get_params(context) if (record := p.get_help_record(context))]
    if rows := [(option, text) for option, text in rows if text]:
        yield "| option | meaning |\n| --- | --- |"
        yield from (f"| {_code(option)} | {_cell(_escaped(text))} |" for option, text in rows)
        yield ""
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _command(found, context, below, level=level + 1)


def settings_page() -> str:
    """Write every setting of an orchestration and of configuration files."""
    parts = [
        "# Settings",
        "Made from the schemas; `steelyard config docs` says the same in a terminal.",
        "",
    ]
    for name in ("orchestration", "config"):
        parts += [f"## {name.capitalize()}: {MEANINGS[name]}", ""]
        parts += _settings(settings_of(_model(name)))
    return "\n".join(parts) + "\n"


def packs_page() -> str:
    """Write every field of `pack.yaml`, and of each validator."""
    from steelyard.benchmarks.pack.schema_validators import VALIDATOR_MODELS

    about = "Made from the schema of `pack/v1`. How to use them: [packs](../packs.md)."
    parts = ["# Packs", about, ""]
    parts += ["## `pack.yaml`", "", *_settings(settings_of(_model("pack")))]
    for kind, model in VALIDATOR_MODELS.items():
        about = (model.__doc__ or "").strip().splitlines()[0]
        parts += [f"## Validator `{kind}`", "", _escaped(about), ""]
        parts += _settings(settings_of(model))
    return "\n".join(parts) + "\n"


def formats_page() -> str:
    """List the file formats with their JSON Schemas."""
    parts = ["# File formats", "JSON Schemas, generated from what reads the files.", ""]
    parts += ["| format | is | schema |", "| --- | --- | --- |"]
    parts += [
        f"| {name} | {MEANINGS[name]} | [{name}.schema.json]({name}.schema.json) |"
        for name in SCHEMAS
    ]
    parts += ["", "What runs write is told in [read results](../results.md)."]
    return "\n".join(parts) + "\n"


def _model(name: str) -> Any:
    module, _, attribute = SCHEMAS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _settings(docs: Iterator[SettingDoc]) -> Iterator[str]:
    yield "| field | type | default | meaning |\n| --- | --- | --- | --- |"
    for doc in docs:
        shown = _code(json.dumps(doc.default, default=str))
        default = "required" if doc.is_required else shown
        texts = (_cell(_escaped(doc.type)), default, _cell(_escaped(doc.meaning)))
        yield f"| {_code(doc.key)} | {' | '.join(texts)} |"
    yield ""


def _code(text: str) -> str:
    """Write code in a cell: a bar would end the cell, and escaped stand with its backslash."""
    escaped = html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")
    return f"<code>{escaped}</code>"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Let angle brackets be read as written."""
    return text.replace("<", "&lt;").replace("[", "\\[")
