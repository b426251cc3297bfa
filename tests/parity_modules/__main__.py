"""Run PyTorch's module database through Candelabra, and write a table of differences: ``python
tests/parity_modules``.

With ``--device few`` Candelabra computes on that device; PyTorch stays on the CPU. With
``--compile`` each module is compared with itself, compiled. Needs torch 2.13, expecttest and
hypothesis beside Candelabra's packages; ``nox -s parity`` makes such an environment.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

#: Intended differences from PyTorch, by name, with the reason. They still count as different.
DIFFERENCES: dict[str, str] = {
    "nn.CrossMapLRN2d": "PyTorch's running sum keeps the first channel for ever",
}


def main() -> int:
    """Run the modules, print the results, write the page."""
    parser = argparse.ArgumentParser(prog="python tests/parity_modules", description=__doc__)
    parser.add_argument(
        "--only", default=".*", help="a regular expression that whole module names must match, as 'nn.LSTM'"
    )
    parser.add_argument(
        "--device", default=os.environ.get("CANDELABRA_TEST_DEVICE", "cpu"), help="where Candelabra computes (cpu)"
    )
    parser.add_argument("--show", type=int, default=6, help="how many differences of a module to print")
    parser.add_argument("--write", type=Path, help="write the table to this file, as Markdown")
    parser.add_argument(
        "--require", type=float, help="fail unless this percentage of the modules is right in every input"
    )
    parser.add_argument(
        "--compile", action="store_true", help="compare compiled modules with the same as written, bit for bit"
    )
    options = parser.parse_args()
    os.environ["CANDELABRA_TEST_DEVICE"] = options.device  # for `translate`

    import torch
    from compiled_modules import run_compiled
    from module_runner import Record, run_module
    from more_modules import more_modules
    from torch.testing._internal.common_modules import module_db
    from tqdm import tqdm

    import candelabra

    torch.set_num_threads(1)
    candelabra.set_num_threads(1)
    if options.device != "cpu":
        candelabra.set_default_device(options.device)
    entries = [entry for entry in [*module_db, *more_modules()] if re.fullmatch(options.only, entry.name)]
    if not entries:
        print(f"no module matches {options.only!r}")
        return 2
    found: dict[str, Record] = {}
    for entry in tqdm(entries, disable=not sys.stderr.isatty()):
        try:
            record = run_compiled(entry) if options.compile else run_module(entry)
        except Exception:
            record = Record(entry.name)
            record.differ(
                "crash", "the comparison itself failed: " + " / ".join(traceback.format_exc().splitlines()[-5:])
            )
        # A module of the database may also have inputs of our own.
        found[entry.name] = record if entry.name not in found else found[entry.name].joined(record)
    records = sorted(found.values(), key=lambda record: record.name)
    wrong = [record for record in records if record.kinds]
    for record in wrong:
        print(f"{record.name}: {dict(record.kinds)}")
        for difference in record.differences[: options.show]:
            print(f"    {difference}")
    share = 100 * (len(records) - len(wrong)) / len(records)
    summary = (
        f"{len(records) - len(wrong)} of {len(records)} modules right in every input ({share:.1f} %): "
        f"{sum(record.samples for record in records)} inputs, {sum(record.errors for record in records)} errors"
    )
    print(summary)
    if options.compile:
        replayed, written = (sum(record.checks[key] for record in records) for key in ("replayed", "as written"))
        print(f"{replayed} compiled modules were replayed, {written} ran as written")
    if options.write:
        write(options.write, records, summary, options.device)
    return 1 if options.require is not None and share < options.require else 0


def write(path: Path, records: list, summary: str, device: str) -> None:  # type: ignore[type-arg]
    """Write the table as Markdown."""
    lines = [
        "# Parity of modules with PyTorch",
        "",
        "Each module of PyTorch 2.13's module database (`torch.testing._internal.common_modules.module_db`), and with inputs of our own those",
        "of `torch.nn` that are not in it, is made in both libraries and called in training and evaluation, float64 and float32: the",
        "printed text, the names of parameters, buffers and modules, the state dict key for key, loaded both ways through files of",
        '`torch.save` and `candelabra.save(..., format="pytorch")`, outputs, gradients of all inputs and parameters, the state after the',
        "call, copies by `deepcopy` and `pickle`, and the exceptions for the database's bad inputs. Where a module draws at",
        "random, shapes and dtypes are compared. Written by `nox -s parity`.",
        "",
        *([] if device == "cpu" else [f"Candelabra computed on `{device}`, PyTorch on the CPU.", ""]),
        f"**{summary}.**",
        "",
        "| module | inputs | errors | outputs | gradients | state dicts both ways | right |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for record in records:
        right = "yes" if not record.kinds else "; ".join(f"{kind}: {count}" for kind, count in record.kinds.items())
        if record.name in DIFFERENCES:
            right += f" ({DIFFERENCES[record.name]})"
        checks = record.checks
        lines.append(
            f"| `{record.name}` | {record.samples} | {record.errors} | {checks['output']} | {checks['gradients']} | "
            f"{checks['state dict both ways']} | {right} |"
        )
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
