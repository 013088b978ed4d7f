"""An engine to compare with: UTF-8 only, exact only. Also the shortest adapter there can be.

python corpus/run.py --command "python corpus/plain_replace.py"
"""

import base64
import json
import sys


def answer(request: dict[str, str]) -> dict[str, str]:
    """The answer to one request."""
    content = base64.b64decode(request["content_base64"])
    old, new = request["old_string"].encode(), request["new_string"].encode()
    if old == new:
        return {"code": "edit.no_change"}
    count = content.count(old)
    if not count:
        return {"code": "edit.no_match"}
    if count > 1 and not request["replace_all"]:
        return {"code": "edit.many_matches"}
    return {"after_base64": base64.b64encode(content.replace(old, new)).decode()}


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
