"""Candelabra against PyTorch on the CPU: what is timed, how, and the page that says what came out.

``python -m benchmarks`` from the root of the repository, in an environment that has both; ``nox -s
bench`` makes one. `workloads/` says what is timed, in a file for each family of operators;
`workload.py` what a workload is; `measuring.py` how it is timed; `machine.py` what the machine can
do at best.
"""
