"""Ask the model until it says that it is done; every answer is a line of the log."""

import json
import os
import sys
import urllib.request
from pathlib import Path

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for number in range(5):
    body = {"model": "m", "messages": [{"role": "user", "content": f"turn {number}"}]}
    request = urllib.request.Request(
        os.environ["STAND_IN_URL"] + "/v1/chat/completions",
        json.dumps(body).encode(),
        {
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
            "Content-Type": "application/json",
        },
    )
    with opener.open(request, timeout=60) as got:
        said = json.loads(got.read())["choices"][0]["message"]["content"]
    with Path(sys.argv[1]).open("a") as log:
        log.write(json.dumps({"say": said}) + "\n")
    if said == "done":
        break
