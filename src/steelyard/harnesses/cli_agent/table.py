"""The agents that Steelyard knows: one entry each. Versions are exact, and pinned by their sums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from steelyard.harnesses.cli_agent.agent import Agent, Place
from steelyard.harnesses.cli_agent.logs import claude_code, codex, mini_swe_agent
from steelyard.harnesses.cli_agent.sources import Npm, PyPI

_LOCKS: Final = Path(__file__).with_name("locks")


def _claude_settings(place: Place) -> Mapping[str, str]:
    """Web tools are deferred to the provider: without a network they cost turns and give none."""
    denied = [] if place.web_tools else ["WebSearch", "WebFetch"]
    return {".claude/settings.json": json.dumps({"permissions": {"deny": denied}})}


def _codex_settings(place: Place) -> Mapping[str, str]:
    """TOML's basic strings are JSON's."""
    lines = [
        f"model = {json.dumps(place.model)}",
        'model_provider = "gateway"',
        f'web_search = "{"live" if place.web_tools else "disabled"}"',
        "check_for_update_on_startup = false",
        "[model_providers.gateway]",
        'name = "gateway"',
        f"base_url = {json.dumps(place.url + '/v1')}",
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 0",  # the gateway tries again, outside of the agent's time
        "stream_max_retries = 1",
        "[analytics]",  # else it waits for seconds at its end where there is no network
        "enabled = false",
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


CLAUDE_CODE: Final = Agent(
    id="claude_code",
    title="Claude Code, by the anthropic protocol",
    version="2.1.332",
    source=Npm(
        ("@anthropic-ai/claude-code-{machine}@{version}",),
        integrity=MappingProxyType(
            {
                "@anthropic-ai/claude-code-linux-x64@2.1.332": (
                    "sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0"
                    "GrUckYxaeebC4h0DqiKzLcw=="
                ),
                "@anthropic-ai/claude-code-linux-arm64@2.1.332": (
                    "sha512-BlHNEtK38KBPWU31F4lUSS9sHclCyfWbThT1CErvxxH8+XcljYLZlQwdyXBkTD6"
                    "2rw1TgfE1u1a+quMWS0NSJg=="
                ),
            }
        ),
    ),
    program=("{agent}/node_modules/@anthropic-ai/claude-code-*/claude",),
    own_program=("claude",),
    version_words=("--version",),
    turn_arguments=("--max-turns", "{turns}"),
    arguments=(
        "-p",
        "--model",
        "{model}",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
    ),
    variables=MappingProxyType(
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "{token}",
            "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
            "CLAUDE_CONFIG_DIR": "{home}/.claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # else it refuses to run as root, as images do
        }
    ),
    files=_claude_settings,
    log="{home}/.claude/projects/*/*.jsonl",
    read_log=claude_code.read,
    protocols=("anthropic",),
)

CODEX: Final = Agent(
    id="codex",
    title="Codex, by the openai-responses protocol",
    version="0.171.0",
    source=Npm(
        ("@openai/codex@{version}-{machine}",),
        integrity=MappingProxyType(
            {
                "@openai/codex@0.171.0-linux-x64": (
                    "sha512-l66NZkQgdk2C3pbcfULDz42yEUB581MVA6I+Y43Wp4OIqEy73HCdmZ0GTjeAHY2"
                    "ycuH4N00d9VsLrwT1jxshTw=="
                ),
                "@openai/codex@0.171.0-linux-arm64": (
                    "sha512-9z17t4bbUJ9UCIb49O4PoA+ki+45q3rd8nZ8PeH6sYnlKkBld/Xpo/OS3h3Ti95"
                    "4+foshX4o7k5TCU8N7zzqQA=="
                ),
            }
        ),
    ),
    program=("{agent}/node_modules/@openai/codex/vendor/*/bin/codex",),
    own_program=("codex",),
    version_words=("--version",),
    arguments=(
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-",
    ),
    variables=MappingProxyType({"CODEX_HOME": "{home}/.codex", "OPENAI_API_KEY": "{token}"}),
    files=_codex_settings,
    log="{home}/.codex/sessions/*/*/*/rollout-*.jsonl",
    read_log=codex.read,
    protocols=("openai-responses",),
)

MINI_SWE_AGENT: Final = Agent(
    id="mini_swe_agent",
    title="mini-SWE-agent, by the openai-chat protocol",
    version="2.4.6",
    source=PyPI("mini-swe-agent", _LOCKS / "mini_swe_agent.txt", "2.4.6"),
    program=("{agent}/run-python", "-m", "minisweagent.run.mini"),
    own_program=("mini",),
    version_words=("--help",),
    turn_arguments=("-c", "agent.step_limit={turns}"),
    arguments=(
        "-c",
        "mini.yaml",
        "-m",
        "openai/{model}",
        "--task={prompt}",
        "-y",
        "--exit-immediately",
        "--cost-limit",
        "0",  # money is held at the gateway
        "-o",
        "{home}/trajectory.json",
    ),
    variables=MappingProxyType(
        {
            "OPENAI_API_BASE": "{url}/v1",
            "OPENAI_API_KEY": "{token}",
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_GLOBAL_CONFIG_DIR": "{home}/.mini-swe-agent",
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",  # the gateway tries again
            "MSWEA_SILENT_STARTUP": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
    ),
    log="{home}/trajectory.json",
    read_log=mini_swe_agent.read,
    prompt_on_stdin=False,
    protocols=("openai-chat",),
)

AGENTS: Final[Mapping[str, Agent]] = MappingProxyType(
    {agent.id: agent for agent in (CLAUDE_CODE, CODEX, MINI_SWE_AGENT)}
)
