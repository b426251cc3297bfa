"""Print the GPU's table: ``python -m benchmarks --device cuda`` or ``python -m benchmarks.gpu``."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from ..table import duration
from .measuring import Measured, measure
from .workloads import COPY, WORKLOADS


def libraries() -> tuple[list[Any], str]:
    """Return Candelabra, and PyTorch if it sees a GPU, with a note about PyTorch."""
    import candelabra

    for name in ("nn", "optim"):
        importlib.import_module(f"candelabra.{name}")
    candelabra.cuda.init()
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return [candelabra], "PyTorch is not installed: no ratios"
    if not torch.cuda.is_available():
        return [candelabra], f"PyTorch {torch.__version__} sees no GPU: no ratios"
    return [candelabra, torch], f"beside PyTorch {torch.__version__}"


def reached(measured: Measured, bandwidth: float) -> tuple[str, bool | None]:
    """Describe a line's result, and return whether it meets its limit (None if unknown)."""
    workload, seconds = measured.workload, measured.seconds[0]
    if workload is COPY:
        return f"{bandwidth / 1e9:.0f} GB/s", None
    if workload.kind == "memory":
        if not bandwidth:
            return "", None
        share = workload.bytes / seconds / bandwidth
        return f"{100 * share:.0f} % of the copy", share >= workload.limit if workload.limit else None
    text = f"{workload.operations / seconds / 1e12:.1f} TFLOPS" if workload.operations else ""
    if measured.ratio is None:
        return text, None
    kept = measured.ratio <= workload.limit
    if workload.kind == "training" and measured.peak_ratio is not None:
        text = f"memory {measured.peak_ratio:.2f}"
        kept = kept and measured.peak_ratio <= 1.0
    return text, kept


def main(arguments: list[str] | None = None) -> int:
    """Time the workloads, print a line for each and write the results. Return 1 if one fails or
    misses its limit, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks --device cuda", description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda"])
    parser.add_argument("--only", default="", help="a regular expression to be found in 'KIND: NAME'")
    parser.add_argument(
        "--tiny", action="store_true", help="sizes for an emulated device: that everything runs, not how fast"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args(arguments)
    chosen = [workload for workload in WORKLOADS if re.search(given.only, f"{workload.kind}: {workload.name}")]
    if given.list:
        print("\n".join(f"{workload.kind}: {workload.name}" for workload in chosen))
        return 0
    sides, why = libraries()
    ours = sides[0]
    print(f"{ours.cuda.get_device_name()}, Candelabra {ours.__version__}, {why}\n")
    if COPY not in chosen:
        chosen.insert(0, COPY)
    bandwidth = 0.0
    missed, failed = 0, 0
    rows: list[dict[str, Any]] = []
    print(f"{'':<44}{'Candelabra':>12}{'PyTorch':>12}{'ratio':>8}  reached")
    for workload in chosen:
        try:
            measured = measure(workload, sides, given.device, given.tiny)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError) as error:
            # Report the failure, such as a lack of GPU memory, and continue with the others.
            failed += 1
            reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            print(f"{workload.name:<44}FAILED  {reason[:160]}", flush=True)
            rows.append({"name": workload.name, "kind": workload.kind, "error": reason})
            continue
        if workload is COPY:
            # Use the faster of the two as the machine's bandwidth.
            bandwidth = workload.bytes / min(measured.seconds)
        text, kept = ("", None) if given.tiny else reached(measured, bandwidth)
        theirs = duration(measured.seconds[1]) if len(measured.seconds) > 1 else "–"
        ratio = "–" if measured.ratio is None else f"{measured.ratio:.2f}"
        verdict = "" if kept is None else " met" if kept else " MISSED"
        missed += verdict == " MISSED"
        print(
            f"{workload.name:<44}{duration(measured.seconds[0]):>12}{theirs:>12}{ratio:>8}  {text}{verdict}", flush=True
        )
        rows.append(
            {
                "name": workload.name, "kind": workload.kind, "seconds": measured.seconds, "peak_bytes": measured.peaks,
                "ratio": measured.ratio, "limit": workload.limit, "met": kept,
            }
        )  # fmt: skip
    print(f"\n{len(chosen)} workloads, {failed} failed, {missed} limits missed; {why}")
    if given.json:
        given.json.write_text(json.dumps({"device": ours.cuda.get_device_name(), "rows": rows}, indent=1))
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
