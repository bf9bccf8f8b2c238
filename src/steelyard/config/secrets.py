"""Secrets as references: a settings tree, a spec or a record never holds the value itself.

The value lives in a `SecretStore` of the process that resolved it. A worker elsewhere resolves
`env:NAME` references from its own environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import SchemaSerializer, core_schema

from steelyard.config.errors import Fault
from steelyard.config.secret_names import is_recognisable

MARKER = "$secret"


class SecretUnavailable(Fault):
    """This process holds no value for a secret's reference."""

    def __init__(self, ref: str) -> None:
        name = ref.removeprefix("env:")
        remedy = (
            f"export {name} where the work runs"
            if ref.startswith("env:")
            else "write the secret as a whole-field ${NAME} reference, so that workers can find it"
        )
        super().__init__(f"the secret {ref} is not available in this process", remedy=remedy)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Stands where a secret stood.

    `ref` is `env:NAME` for a value that came from a `${NAME}` reference, else
    `config:<field path>` for one written out in a file or option.
    """

    ref: str

    __pydantic_serializer__: ClassVar[Any]

    def as_json(self) -> dict[str, str]:
        """Give the serialisable form, `{"$secret": "env:NAME"}`."""
        return {MARKER: self.ref}

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls, serialization=_SERIALIZATION)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "string", "writeOnly": True, "description": "a secret, best as ${NAME}"}


def _serialized(secret: SecretRef, info: Any) -> Any:
    return secret if info.mode == "python" else secret.as_json()


# Without it `model_dump` would take a reference in an untyped tree for a dataclass and write
# `{"ref": …}`, which nothing reads back.
_SERIALIZATION = core_schema.plain_serializer_function_ser_schema(_serialized, info_arg=True)
SecretRef.__pydantic_serializer__ = SchemaSerializer(
    core_schema.is_instance_schema(SecretRef, serialization=_SERIALIZATION)
)


class SecretStore:
    """The secrets this process knows, by reference; the source of what is redacted."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._values: dict[str, str] = {}
        self._originals: dict[str, Any] = {}
        self._parts: dict[str, str] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Grows with every value that is added; a `Redactor` looks at it."""
        return self._version

    def put(self, ref: str, value: str, *, original: Any = None) -> SecretRef:
        """Keep `value` under `ref` and return the reference that may travel.

        `original` is what `reveal_tree` gives back where a secret was written as a number.
        """
        self._values[ref] = value
        if original is not None and not isinstance(original, str):
            self._originals[ref] = original
        self._version += 1
        return SecretRef(ref)

    def drop(self, ref: str) -> None:
        """Forget a value that is worth nothing any more; nothing where there is none."""
        if self._values.pop(ref, None) is not None:
            self._originals.pop(ref, None)
            self._version += 1

    def put_variable(self, name: str) -> bool:
        """Keep the value of an environment variable; False where it is unset or empty."""
        value = self._environ.get(name)
        if value:
            self.put(f"env:{name}", value)
        return bool(value)

    def put_part(self, name: str, value: str) -> None:
        """Keep a piece of a secret (a URL's password, say) to be redacted on its own."""
        self._parts[name] = value
        self._version += 1

    def reveal(self, secret: SecretRef) -> str:
        """Return the value; raise `SecretUnavailable` where this process has none."""
        if secret.ref in self._values:
            return self._values[secret.ref]
        if secret.ref.startswith("env:"):
            value = self._environ.get(secret.ref.removeprefix("env:"))
            if value is not None:
                return value
        raise SecretUnavailable(secret.ref)

    def reveal_tree(self, tree: Any) -> Any:
        """Copy a tree of plain data with every reference replaced by its value."""
        if isinstance(tree, SecretRef):
            if tree.ref in self._originals:
                return self._originals[tree.ref]
            return self.reveal(tree)
        if isinstance(tree, Mapping):
            if set(tree) == {MARKER}:
                return self.reveal_tree(SecretRef(tree[MARKER]))
            return {key: self.reveal_tree(value) for key, value in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.reveal_tree(item) for item in tree]
        return tree

    def items(self) -> Iterator[tuple[str, str]]:
        """Iterate over (reference, value); for the redaction boundary alone."""
        yield from self._values.items()

    def parts(self) -> Iterator[tuple[str, str]]:
        """Iterate over the pieces of secrets; for the redaction boundary alone."""
        yield from self._parts.items()


def sealed_json(tree: Any) -> Any:
    """Copy a tree of settings into plain JSON data, references in their `$secret` form."""
    if isinstance(tree, SecretRef):
        return tree.as_json()
    if isinstance(tree, Mapping):
        return {str(key): sealed_json(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [sealed_json(item) for item in tree]
    return tree


def resealed(filled: Any, written: Any, secrets: SecretStore) -> Any:
    """Copy parameters that were revealed and filled in, the secrets as references again.

    Where a reference was written one stands again; a copy elsewhere (under an alias, say) is
    found by its value.

    Args:
        filled: plain data that a component made of its revealed parameters.
        written: the same parameters as people wrote them, sealed.
        secrets: whose values are looked for.
    """
    known = {value: SecretRef(ref) for ref, value in secrets.items() if is_recognisable(value)}
    return _resealed(filled, written, known)


def _resealed(filled: Any, written: Any, known: Mapping[str, SecretRef]) -> Any:
    if isinstance(written, SecretRef):
        return written
    if isinstance(filled, Mapping):
        below = written if isinstance(written, Mapping) else {}
        return {key: _resealed(item, below.get(key), known) for key, item in filled.items()}
    if isinstance(filled, list | tuple):
        items = written if isinstance(written, list | tuple) else ()
        return [
            _resealed(item, items[i] if i < len(items) else None, known)
            for i, item in enumerate(filled)
        ]
    if isinstance(filled, str | int | float) and not isinstance(filled, bool):
        return known.get(str(filled), filled)
    return filled
