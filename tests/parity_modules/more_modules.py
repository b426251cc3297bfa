"""Inputs for modules of torch.nn that PyTorch's module database lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.testing import make_tensor
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput

#: A case: the arguments of the constructor, and a function that creates the arguments of the call.
Case = tuple[tuple[Any, ...], dict[str, Any], Callable[[Any], tuple[Any, ...]]]


def case(*args: Any, call: Callable[[Any], tuple[Any, ...]], **kwargs: Any) -> Case:
    """Return a case."""
    return args, kwargs, call


def whole(high: int, *shape: int) -> torch.Tensor:
    """Return integers below `high`, the same each time."""
    return (torch.arange(torch.Size(shape).numel()) * 7 % high).reshape(shape)


def unpooled(dims: int, **options: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return the arguments of an unpooling: maxima, their indices, and options."""

    def call(make: Any) -> tuple[Any, ...]:
        pool = getattr(nn.functional, f"max_pool{dims}d")
        values, places = pool(make((2, 3, *[6] * dims)).detach(), 2, return_indices=True)
        return values.requires_grad_(), places, *options.values()

    return call


def images(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return one tensor of this shape."""
    return lambda make: (make(shape),)


def pairs(*shapes: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return tensors of these shapes."""
    return lambda make: tuple(make(shape) for shape in shapes)


def swapped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A user-defined distance function."""
    return (a - b).abs().sum(-1)


CASES: dict[Any, list[Case]] = {
    nn.AdaptiveLogSoftmaxWithLoss: [
        case(8, 20, [5, 10], call=lambda make: (make((6, 8)), whole(20, 6))),
        case(8, 20, [5, 10, 15], 2.0, True, call=lambda make: (make((8,)), torch.tensor(17))),
        case(4, 7, [2], call=lambda make: (make((3, 4)), whole(2, 3))),
    ],
    nn.AlphaDropout: [case(0.3, call=images(4, 5)), case(0.0, call=images(4, 5))],
    nn.ChannelShuffle: [case(2, call=images(2, 6, 3, 3)), case(3, call=images(1, 6, 4))],
    nn.CosineSimilarity: [case(call=pairs((3, 4), (3, 4))), case(0, 1e-3, call=pairs((3, 4), (3, 1)))],
    nn.CrossMapLRN2d: [case(3, call=images(2, 5, 3, 3)), case(5, 0.1, 0.5, 2, call=images(2, 8, 3, 3))],
    nn.DataParallel: [case(nn.Linear(3, 2), call=images(4, 3))],
    nn.Dropout: [case(0.3, call=images(4, 5)), case(0.0, call=images(4, 5)), case(1.0, call=images(4, 5))],
    nn.Dropout1d: [case(0.3, call=images(4, 5, 2)), case(0.3, call=images(5, 2))],
    nn.Dropout2d: [case(0.3, call=images(4, 5, 2, 2)), case(0.0, call=images(4, 5, 2, 2))],
    nn.Dropout3d: [case(0.3, call=images(4, 5, 2, 2, 2)), case(0.3, call=images(5, 2, 2, 2))],
    nn.EmbeddingBag: [
        case(6, 3, mode=mode, padding_idx=padding, call=call)
        for mode in ("sum", "mean", "max")
        for padding in (None, 1)
        for call in (
            lambda make: (whole(6, 3, 4),),
            lambda make: (whole(6, 9), torch.tensor([0, 2, 2, 7])),
        )
    ] + [
        case(6, 3, mode="sum", call=lambda make: (whole(6, 3, 4), None, make((3, 4)))),
        case(6, 3, mode="mean", include_last_offset=True, call=lambda make: (whole(6, 9), torch.tensor([0, 4, 9]))),
        case(6, 3, mode="sum", max_norm=0.5, call=lambda make: (whole(6, 9), torch.tensor([0, 4]))),
        # Each number twice: PyTorch divides by the frequency of another row than the one it adds
        # to.
        case(6, 3, mode="sum", scale_grad_by_freq=True, call=lambda make: (whole(6, 12), torch.tensor([0, 4]))),
    ],
    nn.FeatureAlphaDropout: [case(0.3, call=images(4, 5, 2)), case(0.0, call=images(4, 5, 2))],
    nn.Flatten: [case(call=images(2, 3, 4)), case(0, 1, call=images(2, 3, 4))],
    nn.Fold: [
        case((4, 5), (2, 2), call=images(1, 12, 12)),
        case(5, 3, 1, 1, 2, call=images(2, 18, 9)),
        case(6, 2, 2, call=images(12, 16)),
    ],
    nn.Hardsigmoid: [case(call=images(3, 4))],
    nn.Identity: [case(3, x=4, call=images(3, 4))],
    nn.LazyBatchNorm1d: [case(call=images(4, 3)), case(affine=False, call=images(4, 3, 5)), case(bias=False, call=images(4, 3))],
    nn.LazyBatchNorm2d: [case(call=images(4, 3, 2, 2)), case(momentum=None, call=images(4, 3, 2, 2))],
    nn.LazyBatchNorm3d: [case(call=images(4, 3, 2, 2, 2)), case(track_running_stats=False, call=images(4, 3, 2, 2, 2))],
    nn.LazyInstanceNorm1d: [case(call=images(4, 3, 5)), case(affine=False, call=images(4, 3, 5))],
    nn.LazyInstanceNorm2d: [case(call=images(4, 3, 2, 5)), case(track_running_stats=False, call=images(4, 3, 2, 5))],
    nn.LazyInstanceNorm3d: [case(call=images(4, 3, 2, 2, 5))],
    nn.LazyLinear: [case(4, call=images(3, 5)), case(4, False, call=images(2, 3, 5))],
    nn.MaxUnpool1d: [case(2, call=unpooled(1)), case(2, call=unpooled(1, output_size=[7]))],
    nn.MaxUnpool2d: [case(2, call=unpooled(2)), case((2, 2), (2, 2), call=unpooled(2, output_size=[7, 6]))],
    nn.MaxUnpool3d: [case(2, call=unpooled(3)), case(2, 2, 0, call=unpooled(3, output_size=[7, 6, 7]))],
    nn.PairwiseDistance: [
        case(call=pairs((3, 4), (3, 4))), case(1.0, call=pairs((3, 4), (4,))), case(3.0, 1e-3, True, call=pairs((3, 4), (3, 4)))
    ],
    nn.PixelShuffle: [case(2, call=images(2, 8, 3, 3)), case(3, call=images(9, 2, 1))],
    nn.PixelUnshuffle: [case(2, call=images(2, 3, 4, 6))],
    nn.RReLU: [case(call=images(3, 4)), case(0.2, 0.2, call=images(3, 4))],
    nn.SyncBatchNorm: [case(3, call=images(4, 3)), case(3, momentum=None, affine=False, call=images(4, 3, 2, 2, 2))],
    nn.TransformerDecoder: [
        case(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2, call=pairs((3, 2, 4), (5, 2, 4))),
        case(
            nn.TransformerDecoderLayer(4, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True, bias=False), 1, nn.LayerNorm(4),
            call=pairs((2, 3, 4), (2, 5, 4)),
        ),
    ],
    nn.TripletMarginLoss: [
        case(call=pairs((3, 4), (3, 4), (3, 4))),
        case(0.5, 3.0, 1e-4, True, reduction="none", call=pairs((3, 4), (3, 4), (3, 4))),
        case(reduction="sum", call=pairs((4,), (4,), (4,))),
    ],
    nn.TripletMarginWithDistanceLoss: [
        case(call=pairs((3, 4), (3, 4), (3, 4))),
        case(margin=0.3, swap=True, reduction="sum", call=pairs((3, 4), (3, 4), (3, 4))),
    ],
    nn.Unflatten: [case(1, (2, 3), call=images(4, 6)), case(-1, [3, -1], call=images(4, 6))],
    nn.Unfold: [case(2, call=images(2, 3, 4, 5)), case((2, 3), 2, 1, 2, call=images(3, 6, 7))],
    nn.Upsample: [
        case(scale_factor=2, call=images(2, 3, 4)),
        case(scale_factor=(1.5, 2.5), mode="bilinear", call=images(1, 2, 4, 4)),
        case((5, 3), mode="bicubic", align_corners=True, call=images(1, 2, 4, 4)),
        case(7, mode="linear", call=images(1, 2, 4)),
        case(scale_factor=1.7, mode="trilinear", recompute_scale_factor=True, call=images(1, 2, 3, 4, 3)),
    ],
    nn.UpsamplingBilinear2d: [case(5, call=images(1, 2, 3, 4)), case(scale_factor=2, call=images(1, 2, 3, 4))],
    nn.UpsamplingNearest2d: [case((5, 4), call=images(1, 2, 3, 4)), case(scale_factor=2, call=images(1, 2, 3, 4))],
    nn.Sequential: [
        case(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(12, 2), call=images(4, 2, 5)),
        case(nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh())), nn.LayerNorm(3), call=images(4, 3)),
    ],
    # Options of the transformer layers that the database does not vary.
    nn.GRU: [
        case(3, 4, 2, bidirectional=True, call=lambda make: (nn.utils.rnn.pack_sequence([make((n, 3)) for n in (5, 3, 1)]), make((4, 3, 4)))),
        case(3, 4, batch_first=True, call=lambda make: (nn.utils.rnn.pack_sequence([make((n, 3)) for n in (1, 4)], False),)),
    ],
    nn.LSTM: [
        case(3, 4, 2, proj_size=2, bidirectional=True, call=lambda make: (make((5, 2, 3)),)),
        case(3, 4, bias=False, call=lambda make: (nn.utils.rnn.pack_sequence([make((n, 3)) for n in (2, 4)], False),)),
    ],
    nn.RNN: [case(3, 4, 2, "relu", False, True, call=lambda make: (make((2, 5, 3)), make((2, 2, 4))))],
}  # fmt: skip


def inputs(
    cases: list[Case], module_info: Any, device: str, dtype: torch.dtype, requires_grad: bool, training: bool, **_: Any
) -> list[Any]:
    """Return the inputs of one module, in the database's form."""
    from torch.testing._internal.common_modules import FunctionInput

    make = partial(make_tensor, device=device, dtype=dtype, requires_grad=requires_grad)
    made = []
    for number, (args, kwargs, call) in enumerate(cases):
        made.append(ModuleInput(FunctionInput(*args, **kwargs), FunctionInput(*call(make)), desc=f"own case {number}"))
    return made


def more_modules() -> list[Any]:
    """Return an entry for each module with cases here."""
    return [ModuleInfo(module, module_inputs_func=partial(inputs, cases)) for module, cases in CASES.items()]
