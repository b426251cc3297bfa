"""Build one package's wheel with a progress bar.

``python tools/build_wheel.py PACKAGE FOLDER [OPTION …]``, where the options are those of ``pip
wheel``. Ninja says how many files are compiled; the time that is left is estimated from the files
before. The whole output is shown if the build fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tqdm import tqdm

#: What ninja writes for each step: ``[12/88] Building CXX object …``.
STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
#: Seconds between two reports where there is no terminal.
REPORTS = 30.0


def main(package: str, folder: str, *options: str) -> int:
    """Build the wheel, and return pip's exit status."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-v",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        *options,
        package,
    ]
    printed: list[str] = []
    pace = {} if sys.stderr.isatty() else {"mininterval": REPORTS, "maxinterval": REPORTS, "ascii": True}
    with (
        tqdm(desc=Path(package).name, unit="file", smoothing=0, leave=False, **pace) as bar,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            printed.append(line)
            if step := STEP.match(line):
                bar.total = int(step[2])
                bar.update(int(step[1]) - bar.n)
    if pip.returncode:
        sys.stderr.writelines(printed)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
