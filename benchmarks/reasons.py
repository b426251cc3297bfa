"""Why lines are above PyTorch's time, or miss their limit: the column of the page, in one place.

The first pattern that is found in a line's 'FAMILY: NAME' counts. A reason is the outcome of a profile, not a guess; a line without one has
none yet.
"""

from __future__ import annotations

import re

from .record import Row

REASONS: list[tuple[str, str]] = [
    (
        r"^calls: x\.shape$",
        "both give back a tuple; what is left is Python's attribute lookup",
    ),
]


#: From this part of the floor on, that is the reason: less is not to be had on this machine, and either side may be first.
AT_THE_FLOOR = 0.85


def reason(row: Row) -> str:
    """What is known of a line, or nothing: from the table, else from its floor."""
    full_name = f"{row.family}: {row.name}"
    found = next((text for pattern, text in REASONS if re.search(pattern, full_name)), "")
    if found or row.floor is None:
        return found
    least = row.floor / row.theirs
    if row.floor / row.ours >= AT_THE_FLOOR or least >= row.limit:
        return f"the machine's limit: at the floor itself the ratio would be {least:.2f}"
    return ""
