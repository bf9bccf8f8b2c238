"""Names, and contents that joined again give the handbook."""

import os
import sys

HANDBOOK = """\
% Handbook
Second edition

# Getting in (and out)

Keys are at the desk.

```sh
# this opens the door
door open
```

# Fire!

~~~
# loud
```
# louder
~~~
Leave.
## By the stairs
# 24/7 desk

Call 100.
"""
names = sorted(os.listdir("chapters"))
assert names == ["00-front.md", "01-getting-in-and-out.md", "02-fire.md", "03-24-7-desk.md"], names
texts = []
for name in names:
    with open(os.path.join("chapters", name), encoding="utf-8", newline="") as file:
        texts.append(file.read())
assert "".join(texts) == HANDBOOK, texts
starts = [text.partition("\n")[0] for text in texts]
assert starts == ["% Handbook", "# Getting in (and out)", "# Fire!", "# 24/7 desk"], starts
print("passed", sys.argv[1])
