"""A small coding agent: one file, nothing but the standard library.

It reads its task from standard input, works in the folder it is started in with three tools, and
prints its last words. Endpoint, key and model are in the variables that most clients know, so it
runs under `harness: command` as it runs by hand.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

MAX_TURNS = 20
MAX_CHARACTERS = 20_000


def tool(name, description, **properties):
    """Describe a tool in the words of the chat completions API."""
    fields = {field: {"type": "string", "description": text} for field, text in properties.items()}
    parameters = {"type": "object", "properties": fields, "required": list(fields)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    tool("read_file", "Read a file.", path="its path"),
    tool("write_file", "Write a file.", path="its path", content="all of it"),
    tool("run", "Run a shell command.", command="the command"),
]


def use(name, arguments):
    """Do what the model asks; what goes wrong is for the model to read."""
    try:
        words = json.loads(arguments)
        if name == "read_file":
            return Path(words["path"]).read_text()[:MAX_CHARACTERS]
        if name == "write_file":
            Path(words["path"]).write_text(words["content"])
            return "written"
        if name == "run":
            done = subprocess.run(
                ["sh", "-c", words["command"]], capture_output=True, text=True, timeout=60
            )
            said = done.stdout + done.stderr
            return f"exit code {done.returncode}\n{said[-MAX_CHARACTERS:]}"
        return f"there is no tool {name}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def ask(messages):
    """Make one call; the answer's message."""
    body = {"model": os.environ["STEELYARD_MODEL"], "messages": messages, "tools": TOOLS}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


def main():
    messages = [
        {"role": "system", "content": "You mend code with the tools you have. Say when done."},
        {"role": "user", "content": sys.stdin.read()},
    ]
    for _ in range(MAX_TURNS):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            print(message.get("content") or "")
            return 0
        for call in calls:
            function = call["function"]
            result = use(function["name"], function["arguments"])
            print(f"{function['name']}: {result[:200]}", file=sys.stderr)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    print("too many turns", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
