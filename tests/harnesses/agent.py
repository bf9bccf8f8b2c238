"""An agent in the environment: asks its model as often as it is told, prints the last answer.

Words: `--calls N`, `--stream`, `--style openai|anthropic`, `--show-token`, `--status`.
"""

import json
import os
import sys
import urllib.error
import urllib.request

words = sys.argv[1:]
calls = int(words[words.index("--calls") + 1]) if "--calls" in words else 1
style = words[words.index("--style") + 1] if "--style" in words else "openai"
prompt = sys.stdin.read() or "hello"
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
answer = ""
for number in range(calls):
    body = {
        "model": os.environ["STEELYARD_MODEL"],
        "messages": [{"role": "user", "content": prompt + " " + str(number)}],
        "max_tokens": 64,
    }
    if "--stream" in words:
        body["stream"] = True
    if style == "openai":
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    else:
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with opener.open(request, timeout=60) as got:
            raw = got.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"the model answered {error.code}: {error.read()[:200]!r}")
    if "--stream" in words:
        answer = "".join(
            (json.loads(line[6:])["choices"] or [{"delta": {}}])[0]["delta"].get("content") or ""
            for line in raw.decode().split("\n")
            if line.startswith("data: {")
        )
    else:
        data = json.loads(raw)
        message = data["choices"][0]["message"] if style == "openai" else data
        answer = message["content"] if style == "openai" else message["content"][0]["text"]
    print(f"call {number}: {answer}", file=sys.stderr, flush=True)
if "--show-token" in words:
    answer += " " + os.environ["OPENAI_API_KEY"] + " " + json.dumps(dict(os.environ))
print(answer)
