"""The table of a parity run, as text and as a page of the documentation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from scope import DIFFERENCES, PYTORCH_IS_WRONG

COLUMNS = ["function", "method", "in place", "out=", "gradient"]


def merge(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Merge entries of the database with the same name into one row per operator."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        row = rows.setdefault(
            record["name"], {"samples": 0, "errors": 0, "checks": Counter(), "kinds": Counter(), "differences": []}
        )
        row["samples"] += record["samples"]
        row["errors"] += record["errors"]
        row["checks"].update(record["checks"])
        row["kinds"].update(record["kinds"])
        variant = f"[{record['variant']}] " if record["variant"] else ""
        row["differences"] += [variant + text for text in record["differences"]]
    return rows


def totals(rows: dict[str, dict[str, Any]]) -> tuple[int, int, float]:
    """Return the number of operators, of those right in every sample, and the percentage."""
    right = sum(is_right(name, row) for name, row in rows.items())
    return len(rows), right, 100 * right / len(rows)


def is_right(name: str, row: dict[str, Any]) -> bool:
    """Return whether an operator is right in every sample, or the difference is a known error of
    PyTorch.
    """
    return not row["kinds"] or (name in PYTORCH_IS_WRONG and not row["kinds"].get("crash"))


def summary(rows: dict[str, dict[str, Any]]) -> str:
    """Summarize the outcome in a sentence."""
    count, right, share = totals(rows)
    samples, errors = sum(row["samples"] for row in rows.values()), sum(row["errors"] for row in rows.values())
    fallen = [calls for row in rows.values() if (calls := row["checks"].get("CPU fallback"))]
    fallback = f"; {len(fallen)} operators used the CPU fallback, in {sum(fallen)} calls" if fallen else ""
    return (
        f"{right} of {count} operators right in every sample ({share:.1f} %), over {samples} samples and {errors} error inputs"
        f"{fallback}"
    )


def print_table(rows: dict[str, dict[str, Any]], show: int) -> float:
    """Print every operator that differs, with its first differences, and the total; return the
    percentage.
    """
    for name in sorted(rows):
        row = rows[name]
        if row["kinds"]:
            kinds = ", ".join(f"{kind} {count}" for kind, count in row["kinds"].most_common())
            print(f"{name}: {row['samples']} samples, {row['errors']} error inputs; differs: {kinds}")
            for text in row["differences"][:show]:
                print(f"    {text}")
    kinds = Counter(kind for row in rows.values() for kind in row["kinds"])
    if kinds:
        print("operators that differ in: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    print(summary(rows))
    return totals(rows)[2]


def write_markdown(
    path: Path, rows: dict[str, dict[str, Any]], excluded: dict[str, str], device: str = "cpu", most: int = 0
) -> None:
    """Write the page of the documentation. `device` is Candelabra's; `most` is the limit of samples
    per dtype (0: all).
    """
    import torch

    lines = [
        "# Parity with PyTorch",
        "",
        f"PyTorch {torch.__version__.split('+')[0]}'s own operator database, run through both libraries in float64, float32, bfloat16,",
        "complex64, int64 and bool: every sample input through the function, the method, the in-place method and `out=`, its",
        "gradient, whether the result is a view or a copy, and the exception that each error input raises.",
        "",
        "Written by `python3 -m nox -s parity`. Each number counts comparisons.",
        "",
        *([] if device == "cpu" else [f"Candelabra computed on `{device}`, PyTorch on the CPU.", ""]),
        *([f"At most {most} samples of each dtype were taken, evenly spread.", ""] if most else []),
        f"**{summary(rows)}.**",
        "",
        "Values agree when they are within the tolerance that PyTorch's tests use for the dtype, or no farther from PyTorch's result",
        "in double precision than twice PyTorch's own distance (gradients: ten times). Random operators are compared in shape, dtype and errors;",
        "their distributions have tests of their own.",
        "",
    ]
    wrong = sorted(name for name, row in rows.items() if row["kinds"] and is_right(name, row))
    if wrong:
        lines += [
            "## Where PyTorch is wrong",
            "",
            "These count as right.",
            "",
            "| Operator | What is wrong |",
            "| --- | --- |",
        ]
        lines += [*(f"| `{name}` | {PYTORCH_IS_WRONG[name]} |" for name in wrong), ""]
    different = sorted(name for name, row in rows.items() if not is_right(name, row))
    if different:
        lines += ["## Operators that differ", "", "| Operator | Where | Reason |", "| --- | --- | --- |"]
        for name in different:
            row = rows[name]
            kinds = ", ".join(f"{kind} ({count})" for kind, count in row["kinds"].most_common())
            reason = DIFFERENCES.get(name, "not yet right: " + cell(row["differences"][0]))
            lines.append(f"| `{name}` | {kinds} | {reason} |")
        lines.append("")
    lines += [
        "## All operators in scope",
        "",
        "| Operator | Samples | " + " | ".join(COLUMNS) + " | Error inputs | Right |",
    ]
    lines.append("| --- |" + " ---: |" * (len(COLUMNS) + 2) + " :---: |")
    for name in sorted(rows):
        row = rows[name]
        counts = " | ".join(str(row["checks"].get(column, 0) or "") for column in COLUMNS)
        lines.append(
            f"| `{name}` | {row['samples']} | {counts} | {row['errors'] or ''} | {'yes' if is_right(name, row) else 'no'} |"
        )
    lines += ["", "## Out of scope", "", "| Name | Reason |", "| --- | --- |"]
    lines += [f"| `{name}` | {reason} |" for name, reason in sorted(excluded.items())]
    path.write_text("\n".join(lines) + "\n")


def cell(text: str) -> str:
    """Escape text for a table cell."""
    return text.replace("|", "\\|").replace("<", "&lt;")[:200]
