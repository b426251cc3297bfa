"""Compare the public names of the installed PyTorch with those of ``torch`` on Candelabra: ``python
tests/parity_names``.

`listing.py` lists PyTorch's names, in a process that imports PyTorch. `resolve.py` looks them up in
a process where ``import torch`` is Candelabra. `scope.py` says what is outside the scope, and why.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scope import reason, reason_of_parameters

HERE = Path(__file__).parent
HEAD = """# Names of PyTorch

Every public name of PyTorch {version}: what is in a module's `__all__`, or, where there is none, was
defined in it, and the members of the classes that programs use most. A name is there if it can be
imported from `torch` under `candelabra.torch`. Written by `nox -s parity_names`.

**{there} of {total} names in scope are there ({share:.1f} %), and {class_there} of {class_total}
members of classes ({class_share:.1f} %).**
Of {signatures} functions and classes of `torch.distributed`, {whole} have all parameters of PyTorch's.
"""


def run(python: str, script: str, *arguments: str) -> None:
    """Run one of the scripts beside this file."""
    subprocess.run([python, str(HERE / script), *arguments], check=True, stderr=subprocess.DEVNULL)


def compared(pytorch: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return PyTorch's names, and those that are missing."""
    with tempfile.TemporaryDirectory() as folder:
        listed, missing = Path(folder) / "names.json", Path(folder) / "missing.json"
        run(pytorch, "listing.py", str(listed))
        run(sys.executable, "resolve.py", str(listed), str(missing))
        return json.loads(listed.read_text()), json.loads(missing.read_text())


def in_scope(names: dict[str, list[str]], with_modules: bool) -> dict[str, list[str]]:
    """Return the names in scope by module or class; the empty name is the module itself."""
    return {
        place: [name for name in ([""] if with_modules else []) + entries if reason(place, name) is None]
        for place, entries in names.items()
    }


def table(names: dict[str, list[str]], missing: dict[str, list[str]]) -> list[str]:
    """Return the rows of the modules or classes that lack something."""
    rows = []
    for place, entries in names.items():
        absent = [name for name in missing[place] if name in entries]
        if absent:
            words = ", ".join(f"`{name}`" if name else "the module" for name in absent)
            rows.append(f"| `{place}` | {len(entries) - len(absent)} | {len(entries)} | {words} |")
    return rows


def excluded(names: dict[str, list[str]]) -> list[str]:
    """Return the rows of what is outside the scope."""
    counts: Counter[str] = Counter()
    places: dict[str, set[str]] = {}
    for place, entries in names.items():
        for name in ["", *entries]:
            why = reason(place, name)
            if why is not None:
                counts[why] += 1
                places.setdefault(why, set()).add(".".join(place.split(".")[:2]))
    return [
        f"| {why} | {count} | {', '.join(f'`{place}`' for place in sorted(places[why]))} |"
        for why, count in counts.most_common()
    ]


def parameters_table(missing: dict[str, list[str]]) -> list[str]:
    """Return the rows of functions and classes that lack parameters."""
    return [f"| `{path}` | {', '.join(f'`{name}`' for name in names)} |" for path, names in missing.items() if names]


def main() -> int:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--pytorch", default=sys.executable, help="the interpreter that has PyTorch")
    parser.add_argument("--require", type=float, default=0.0, help="the least percentage of names in scope")
    parser.add_argument("--write", type=Path, help="the page to write")
    arguments = parser.parse_args()
    listed, missing = compared(arguments.pytorch)
    modules, classes = in_scope(listed["modules"], True), in_scope(listed["classes"], False)
    totals = []
    for names, kind in ((modules, "modules"), (classes, "classes")):
        total = sum(map(len, names.values()))
        there = total - sum(len(set(missing[kind][place]) & set(entries)) for place, entries in names.items())
        totals += [there, total, 100 * there / total]
    lacking = {path: names for path, names in missing["signatures"].items() if names and not reason_of_parameters(path)}
    signatures = [path for path in listed["signatures"] if not reason_of_parameters(path)]
    head = HEAD.format(
        version=listed["version"].partition("+")[0], there=totals[0], total=totals[1], share=totals[2], class_there=totals[3],
        class_total=totals[4], class_share=totals[5], signatures=len(signatures), whole=len(signatures) - len(lacking),
    )  # fmt: skip
    page = [
        head, "## Missing\n", "| module | there | names | missing |", "| --- | ---: | ---: | --- |", *table(modules, missing["modules"]), "",
        "| class | there | members | missing |", "| --- | ---: | ---: | --- |", *table(classes, missing["classes"]), "",
        "| function or class | missing parameters |", "| --- | --- |", *parameters_table(lacking), "",
        "## Outside the scope\n", "| why | names | where |", "| --- | ---: | --- |", *excluded(listed["modules"]), "",
    ]  # fmt: skip
    print(head.rpartition("\n\n")[2].strip())
    if arguments.write:
        arguments.write.write_text("\n".join(page))
    print(*parameters_table(lacking), sep="\n")
    return 0 if totals[2] >= arguments.require and not lacking else 1


if __name__ == "__main__":
    raise SystemExit(main())
