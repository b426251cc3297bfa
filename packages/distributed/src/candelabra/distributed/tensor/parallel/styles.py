"""How the parameters of a layer are divided among the ranks of a mesh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from candelabra import Tensor, nn

from ...device_mesh import DeviceMesh
from ..distribution import distribute_module, distribute_tensor
from ..dtensor import DTensor
from ..placements import Placement, Replicate, Shard


class ParallelStyle(ABC):
    """How a module computes on parts of its parameters; given to `parallelize_module`."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        """Prepare a module."""


class _Divided(ParallelStyle):
    """A style of linear layers and embeddings, which divides their parameters.

    Parameters
    ----------
    input_layouts : Placement, optional
        Where the layer's input is.
    output_layouts : Placement, optional
        Where its output is wanted.
    use_local_output : bool
        Return this rank's part of the output, or the DTensor.
    """

    _input: Placement
    _output: Placement

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or self._input,)
        self.output_layouts = (output_layouts or self._output,)
        self.use_local_output = use_local_output

    def _places(self, module: nn.Module) -> dict[str, Placement]:
        """Return where the module's parameters are."""
        raise NotImplementedError

    def _wanted(self, module: nn.Module) -> Placement:
        """Return where the module needs its input."""
        raise NotImplementedError

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if not isinstance(module, (nn.Linear, nn.Embedding)):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        places, wanted = self._places(module), self._wanted(module)

        def partition(_name: str, owner: nn.Module, mesh: DeviceMesh) -> None:
            for name, parameter in list(owner.named_parameters(recurse=False)):
                made = distribute_tensor(parameter, mesh, [places[name]], src_data_rank=self.src_data_rank)
                owner.register_parameter(name, nn.Parameter(made, requires_grad=parameter.requires_grad))

        def prepare(_owner: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            given = inputs[0]
            if not isinstance(given, DTensor):
                given = DTensor.from_local(given, mesh, self.input_layouts)
            return (_placed(given, wanted), *inputs[1:])

        def finish(_owner: nn.Module, output: DTensor, _mesh: DeviceMesh) -> Any:
            made = _placed(output, self.output_layouts[0])
            return made.to_local() if self.use_local_output else made

        return distribute_module(module, device_mesh, partition, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


def _placed(tensor: DTensor, place: Placement) -> DTensor:
    if isinstance(place, Shard) and place.dim < 0:
        place = Shard(place.dim + tensor.ndim)
    return tensor if tensor.placements == (place,) else tensor.redistribute(placements=(place,))


class ColwiseParallel(_Divided):
    """Each rank computes some of the outputs of a linear layer, or some columns of an embedding.

    Parameters
    ----------
    input_layouts : Placement, optional
        Where the input is: replicated by default.
    output_layouts : Placement, optional
        Where the output is wanted: sharded along its last dimension by default.
    use_local_output : bool
        Return this rank's part of the output, or the DTensor.
    """

    _input = Replicate()
    _output = Shard(-1)

    def _places(self, module: nn.Module) -> dict[str, Placement]:
        dim = 0 if isinstance(module, nn.Linear) else 1
        return {"weight": Shard(dim), "bias": Shard(0)}

    def _wanted(self, module: nn.Module) -> Placement:
        return Replicate()


class RowwiseParallel(_Divided):
    """Each rank has some of the inputs of a linear layer, or some rows of an embedding.

    The ranks' results are added.

    Parameters
    ----------
    input_layouts : Placement, optional
        Where the input is: sharded along its last dimension by default.
    output_layouts : Placement, optional
        Where the output is wanted: replicated by default.
    use_local_output : bool
        Return this rank's part of the output, or the DTensor.
    """

    _input = Shard(-1)
    _output = Replicate()

    def _places(self, module: nn.Module) -> dict[str, Placement]:
        dim = 1 if isinstance(module, nn.Linear) else 0
        return {"weight": Shard(dim), "bias": Replicate()}

    def _wanted(self, module: nn.Module) -> Placement:
        return Shard(-1) if isinstance(module, nn.Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """A normalisation or dropout computes on parts of the sequence; parameters are replicated.

    Parameters
    ----------
    sequence_dim : int
        The dimension of the input that is divided.
    use_local_output : bool
        Return this rank's part of the output, or the DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def partition(_name: str, owner: nn.Module, mesh: DeviceMesh) -> None:
            for name, parameter in list(owner.named_parameters(recurse=False)):
                made = DTensor.from_local(parameter.detach(), mesh, [Replicate()])
                owner.register_parameter(name, nn.Parameter(made, requires_grad=parameter.requires_grad))

        def prepare(owner: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            given = inputs[0]
            if isinstance(given, DTensor):
                return (_placed(given, self.sequence_sharding[0]), *inputs[1:])
            if isinstance(given, Tensor):
                return (DTensor.from_local(given, mesh, self.sequence_sharding), *inputs[1:])
            raise ValueError(f"expecting input of {owner} to be a torch.Tensor or DTensor, but got {given}")

        def finish(_owner: nn.Module, output: Any, _mesh: DeviceMesh) -> Any:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, partition, prepare, finish)

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"
        )
