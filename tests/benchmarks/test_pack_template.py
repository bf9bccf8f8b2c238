"""Templates: what they see, and that none can hang, grow without end or reach Python."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.template import compile_template
from steelyard.benchmarks.pack.template_language import MAX_OUTPUT_CHARS, TemplateProblem


def render(source: str, **values: Any) -> str:
    return compile_template(source).render(values)


@pytest.mark.parametrize(
    ("source", "values", "expected"),
    [
        ("plain", {}, "plain"),
        ("one newline at the end goes\n", {}, "one newline at the end goes"),
        ("{{ x }}", {"x": 3}, "3"),
        ("{{ x }}\n", {"x": "a\n"}, "a\n"),
        ("{{ x | join(', ') }}.", {"x": [1, "b"]}, "1, b."),
        ("{% for a in x %}{{ loop.index }}{{ a }}{% endfor %}", {"x": "pq"}, "1p2q"),
        ("{% for k, v in x | items %}{{ k }}={{ v }};{% endfor %}", {"x": {"a": 1}}, "a=1;"),
        ("{% if y is defined %}{{ y }}{% else %}no{% endif %}", {}, "no"),
        ("{{ y | default('none') }}", {}, "none"),
        ("{{ x.y[0] }}", {"x": {"y": ["deep"]}}, "deep"),
        ("{{ x | tojson }}", {"x": {"é": "<&>"}}, '{"é": "<&>"}'),
        ("{{ x ~ '-' ~ y }}", {"x": 1, "y": 2}, "1-2"),
        ("{{ x | upper }} <b>", {"x": "<i>"}, "<I> <b>"),
        ("{{ attempt }}/{{ seed }}", {"attempt": 2, "seed": 7}, "2/7"),
        ("{% set z = x + 1 %}{{ z }}", {"x": 1}, "2"),
        ("{# a remark #}x", {}, "x"),
        ("{{ x | replace('a', 'b') }}", {"x": "aa"}, "bb"),
        ("{{ x | map('upper') | join }}", {"x": ["a", "b"]}, "AB"),
        ("{{ x | selectattr('ok') | map(attribute='n') | join }}", {"x": [{"ok": 1, "n": 5}]}, "5"),
    ],
)
def test_templates_render(source: str, values: dict[str, Any], expected: str) -> None:
    assert render(source, **values) == expected


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("{{ ''.__class__ }}", {}),
    ("{{ x['__class__'] }}", {"x": ""}),
    ("{{ x | attr('__class__') }}", {"x": ""}),
    ("{{ x | map(attribute='__class__') | join }}", {"x": ["a"]}),
    ("{{ x | map('attr', '__class__') | list }}", {"x": ["a"]}),
    ("{{ x | map(f) | list }}", {"x": [1], "f": "attr"}),
    ("{{ self.__init__ }}", {}),
    ("{{ cycler.__init__.__globals__ }}", {}),
    ("{{ range }}", {}),
    ("{{ lipsum }}", {}),
    ("{{ dict }}", {}),
    ("{{ x.upper() }}", {"x": "a"}),
    ("{% for x in range(10**9) %}{% endfor %}", {}),
    ("{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
     {"x": "a" * 1000}),
    ("{% for a in x recursive %}{{ loop(x) }}{% endfor %}", {"x": [1]}),
    ("{% set a = x ~ x %}" + "{% set a = a ~ a %}" * 40, {"x": "a" * 1000}),
    ("{% set a = x + x %}" + "{% set a = a + a %}" * 40, {"x": "a" * 1000}),
    ("{% set a = x * x %}" + "{% set a = a * a %}" * 60, {"x": 99999}),
    ("{% set a %}{{ x }}{{ x }}{% endset %}{{ a }}", {"x": "a"}),
    ("{{ 'a' * 10000000000 }}", {}),
    ("{{ [1] * 10000000000 }}", {}),
    ("{{ '%10000000000d' % 1 }}", {}),
    ("{{ '%s' | format(1) }}", {}),
    ("{{ '{:>10000000000}'.format(1) }}", {}),
    ("{{ 10 ** 100000000 }}", {}),
    ("{{ x | center(10000000000) }}", {"x": "a"}),
    ("{{ x | indent(10000000000) }}", {"x": "a\nb"}),
    ("{{ x | replace('', x) }}", {"x": "a" * 100_000}),
    ("{{ x | join(y) }}", {"x": "a" * 100_000, "y": "b" * 100_000}),
    ("{{ x | tojson(indent=100000000) }}", {"x": [1]}),
    ("{% include '/etc/passwd' %}", {}),
    ("{% import 'os' as os %}", {}),
    ("{% extends 'x' %}", {}),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {}),
    ("{% call x() %}{% endcall %}", {"x": 1}),
    ("{{ " + "(" * 100_000 + "1" + ")" * 100_000 + " }}", {}),
    ("{{ " + "-" * 20_000 + "1 }}", {}),
    ("{{ x }}" * 5, {"x": "a" * (MAX_OUTPUT_CHARS // 4)}),
    ("{{ x", {}),
    ("{% if %}", {}),
    ("{{ x / 0 }}", {"x": 1}),
    ("{{ x + 'a' }}", {"x": 1}),
    ("{{ missing }} {{ also }}", {}),
    ("{{ x.missing }}", {"x": {}}),
    ("{% do x.append(1) %}", {"x": []}),
    ("{% debug %}", {}),
    ("{{ loop }}", {}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "values"), HOSTILE, ids=[s[:40] for s, _ in HOSTILE])
def test_hostile_and_malformed_templates_are_refused_at_once(
    source: str, values: dict[str, Any]
) -> None:
    began = time.process_time()
    with pytest.raises(TemplateProblem):
        render(source, **values)
    assert time.process_time() - began < 5  # seconds at most, where unbounded ones take hours


def test_a_malformed_template_names_its_line() -> None:
    with pytest.raises(TemplateProblem) as caught:
        compile_template("one\ntwo {{ x.upper() }}\n")
    assert caught.value.line == 2
    assert "filter" in str(caught.value.remedy)


def test_what_a_template_needs_leaves_out_what_it_asks_about() -> None:
    found = compile_template("{{ a }}{% if b is defined %}{{ b }}{% endif %}{{ c | default('') }} ")
    assert found.required == {"a"}
    assert found.variables == {"a", "b", "c"}


def test_a_field_alone_gives_the_value_itself() -> None:
    assert compile_template("{{ x }}").value({"x": [1, 2]}) == [1, 2]
    assert compile_template("{{ x }} ").value({"x": [1, 2]}) == "[1, 2] "


@given(st.text())
def test_values_are_never_rendered_again(text: str) -> None:
    assert render("{{ x }}", x=text) == text
    assert render("<{{ x }}>", x=text) == f"<{text}>"


@given(st.text(alphabet="{}%#x |ab()[]'\"~+*-.\n", max_size=60))
def test_no_source_raises_anything_but_a_problem(source: str) -> None:
    try:
        render(source, x="a", a=[1], b={})
    except TemplateProblem:
        return
