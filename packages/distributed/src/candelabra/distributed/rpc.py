"""Remote procedure calls, which are not here: their names raise and say what to use."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

_WAY_OUT = (
    "candelabra.distributed.rpc.{}: Candelabra has no remote procedure calls. Send tensors by isend and irecv, objects by "
    "send_object_list and broadcast_object_list, or call methods of Ray actors, each of which may be a rank"
)


def _refusing(name: str) -> Any:
    def refuse(self: Any, *arguments: Any, **keywords: Any) -> NoReturn:
        raise NotImplementedError(_WAY_OUT.format(name))

    return type(
        name, (), {"__init__": refuse, "__module__": __name__, "__doc__": f"Not here. {_WAY_OUT.format(name)}."}
    )


BackendType = _refusing("BackendType")
PyRRef = _refusing("PyRRef")
RRef = _refusing("RRef")
RpcBackendOptions = _refusing("RpcBackendOptions")
TensorPipeRpcBackendOptions = _refusing("TensorPipeRpcBackendOptions")
WorkerInfo = _refusing("WorkerInfo")


def init_rpc(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("init_rpc"))


def get_worker_info(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("get_worker_info"))


def remote(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("remote"))


def rpc_async(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("rpc_async"))


def rpc_sync(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("rpc_sync"))


def shutdown(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise NotImplementedError."""
    raise NotImplementedError(_WAY_OUT.format("shutdown"))
