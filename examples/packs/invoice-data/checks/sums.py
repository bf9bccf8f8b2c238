"""Does the invoice that an answer holds add up?"""

import json
import re


def adds_up(answer, case):
    """Give 1 where count times price of all lines is the total, else 0 with the reason."""
    blocks = re.findall(r"```json\n(.*?)```", answer or "", re.DOTALL)
    if not blocks:
        return {"value": 0, "reason": "no block of JSON"}
    try:
        invoice = json.loads(blocks[-1])
        total = float(invoice["total_eur"])
        lines = sum(line["count"] * line["price_eur"] for line in invoice["lines"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # A strange answer is the agent's fault: what is raised here would count as ours.
        return {"value": 0, "reason": f"not read: {type(error).__name__}"}
    if not abs(lines - total) < 0.005:  # so written, NaN fails too
        return {"value": 0, "reason": f"the lines add up to {lines:.2f}, the total is {total:.2f}"}
    return True
