"""Run crafted programs of kernel calls: ``python tests/fuzz/programs.py --mutations 100000``.

Each file is a valid program of the runner of which something was changed. It must be refused with a
message, or run: no process may end by a signal or by a report of a sanitizer. With the wheels of
``nox -s sanitize``, each kernel may use the memory of its own tensors alone.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "packages" / "runner" / "tests"))

from program_mutations import mutated
from programs import compiled
from running import BACKEND


def main() -> int:
    """Run all files, in parts, and print how many were refused and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", type=int, default=1_000, help="files a process")
    arguments = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runner = compiled(folder, "run_many")
        files = mutated(folder, arguments.mutations, arguments.seed)
        while part := list(itertools.islice(files, arguments.part)):
            done = subprocess.run([runner, BACKEND, *part], capture_output=True, text=True, errors="replace")
            lines = [line.split(" ", 3) for line in done.stdout.splitlines() if line.startswith(str(folder))]
            if done.returncode != 0:
                path = Path(lines[-1][0])
                kept = Path.cwd() / f"crash_{arguments.seed}_{path.name}"
                path.rename(kept)
                print(f"{kept} ended the process: exit code {done.returncode}\n{done.stderr[-8000:]}", file=sys.stderr)
                return 1
            counts.update(f"{line[1]} {line[2]}" for line in lines)
            for path in part:
                path.unlink()
    print(f"{arguments.mutations} programs: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
