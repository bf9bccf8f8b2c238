"""The seed's documents, to be changed a field at a time."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from steelyard.config.json_source import read_json
from steelyard.config.source import Node
from steelyard.fix.schema.profile import Profile, checked_profile
from steelyard.fix.schema.spec import Spec, checked_spec

FIXTURES = Path(__file__).parents[1] / "fixtures" / "fix"
SEED_SPEC: dict[str, Any] = json.loads((FIXTURES / "seed-spec.json").read_text())
SEED_PROFILE: dict[str, Any] = json.loads((FIXTURES / "seed-profile.json").read_text())


def node(document: Any, file: str = "file.json") -> Node:
    return read_json(json.dumps(document, indent=2), file)


def spec_document(**changes: Any) -> dict[str, Any]:
    return _changed(SEED_SPEC, changes)


def profile_document(**changes: Any) -> dict[str, Any]:
    return _changed(SEED_PROFILE, changes)


def spec(**changes: Any) -> Spec:
    return checked_spec(node(spec_document(**changes)))


def profile(**changes: Any) -> Profile:
    return checked_profile(node(profile_document(**changes)))


def limits(**changes: Any) -> dict[str, Any]:
    return {**SEED_PROFILE["limits"], **changes}


GONE = object()
"""Takes a field out."""


def _changed(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**deepcopy(document), **changes}
    return {name: value for name, value in merged.items() if value is not GONE}
