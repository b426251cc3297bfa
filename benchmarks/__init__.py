"""Benchmarks of Candelabra against PyTorch on the CPU, and the page of their results.

Run ``python -m benchmarks`` from the root of the repository, in an environment with both
frameworks; ``nox -s bench`` makes one. `workloads/` has a file of workloads for each family of
operators. `workload.py` defines a workload, `measuring.py` times it, and `machine.py` measures the
limits of the machine. `distributed/` measures several processes.
"""
