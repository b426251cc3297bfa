"""Hostile calls of everything public: ``python tests/fuzz/calls.py --calls 300000``.

Each function gets as many as the others. A call that ends the process, that takes longer than ten
seconds of the processor, or that raises after it has written is listed, and the run fails. The
calls depend on the seed alone.
"""

from __future__ import annotations

import argparse
import sys
import time

from candelabra.testing import hostile

#: What is called. Not here: what starts processes or opens connections (multiprocessing,
#: distributed, hub, the launchers of utils), what takes functions of the program (func, fx, jit,
#: compiler, export, utils.data), and what reads files, which has targets of its own.
NAMESPACES = [
    "candelabra", "candelabra.Tensor", "candelabra.ops", "candelabra.linalg", "candelabra.fft", "candelabra.special", "candelabra.signal.windows",
    "candelabra.nn", "candelabra.nn.functional", "candelabra.nn.init", "candelabra.nn.utils", "candelabra.nn.utils.rnn", "candelabra.optim",
    "candelabra.optim.lr_scheduler", "candelabra.distributions", "candelabra.vision_ops", "candelabra.autograd", "candelabra.autograd.functional",
    "candelabra.array_api", "candelabra.legacy.nn",
]  # fmt: skip


def main() -> int:
    """Make the calls, and list the faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=30_000, help="of all functions together, at least")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count = sum(len(hostile.functions(namespace)) for namespace in NAMESPACES)
    each = -(-options.calls // count)
    made = faults = 0
    began = time.monotonic()
    for namespace in NAMESPACES:
        report = hostile.run([namespace], calls=each, seed=options.seed)
        made += report.calls
        faults += len(report.crashes) + len(report.wrong)
        for fault in [*report.crashes, *report.wrong]:
            print(fault)
        print(f"{namespace:32} {report.calls:>8} calls, {time.monotonic() - began:6.0f} s", flush=True)
    print(f"{made} calls of {count} functions: {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
