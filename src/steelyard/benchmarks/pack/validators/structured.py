"""Validators that read JSON out of a text: `json_equals`, `json_schema`, `json_path`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from steelyard.benchmarks.pack.bounded.faults import PackFault, shown
from steelyard.benchmarks.pack.bounded.json_checks import (
    Found,
    check_schema,
    compiled_path,
    equals_expected,
    expected_value,
    is_plain_path,
    meets_schema,
    require_bounded,
    schema_patterns,
    selects,
)
from steelyard.benchmarks.pack.matching import BadPattern, matcher
from steelyard.benchmarks.pack.schema_validators.structured import (
    JsonEqualsSpec,
    JsonPathSpec,
    JsonSchemaSpec,
    JsonTextSpec,
)
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.timebox import HERE_CHARS, MAX_TEXT_CHARS, boxed
from steelyard.benchmarks.pack.validators.contract import (
    TextValidator,
    Verdict,
    rendered,
    value_of,
)
from steelyard.benchmarks.pack.validators.data import DataTemplate, compiled_data
from steelyard.benchmarks.pack.validators.making import Making, PackPath
from steelyard.components.issues import AttemptFault, IssueCode

_MAX_FILE_BYTES: Final = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class JsonOfPack:
    """A JSON value of the pack: data, a text that is JSON, or a file."""

    source: DataTemplate | Template | None
    file: PackPath | None = None
    _read: dict[str | Path, Any] = field(default_factory=dict)
    """What was read already, by its text or its file."""

    @property
    def is_constant(self) -> bool:
        """True where it is the same in every case, and so was looked at when it was made."""
        if self.file is not None:
            return self.file.template.is_constant
        return self.source is None or self.source.is_constant

    def value(self, fields: Mapping[str, Any]) -> Any:
        """Give the value of a case.

        Raises:
            AttemptFault: TASK_INVALID where it is not JSON.
        """
        try:
            return self._value(fields)
        except PackFault as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error

    def _value(self, fields: Mapping[str, Any]) -> Any:
        if self.file is not None:
            path = self.file.file(fields)
            if path not in self._read:
                self._read[path] = _json_in(path)
            return self._read[path]
        if isinstance(self.source, Template):
            value = value_of(self.source, fields)
            if isinstance(value, str):
                if value not in self._read:
                    self._read[value] = expected_value(value)
                return self._read[value]
        else:
            value = self.source.value(fields) if self.source is not None else None
        require_bounded(value)
        return value


def _json_in(path: Path) -> Any:
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise PackFault(f"{path.name} is larger than {_MAX_FILE_BYTES} bytes")
    try:
        return expected_value(path.read_text("utf-8"))
    except (OSError, UnicodeError) as error:
        raise PackFault(f"{path.name}: {error}") from error


class JsonValidator(TextValidator):
    """A validator that reads JSON out of a text."""

    checks_cases: ClassVar[bool] = True

    def __init__(self, name: str, spec: JsonTextSpec, stdout_of: str | None) -> None:
        super().__init__(name, spec, stdout_of)
        self._find = spec.find

    async def found(
        self, work: Callable[..., Found], text: str, *, here: bool, **arguments: Any
    ) -> Verdict:
        """Run a check on the text, in bounded time; a text that is too long has no JSON."""
        if len(text) > MAX_TEXT_CHARS:
            return Verdict(0.0, f"{len(text)} characters: too long to be read as JSON")
        value, reason = await boxed(
            work,
            {"text": text, "find": self._find, **arguments},
            here=here and len(text) <= HERE_CHARS,
            what=f"the validator {self.name}",
        )
        return Verdict(value, reason)


class JsonEquals(JsonValidator):
    """The value in the text is the expected one."""

    def __init__(
        self,
        name: str,
        spec: JsonEqualsSpec,
        stdout_of: str | None,
        expected: JsonOfPack,
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self.is_scalar = spec.partial
        self._expected = expected
        self._rules, self._partial = spec.rules(), spec.partial

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Read it and compare."""
        return await self.found(
            equals_expected,
            text,
            here=True,
            expected=self._expected.value(fields),
            rules=self._rules,
            partial=self._partial,
        )

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find an expected value that is not JSON."""
        if not self._expected.is_constant:
            self._expected.value(fields)
        return None


class JsonSchema(JsonValidator):
    """The value in the text meets a schema."""

    def __init__(
        self,
        name: str,
        spec: JsonSchemaSpec,
        stdout_of: str | None,
        schema: JsonOfPack,
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._schema, self._formats = schema, spec.formats
        self._patterns: dict[int, tuple[Any, list[str] | None]] = {}
        """Of each schema that was seen, by its identity; the schema is kept so that it lives."""

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Read it and check it."""
        schema = self._schema.value(fields)
        return await self.found(
            meets_schema,
            text,
            here=self._is_tame(schema, len(text)),
            schema=schema,
            formats=self._formats,
        )

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a schema that is malformed, or refers to what is not in it."""
        if self._schema.is_constant:
            return None
        try:
            check_schema(self._schema.value(fields), self._formats)
        except PackFault as error:
            return str(error)
        return None

    def _is_tame(self, schema: Any, length: int) -> bool:
        """True where no pattern of the schema can take long on a text of that length."""
        held, patterns = self._patterns.get(id(schema), (None, None))
        if held is not schema:
            patterns = schema_patterns(schema)
            if len(self._patterns) > 1000:
                self._patterns.clear()
            self._patterns[id(schema)] = (schema, patterns)
        try:
            return patterns is not None and all(
                matcher(pattern).may_run_here(min(length, HERE_CHARS)) for pattern in patterns
            )
        except BadPattern:
            return False


class JsonPath(JsonValidator):
    """What a path selects is as expected."""

    def __init__(
        self,
        name: str,
        spec: JsonPathSpec,
        stdout_of: str | None,
        path: Template,
        expected: Mapping[str, DataTemplate],
        count: DataTemplate | None,
    ) -> None:
        super().__init__(name, spec, stdout_of)
        self._path, self._expected, self._count = path, expected, count
        self._tests: dict[str, Any] = {"match": spec.match, "tolerance": spec.tolerance}
        if spec.exists is not None:
            self._tests["exists"] = spec.exists

    async def judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        """Read it, select and look."""
        path = rendered(self._path, fields)
        return await self.found(
            selects, text, here=is_plain_path(path), path=path, tests=self._all_tests(fields)
        )

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a malformed path, an expected value that is too deep, a count that is no number."""
        try:
            if not self._path.is_constant:
                compiled_path(rendered(self._path, fields))
            for value in self._all_tests(fields).values():
                require_bounded(value)
        except PackFault as error:
            return str(error)
        return None

    def _all_tests(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        tests = dict(self._tests)
        if self._count is not None:
            given: Mapping[str, Any] = self._count.value(fields)
            tests["count"] = {name: _whole(value) for name, value in given.items()}
        return tests | {name: data.value(fields) for name, data in self._expected.items()}


def _whole(value: Any) -> int:
    """Read how many values a path may select; templates give numbers or texts."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise AttemptFault(IssueCode.TASK_INVALID, f"the count {shown(value)} is no whole number")


def make_json_equals(making: Making, spec: JsonEqualsSpec) -> JsonEquals:
    """Make one; an expected value that is the same in every case is looked at at once."""
    expected = json_of_pack(making, spec.expected, "expected", spec.expected_file, "expected_file")
    return JsonEquals(making.name, spec, making.stdout_of(spec), expected)


def json_of_pack(
    making: Making, source: Any, field: str, file: str | None = None, file_field: str = ""
) -> JsonOfPack:
    """Compile a JSON value: a file, a text that is JSON itself, or data."""
    path = making.path(file, file_field)
    if path is not None:
        made, field = JsonOfPack(None, path), file_field
    elif isinstance(source, str):
        made = JsonOfPack(making.compiled(source, field))
    else:
        made = JsonOfPack(compiled_data(making, source, field))
    if made.is_constant:
        try:
            made.value({})
        except AttemptFault as error:
            remedy = "write data, JSON text, or {{ field }} for a field that holds either"
            making.problem(error.message, field, remedy=None if path is not None else remedy)
    return made


def make_json_schema(making: Making, spec: JsonSchemaSpec) -> JsonSchema:
    """Make one; a schema that is the same in every case is checked at once.

    Texts inside a schema are no templates: patterns are full of braces.
    """
    source = spec.schema_
    if isinstance(source, str) or spec.schema_file is not None:
        schema = json_of_pack(making, source, "schema", spec.schema_file, "schema_file")
    else:
        schema = JsonOfPack(DataTemplate(source, is_constant=True))
    if schema.is_constant:
        field = "schema" if spec.schema_file is None else "schema_file"
        try:
            check_schema(schema.value({}), spec.formats)
        except PackFault as error:
            making.problem(str(error), field)
        except AttemptFault:
            pass  # said where it was read
    return JsonSchema(making.name, spec, making.stdout_of(spec), schema)


def make_json_path(making: Making, spec: JsonPathSpec) -> JsonPath:
    """Make one; a path that is the same in every case is compiled at once."""
    path = making.compiled(spec.path, "path")
    if path.is_constant:
        try:
            compiled_path(path.source)
        except PackFault as error:
            making.problem(str(error), "path", remedy="JSONPath as RFC 9535 has it: $.a[0].b")
    given = spec.model_fields_set & {"equals", "contains"}
    expected = {name: compiled_data(making, getattr(spec, name), name) for name in sorted(given)}
    count = None
    if spec.count is not None:
        count = compiled_data(making, spec.count.model_dump(exclude_none=True), "count")
    return JsonPath(making.name, spec, making.stdout_of(spec), path, expected, count)
