"""The launcher's command line: torchrun's."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..rendezvous import DEFAULT_PORT

#: Options of torchrun that would change what happens, and are not there.
_MISSING = ("logs_specs", "numa_binding", "duplicate_stdout_filters", "duplicate_stderr_filters", "virtual_local_rank")


@dataclass
class Settings:
    """What a job needs to know.

    Attributes
    ----------
    command : list of str
        The program with its arguments.
    host, port
        Where the job's server is; port 0 for a free one.
    nodes, min_nodes : int
        The number of machines, at most and at least.
    join_timeout, last_call_timeout, close_timeout : float
        Seconds: in which enough machines must come; for which a job that could start waits for more
        of them; for which the host of a job that is over waits for the others.
    is_host : bool or None
        Whether this launcher runs the server. None: if the address is this machine's.
    node_rank : int
        This machine's number; -1 if the machines number themselves in the order in which they come.
    """

    command: list[str]
    script: str
    nodes: int
    min_nodes: int
    processes: int
    node_rank: int
    host: str
    port: int
    is_host: bool | None
    run_id: str
    token: str
    max_restarts: int
    join_timeout: float
    last_call_timeout: float
    close_timeout: float
    shutdown_timeout: float
    monitor_interval: float
    role: str
    log_folder: str | None
    redirects: dict[int, int] = field(default_factory=dict)
    tees: dict[int, int] = field(default_factory=dict)
    shown_ranks: set[int] | None = None
    signals: list[signal.Signals] = field(default_factory=list)

    @property
    def is_elastic(self) -> bool:
        """Whether the number of machines may change."""
        return self.min_nodes < self.nodes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Starts the processes of a job and watches them.", allow_abbrev=False
    )

    def option(*names: str, default: object = None, **others: object) -> None:
        both = [
            *names,
            *(f"--{name[2:].replace('-', '_')}" for name in names if name.startswith("--") and "-" in name[2:]),
        ]
        variable = f"PET_{names[-1].lstrip('-').replace('-', '_').upper()}"
        if others.get("action") == "store_true":
            default = os.environ.get(variable, "0") == "1"
        else:
            default = os.environ.get(variable, default)
        parser.add_argument(*both, default=default, **others)  # type: ignore[arg-type]

    option("--nnodes", default="1:1", help="number of machines, or MIN:MAX")
    option("--nproc-per-node", default="1", help="processes of each machine: a number, auto, cpu or gpu")
    option("--rdzv-backend", default="static", help="static or c10d")
    option("--rdzv-endpoint", default="", help="HOST:PORT of the job's server, for c10d")
    option("--rdzv-id", default="none", help="name of the job")
    option(
        "--rdzv-conf", default="", help="KEY=VALUE,...: join_timeout, last_call_timeout, close_timeout, token, is_host"
    )
    option("--standalone", action="store_true", help="one machine, with a free port")
    option("--max-restarts", default=0, type=int, help="how often a job that failed starts again")
    option("--monitor-interval", default=0.1, type=float, help="seconds between looks at other machines")
    option("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="has no effect")
    option("--event-log-handler", default="null", help="has no effect")
    option("--role", default="default", help="role of the processes, in the environment")
    option("-m", "--module", action="store_true", help="the program is a module")
    option("--no-python", action="store_true", help="the program is not Python")
    option("--run-path", action="store_true", help="run the script by runpy.run_path")
    option("--log-dir", help="folder of the log files")
    option(
        "-r",
        "--redirects",
        default="0",
        help="streams that go to files: 1 stdout, 2 stderr, 3 both, or RANK:STREAM,...",
    )
    option("-t", "--tee", default="0", help="streams that go to files and to the console")
    option("--local-ranks-filter", default="", help="processes whose output is shown: 0,1")
    option("--node-rank", default=0, type=int, help="number of this machine, for static")
    option("--master-addr", default="127.0.0.1", help="host of the job's server, for static")
    option("--master-port", type=int, help="port of the job's server, for static")
    option("--local-addr", help="address of this machine, if it runs the server")
    option("--signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that are passed on")
    option("--shutdown-timeout", type=float, help="seconds before processes are killed")
    option("--logs-specs", help="not supported")
    option("--numa-binding", help="not supported")
    option("--duplicate-stdout-filters", help="not supported")
    option("--duplicate-stderr-filters", help="not supported")
    option("--virtual-local-rank", action="store_true", help="not supported")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def read_arguments(arguments: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line; a wrong one ends the process with status 2.

    Examples
    --------
    >>> from candelabra.distributed.run.arguments import read_arguments
    >>> read_arguments(["--nproc-per-node", "2", "train.py"]).processes
    2
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    for name in _MISSING:
        if getattr(given, name):
            parser.error(f"--{name.replace('_', '-')} is not supported")
    try:
        return _settings(given)
    except ValueError as error:
        parser.error(str(error))


def _settings(given: argparse.Namespace) -> Settings:
    least, nodes = _nodes(given.nnodes)
    details = _details(given.rdzv_conf)
    processes = _processes(given.nproc_per_node)
    if given.max_restarts < 0:
        raise ValueError(f"--max-restarts must not be negative, but is {given.max_restarts}")
    timeout = given.shutdown_timeout
    if timeout is None:
        timeout = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
    settings = Settings(
        command=_command(given),
        script=given.training_script,
        nodes=nodes,
        min_nodes=least,
        processes=processes,
        node_rank=0,
        host="127.0.0.1",
        port=0,
        is_host=True,
        run_id=given.rdzv_id if given.rdzv_id != "none" else str(uuid.uuid4()),
        token=details.get("token") or os.environ.get("CANDELABRA_JOB_TOKEN") or secrets.token_hex(16),
        max_restarts=given.max_restarts,
        join_timeout=_seconds(details, "join_timeout", 600),
        last_call_timeout=_seconds(details, "last_call_timeout", 30),
        close_timeout=_seconds(details, "close_timeout", 30),
        shutdown_timeout=timeout,
        monitor_interval=given.monitor_interval,
        role=given.role,
        log_folder=given.log_dir,
        redirects=_streams(given.redirects, processes, "--redirects"),
        tees=_streams(given.tee, processes, "--tee"),
        shown_ranks={int(rank) for rank in given.local_ranks_filter.split(",")} if given.local_ranks_filter else None,
        signals=[_signal(name) for name in given.signals_to_handle.split(",")],
    )
    if given.standalone:
        if nodes != 1:
            raise ValueError("--standalone is for one machine; --nnodes says more")
        return settings
    if given.rdzv_backend == "static":
        if settings.is_elastic:
            raise ValueError(f"--nnodes {given.nnodes}: a number of machines that changes needs --rdzv-backend c10d")
        if not 0 <= given.node_rank < nodes:
            raise ValueError(f"--node-rank must be below the number of machines {nodes}, but is {given.node_rank}")
        settings.host, settings.node_rank = given.master_addr, given.node_rank
        # One machine needs no port that others know.
        settings.port = given.master_port if given.master_port is not None else (0 if nodes == 1 else DEFAULT_PORT)
        settings.is_host = given.node_rank == 0
    elif given.rdzv_backend == "c10d":
        host, _, port = (
            given.rdzv_endpoint.rpartition(":") if ":" in given.rdzv_endpoint else (given.rdzv_endpoint, "", "")
        )
        settings.host = host or "127.0.0.1"
        settings.port = int(port) if port else (0 if nodes == 1 else DEFAULT_PORT)
        settings.node_rank = 0 if nodes == 1 else -1
        settings.is_host = {"true": True, "1": True, "false": False, "0": False}.get(details.get("is_host", ""))
        if nodes == 1 and settings.is_host is None:
            settings.is_host = True
    else:
        raise ValueError(f"--rdzv-backend must be static or c10d, but is {given.rdzv_backend}")
    if nodes > 1 and "token" not in details and "CANDELABRA_JOB_TOKEN" not in os.environ:
        # All machines know the name of the job, and nothing else that is secret.
        settings.token = f"job {given.rdzv_id}"
    if nodes > 1:
        settings.run_id = given.rdzv_id
    return settings


def _nodes(text: str) -> tuple[int, int]:
    """Return the least and the greatest number of machines."""
    least, _, most = text.partition(":")
    try:
        numbers = int(least), int(most or least)
    except ValueError:
        raise ValueError(f"--nnodes must be a number or MIN:MAX, but is {text}") from None
    if not 1 <= numbers[0] <= numbers[1]:
        raise ValueError(f"--nnodes must be a number or MIN:MAX, but is {text}")
    return numbers


def _processes(text: str) -> int:
    if text in ("auto", "gpu", "cpu"):
        from candelabra import backends

        devices = 0
        if text != "cpu" and backends.has_device("cuda"):
            import candelabra.cuda

            devices = candelabra.cuda.device_count()
        if text == "gpu" and not devices:
            raise ValueError("--nproc-per-node gpu: there is no CUDA device")
        return devices or len(os.sched_getaffinity(0))
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"--nproc-per-node must be a number, auto, cpu or gpu, but is {text}") from None
    if number < 1:
        raise ValueError(f"--nproc-per-node must be positive, but is {number}")
    return number


def _details(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(f"--rdzv-conf must be KEY=VALUE,..., but is {text}")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _seconds(details: dict[str, str], name: str, default: float) -> float:
    try:
        found = float(details.get(name, default))
    except ValueError:
        found = -1.0
    if not found > 0:
        raise ValueError(f"--rdzv-conf: {name} must be a positive number of seconds, but is {details[name]}")
    return found


def _streams(text: str, processes: int, name: str) -> dict[int, int]:
    """Return by local rank which streams are meant: 1 stdout, 2 stderr, 3 both."""
    try:
        if ":" not in text:
            found = dict.fromkeys(range(processes), int(text))
        else:
            found = {int(rank): int(stream) for rank, _, stream in (pair.partition(":") for pair in text.split(","))}
    except ValueError:
        raise ValueError(f"{name} must be a number from 0 to 3 or RANK:NUMBER,..., but is {text}") from None
    if any(not 0 <= stream <= 3 for stream in found.values()):
        raise ValueError(f"{name} must be a number from 0 to 3 or RANK:NUMBER,..., but is {text}")
    return found


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals[name.strip()]
    except KeyError:
        raise ValueError(f"--signals-to-handle: there is no signal {name}") from None


def _command(given: argparse.Namespace) -> list[str]:
    if given.run_path:
        starter = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        return [sys.executable, "-u", "-c", starter, given.training_script, *given.training_script_args]
    if given.no_python:
        if given.module:
            raise ValueError("--no-python and --module exclude each other")
        return [given.training_script, *given.training_script_args]
    python = os.environ.get("PYTHON_EXEC", sys.executable)
    module = ["-m"] if given.module else []
    return [python, "-u", *module, given.training_script, *given.training_script_args]
