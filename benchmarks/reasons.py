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
    """What is known of a line, or nothing."""
    full_name = f"{row.family}: {row.name}"
    found = next((text for pattern, text in REASONS if re.search(pattern, full_name)), "")
    if not found and row.fraction is not None and row.fraction >= AT_THE_FLOOR:
        return "both sides take what the machine needs at least"
    return found
