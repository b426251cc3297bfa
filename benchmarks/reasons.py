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
    (
        r"^calls: (empty|zeros)\(4\)$",
        "the operators take 0.13 µs each; the rest is a Python function with PyTorch's keywords, which PyTorch parses in C",
    ),
    (
        r"^calls: arange\(8\)$",
        "the operator takes 0.26 µs, half of it; the rest is the Python function that tells start, end and step apart",
    ),
    (
        r"^calls: x\.split\(4\)$",
        "two views of 0.14 µs each and the tuple; the rest is the Python function that looks at the sizes",
    ),
    (
        r"^calls: x\.to\(float64\)$",
        "the conversion takes 0.36 µs, half of it; the rest is the Python function that tells dtypes, devices and tensors apart",
    ),
    (
        r"^creation: tril_indices",
        "made of a comparison, `nonzero` and two divisions, five passes over memory where PyTorch has a loop that writes the numbers",
    ),
    (
        r"^views: (pixel|channel)_shuffle .*(8x8|32x32)",
        "five small calls from Python (0.2 to 0.4 µs each) around a copy of 1 to 3 µs",
    ),
    (
        r"^indexing: embedding_bag sum",
        "rows anywhere in a table that is larger than the second cache: 23 cycles a row of 256 bytes, the latency that prefetching leaves",
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
