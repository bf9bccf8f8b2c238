"""How a report's page looks: light and dark, on paper, without anything from outside."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2330; --dim: #5b6472; --paper: #ffffff; --line: #d8dde5;
  --tint: #f4f6f9; --mark: #1f5fbf; --soft: #9db9e6; --bad: #b3261e; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --dim: #a0a9b8; --paper: #14181f;
  --line: #333b48; --tint: #1c222c; --mark: #7fb0ff; --soft: #3f5f92; --bad: #ff8a80;
  --good: #7fd6a0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 82rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.15rem; }
p, ul { margin: .25rem 0 .75rem; }
.dim, figcaption { color: var(--dim); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--dim); padding-bottom: .25rem; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); color: var(--dim); font-weight: 600; }
tbody th { font-weight: 600; overflow-wrap: break-word; max-width: 22rem; }
td.number { text-align: right; white-space: nowrap; }
td.plot { min-width: 10.5rem; }
.matrix td { min-width: 11rem; }
.matrix .value { font-size: 1.1rem; font-weight: 600; }
.small { color: var(--dim); font-size: .85rem; white-space: nowrap; }
.bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); font-weight: 600; }
svg { display: block; max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .dim { fill: var(--dim); }
.axis { stroke: var(--line); stroke-width: 1; }
.bar { stroke: var(--soft); stroke-width: 4; }
.error { stroke: var(--soft); stroke-width: 2; }
.dot { fill: var(--mark); }
.beaten { fill: var(--paper); stroke: var(--mark); stroke-width: 2; }
.front { fill: none; stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 5 4; }
figure { margin: 0; }
details summary { cursor: pointer; margin: 2rem 0 .5rem; font-weight: 600; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } .scroll { overflow: visible; }
  h2, tr, figure { break-inside: avoid; } h2 { break-after: avoid; } }
"""


def policy() -> str:
    """Give the page's content security policy: this very style, and nothing else at all."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
