"""Every layer: gradients by finite differences, copies, conversion, and reference values."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from legacy_checks import check_module

import candelabra
from candelabra.legacy import load_lua, nn, save_lua
from candelabra.legacy.nn.tape import map_tensors, tensors_of


def randn(*shape: int) -> Any:
    return candelabra.randn(*shape, dtype=candelabra.float64)


def positive(*shape: int) -> Any:
    return candelabra.rand(*shape, dtype=candelabra.float64) + 0.2


def away_from(*points: float) -> Callable[..., Any]:
    """Return a source of numbers that are not close to points without a derivative."""

    def draw(*shape: int) -> Any:
        values = randn(*shape)
        for point in points:
            values = candelabra.where((values - point).abs() < 0.05, values + 0.2, values)
        return values

    return draw


def indices(*shape: int, below: int = 4) -> Any:
    return candelabra.randint(0, below, shape)


def pooled(pooling: Any, unpooling: Any) -> Any:
    return nn.Sequential().add(pooling).add(unpooling(pooling))


def written_and_read(module: nn.Module) -> Any:
    file = io.BytesIO()
    save_lua(module, file)
    file.seek(0)
    return load_lua(file)


MAPS = nn.SpatialConvolutionMap.maps

#: Name, constructor, input.
LAYERS: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
    *[(name, getattr(nn, name), lambda: away_from(0.0, 6.0)(3, 4)) for name in (
        "Abs", "Exp", "Square", "Sigmoid", "LogSigmoid", "Tanh", "TanhShrink", "SoftSign", "SoftMax", "LogSoftMax",
        "SoftMin", "Identity", "Contiguous", "ReLU", "ReLU6", "LeakyReLU", "ELU", "SoftPlus", "Mul",
    )],
    ("Log", nn.Log, lambda: positive(3, 4)),
    ("Sqrt", nn.Sqrt, lambda: positive(3, 4)),
    ("SpatialSoftMax", nn.SpatialSoftMax, lambda: randn(2, 3, 4, 4)),
    ("SpatialLogSoftMax", nn.SpatialLogSoftMax, lambda: randn(3, 4, 4)),
    ("Threshold", lambda: nn.Threshold(0.3, 0.1), lambda: away_from(0.3)(3, 4)),
    ("HardTanh", nn.HardTanh, lambda: away_from(-1, 1)(3, 4)),
    ("Clamp", lambda: nn.Clamp(-0.5, 0.7), lambda: away_from(-0.5, 0.7)(3, 4)),
    ("SoftShrink", nn.SoftShrink, lambda: away_from(-0.5, 0.5)(3, 4)),
    ("HardShrink", nn.HardShrink, lambda: away_from(-0.5, 0.5)(3, 4)),
    ("Power", lambda: nn.Power(1.5), lambda: positive(3, 4)),
    ("AddConstant", lambda: nn.AddConstant(3.5), lambda: randn(3, 4)),
    ("MulConstant", lambda: nn.MulConstant(4), lambda: randn(3, 4)),
    ("GatedLinearUnit", nn.GatedLinearUnit, lambda: randn(3, 4)),
    ("GradientReversal", lambda: nn.Sequential().add(nn.GradientReversal()).add(nn.GradientReversal()), lambda: randn(3, 4)),
    ("Copy", lambda: nn.Copy(None, "torch.DoubleTensor"), lambda: randn(3, 4)),
    ("Linear", lambda: nn.Linear(4, 5), lambda: randn(3, 4)),
    ("Linear", lambda: nn.Linear(4, 5, False), lambda: randn(4)),
    ("PartialLinear", lambda: nn.PartialLinear(4, 5).setPartition(candelabra.tensor([1, 3])), lambda: randn(3, 4)),
    ("PartialLinear", lambda: nn.PartialLinear(4, 5, False), lambda: randn(3, 4)),
    ("Bilinear", lambda: nn.Bilinear(2, 3, 5), lambda: [randn(4, 2), randn(4, 3)]),
    ("Bilinear", lambda: nn.Bilinear(2, 3, 1, False), lambda: [randn(4, 2), randn(4, 3)]),
    ("Add", lambda: nn.Add((5, 4)), lambda: randn(3, 5, 4)),
    ("Add", lambda: nn.Add(1, True), lambda: randn(3, 1, 4)),
    ("CMul", lambda: nn.CMul(5, 6), lambda: randn(3, 5, 6)),
    ("CMul", lambda: nn.CMul(1, 5), lambda: randn(4, 3, 5)[:, 1]),
    ("CMul", lambda: nn.CMul(1, 3, 1, 1), lambda: randn(2, 3, 4, 4)),
    ("Cosine", lambda: nn.Cosine(5, 7), lambda: randn(4, 5)),
    ("Euclidean", lambda: nn.Euclidean(5, 7), lambda: randn(4, 5)),
    ("WeightedEuclidean", lambda: nn.WeightedEuclidean(5, 7), lambda: randn(4, 5)),
    ("WeightedEuclidean", lambda: nn.WeightedEuclidean(5, 7), lambda: randn(5)),
    ("PReLU", nn.PReLU, lambda: away_from(0.0)(3, 4)),
    ("PReLU", lambda: nn.PReLU(3), lambda: away_from(0.0)(2, 3, 4, 4)),
    ("PReLU", lambda: nn.PReLU(3), lambda: away_from(0.0)(3, 4, 4)),
    ("LookupTable", lambda: nn.LookupTable(4, 3), lambda: indices(2, 5)),
    ("LookupTable", lambda: nn.LookupTable(4, 3).scaleGradByFreq().setPadding(9), lambda: candelabra.tensor([0, 3, 2])),
    ("CAddTable", nn.CAddTable, lambda: [randn(5, 7), randn(5, 7), randn(5, 7)]),
    ("CSubTable", nn.CSubTable, lambda: [randn(5, 7), randn(5, 7)]),
    ("CMulTable", nn.CMulTable, lambda: [randn(5, 7), randn(5, 7), randn(5, 7)]),
    ("CDivTable", nn.CDivTable, lambda: [randn(5, 7), positive(5, 7)]),
    ("CMaxTable", nn.CMaxTable, lambda: [randn(5, 7), randn(5, 7), randn(5, 7)]),
    ("CMinTable", nn.CMinTable, lambda: [randn(5, 7), randn(5, 7)]),
    ("DotProduct", nn.DotProduct, lambda: [randn(5, 7), randn(5, 7)]),
    ("CosineDistance", nn.CosineDistance, lambda: [randn(5, 7), randn(5, 7)]),
    ("CosineDistance", nn.CosineDistance, lambda: [randn(7), randn(7)]),
    *[("PairwiseDistance", lambda p=p: nn.PairwiseDistance(p), lambda: [randn(4, 5), randn(4, 5)]) for p in (1, 2, 3)],
    ("MM", lambda: nn.MM(False, True), lambda: [randn(2, 4, 3), randn(2, 5, 3)]),
    ("MM", lambda: nn.MM(True), lambda: [randn(4, 3), randn(4, 5)]),
    ("MV", nn.MV, lambda: [randn(2, 4, 3), randn(2, 3)]),
    ("MV", lambda: nn.MV(True), lambda: [randn(4, 3), randn(4)]),
    ("JoinTable", lambda: nn.JoinTable(1), lambda: [randn(2, 3), randn(2, 4)]),
    ("JoinTable", lambda: nn.JoinTable(0, 1), lambda: [randn(2, 3), randn(2, 4)]),
    ("SplitTable", lambda: nn.SplitTable(1), lambda: randn(2, 3, 2)),
    ("SplitTable", lambda: nn.SplitTable(-1), lambda: randn(2, 3, 2)),
    ("SelectTable", lambda: nn.SelectTable(1), lambda: [randn(2), [randn(3), randn(1)], randn(2)]),
    ("NarrowTable", lambda: nn.NarrowTable(1, 2), lambda: [randn(2), randn(3), randn(4), randn(1)]),
    ("FlattenTable", nn.FlattenTable, lambda: [randn(1), [randn(2), [randn(3)]], randn(4)]),
    ("MixtureTable", nn.MixtureTable, lambda: [randn(5, 3), randn(5, 3, 6)]),
    ("MixtureTable", nn.MixtureTable, lambda: [randn(5, 3), [randn(5, 6), randn(5, 6), randn(5, 6)]]),
    ("MixtureTable", nn.MixtureTable, lambda: [randn(2), [randn(6), randn(6)]]),
    ("Index", lambda: nn.Index(0), lambda: [randn(4, 3), candelabra.tensor([3, 0, 3])]),
    ("MaskedSelect", nn.MaskedSelect, lambda: [randn(3, 3), candelabra.eye(3, dtype=candelabra.uint8)]),
    ("View", lambda: nn.View(-1, 2, 10), lambda: randn(2, 2, 5, 2)),
    ("View", lambda: nn.View(20), lambda: randn(2, 2, 5, 2)),
    ("View", lambda: nn.View(-1).setNumInputDims(2), lambda: randn(3, 4, 5)),
    ("Reshape", lambda: nn.Reshape(4, 5), lambda: randn(3, 20)),
    ("Reshape", lambda: nn.Reshape(20), lambda: randn(3, 5, 4).transpose(1, 2)),
    ("Transpose", lambda: nn.Transpose((1, 2), (1, 3)), lambda: randn(2, 3, 4, 5)),
    ("Squeeze", nn.Squeeze, lambda: randn(2, 1, 1, 4)),
    ("Squeeze", lambda: nn.Squeeze(0, 2), lambda: randn(2, 1, 4)),
    ("Unsqueeze", lambda: nn.Unsqueeze(1), lambda: randn(2, 4)),
    ("Replicate", lambda: nn.Replicate(2, 1), lambda: randn(3, 4, 5)),
    ("Narrow", lambda: nn.Narrow(1, 1, 2), lambda: randn(2, 4, 3)),
    ("Narrow", lambda: nn.Narrow(1, 1, -2), lambda: randn(2, 4, 3)),
    ("Select", lambda: nn.Select(1, 2), lambda: randn(3, 4, 5)),
    ("Padding", lambda: nn.Padding(0, 2, 4, -10, 1), lambda: randn(2, 3, 4, 5)),
    ("Padding", lambda: nn.Padding(0, -2, 2, 7), lambda: randn(2, 3, 4)),
    ("Max", nn.Max, lambda: randn(4, 5, 3)),
    ("Max", nn.Max, lambda: randn(5)),
    ("Min", lambda: nn.Min(1), lambda: randn(4, 5, 3)),
    ("Sum", lambda: nn.Sum(1, True), lambda: randn(2, 4, 5)),
    ("Sum", nn.Sum, lambda: randn(4)),
    ("Mean", lambda: nn.Mean(1), lambda: randn(2, 4, 5)),
    *[("Normalize", lambda p=p: nn.Normalize(p), lambda: away_from(0.0)(4, 5)) for p in (1, 2, 1.5, float("inf"))],
    ("PixelShuffle", lambda: nn.PixelShuffle(2), lambda: randn(1, 8, 3, 3)),
    ("SpatialUpSamplingNearest", lambda: nn.SpatialUpSamplingNearest(2), lambda: randn(1, 3, 4, 4)),
    ("SpatialUpSamplingBilinear", lambda: nn.SpatialUpSamplingBilinear(2), lambda: randn(1, 3, 4, 4)),
    ("SpatialZeroPadding", lambda: nn.SpatialZeroPadding(1, 2, 3, -1), lambda: randn(2, 3, 4, 4)),
    ("SpatialReflectionPadding", lambda: nn.SpatialReflectionPadding(1, 2, 3, 2), lambda: randn(3, 5, 5)),
    ("SpatialReplicationPadding", lambda: nn.SpatialReplicationPadding(1), lambda: randn(2, 3, 4, 4)),
    ("VolumetricReplicationPadding", lambda: nn.VolumetricReplicationPadding(1, 2, 1, 2, 1, 1), lambda: randn(1, 2, 3, 3, 3)),
    ("SpatialConvolution", lambda: nn.SpatialConvolution(3, 4, 3, 2, 2, 1, 1), lambda: randn(2, 3, 6, 6)),
    ("SpatialConvolution", lambda: nn.SpatialConvolution(3, 4, 3, 3).noBias(), lambda: randn(3, 6, 6)),
    ("SpatialConvolutionMM", lambda: nn.SpatialConvolutionMM(3, 4, 3, 3), lambda: randn(1, 3, 5, 5)),
    ("SpatialDilatedConvolution", lambda: nn.SpatialDilatedConvolution(3, 2, 3, 3, 1, 1, 1, 1, 2, 1), lambda: randn(2, 3, 6, 6)),
    ("SpatialFullConvolution", lambda: nn.SpatialFullConvolution(3, 4, 3, 3, 2, 2, 1, 1, 1, 1), lambda: randn(1, 3, 4, 4)),
    ("SpatialFullConvolution", lambda: nn.SpatialFullConvolution(3, 4, 3, 3, 2, 2, 1, 1), lambda: [randn(1, 3, 4, 4), randn(1, 1, 8, 7)]),
    ("SpatialConvolutionLocal", lambda: nn.SpatialConvolutionLocal(3, 2, 6, 5, 2, 2, 2, 1, 1, 1), lambda: randn(2, 3, 5, 6)),
    ("SpatialConvolutionMap", lambda: nn.SpatialConvolutionMap(MAPS.full(3, 4), 3, 2, 2, 1), lambda: randn(3, 5, 5)),
    ("SpatialConvolutionMap", lambda: nn.SpatialConvolutionMap(MAPS.random(4, 3, 2), 3, 3), lambda: randn(1, 4, 5, 5)),
    ("SpatialFullConvolutionMap", lambda: nn.SpatialFullConvolutionMap(MAPS.oneToOne(3), 3, 3, 2, 2), lambda: randn(3, 4, 4)),
    ("VolumetricConvolution", lambda: nn.VolumetricConvolution(2, 3, 2, 2, 1, 2, 1, 1, 1), lambda: randn(1, 2, 4, 3, 3)),
    ("VolumetricDilatedConvolution", lambda: nn.VolumetricDilatedConvolution(2, 3, 2, 2, 2, dilationT=2), lambda: randn(1, 2, 4, 3, 3)),
    ("VolumetricFullConvolution", lambda: nn.VolumetricFullConvolution(2, 3, 2, 2, 2, 2, 2, 2, 0, 0, 0, 1, 0, 1), lambda: randn(1, 2, 3, 3, 3)),
    ("TemporalConvolution", lambda: nn.TemporalConvolution(4, 5, 3, 2), lambda: randn(2, 10, 4)),
    ("TemporalConvolution", lambda: nn.TemporalConvolution(4, 5, 3), lambda: randn(10, 4)),
    ("TemporalSubSampling", lambda: nn.TemporalSubSampling(4, 3, 2), lambda: randn(10, 4)),
    ("TemporalMaxPooling", lambda: nn.TemporalMaxPooling(4), lambda: randn(2, 10, 4)),
    ("SpatialMaxPooling", lambda: nn.SpatialMaxPooling(3, 2, 2, 2, 1, 1).ceil(), lambda: randn(1, 3, 7, 7)),
    ("SpatialMaxUnpooling", lambda: pooled(nn.SpatialMaxPooling(2, 2), nn.SpatialMaxUnpooling), lambda: randn(1, 3, 7, 6)),
    ("VolumetricMaxPooling", lambda: nn.VolumetricMaxPooling(2, 2, 2, 1, 1, 1), lambda: randn(2, 2, 4, 4, 4)),
    ("VolumetricMaxUnpooling", lambda: pooled(nn.VolumetricMaxPooling(2, 2, 2), nn.VolumetricMaxUnpooling), lambda: randn(1, 2, 4, 5, 4)),
    ("SpatialAveragePooling", lambda: nn.SpatialAveragePooling(2, 3, 2, 2, 1, 1), lambda: randn(2, 3, 6, 6)),
    ("SpatialAveragePooling", lambda: nn.SpatialAveragePooling(2, 2, 2, 2, 1, 1).setCountExcludePad().ceil(), lambda: randn(3, 5, 5)),
    ("VolumetricAveragePooling", lambda: nn.VolumetricAveragePooling(2, 2, 2), lambda: randn(2, 2, 4, 4, 5)),
    ("SpatialAdaptiveMaxPooling", lambda: nn.SpatialAdaptiveMaxPooling(4, 3), lambda: randn(2, 3, 7, 11)),
    ("SpatialAdaptiveAveragePooling", lambda: nn.SpatialAdaptiveAveragePooling(4, 3), lambda: randn(2, 3, 7, 11)),
    ("SpatialFractionalMaxPooling", lambda: nn.SpatialFractionalMaxPooling(2, 2, 0.5, 0.6).fixPoolingRegions(), lambda: randn(1, 3, 7, 7)),
    ("SpatialFractionalMaxPooling", lambda: nn.SpatialFractionalMaxPooling(2, 2, 4, 3).fixPoolingRegions(), lambda: randn(1, 3, 7, 7)),
    ("SpatialLPPooling", lambda: nn.SpatialLPPooling(3, 2, 2, 2), lambda: randn(1, 3, 6, 6)),
    ("SpatialLPPooling", lambda: nn.SpatialLPPooling(3, 3, 2, 2, 1, 1), lambda: positive(1, 3, 4, 4)),
    ("SpatialSubSampling", lambda: nn.SpatialSubSampling(3, 3, 2, 2, 2), lambda: randn(1, 3, 7, 7)),
    ("BatchNormalization", lambda: nn.BatchNormalization(10), lambda: randn(4, 10)),
    ("BatchNormalization", lambda: nn.BatchNormalization(10, 1e-3, 0.3, False), lambda: randn(4, 10)),
    ("SpatialBatchNormalization", lambda: nn.SpatialBatchNormalization(3), lambda: randn(2, 3, 4, 4)),
    ("VolumetricBatchNormalization", lambda: nn.VolumetricBatchNormalization(3, 1e-3, 0.7), lambda: randn(2, 3, 2, 3, 2)),
    ("SpatialCrossMapLRN", lambda: nn.SpatialCrossMapLRN(3, 0.1), lambda: randn(2, 5, 3, 3)),
    ("SpatialCrossMapLRN", lambda: nn.SpatialCrossMapLRN(4, 0.1), lambda: randn(5, 3, 3)),
    ("SpatialSubtractiveNormalization", lambda: nn.SpatialSubtractiveNormalization(3), lambda: randn(1, 3, 7, 7)),
    ("SpatialSubtractiveNormalization", lambda: nn.SpatialSubtractiveNormalization(3, candelabra.rand(3)), lambda: randn(3, 7, 7)),
    ("SpatialDivisiveNormalization", lambda: nn.SpatialDivisiveNormalization(3, candelabra.rand(5, 3)), lambda: randn(2, 3, 8, 8)),
    ("SpatialContrastiveNormalization", lambda: nn.SpatialContrastiveNormalization(3, candelabra.ones(5)), lambda: randn(2, 3, 8, 8)),
    ("Sequential", lambda: nn.Sequential().add(nn.Linear(4, 3)).add(nn.Tanh()).add(nn.Linear(3, 2)), lambda: randn(5, 4)),
    ("Concat", lambda: nn.Concat(1).add(nn.Linear(4, 3)).add(nn.Linear(4, 2)).add(nn.Tanh()), lambda: randn(5, 4)),
    ("DepthConcat", lambda: nn.DepthConcat(1).add(nn.SpatialConvolution(2, 3, 1, 1)).add(nn.SpatialConvolution(2, 2, 3, 4)), lambda: randn(2, 2, 5, 5)),
    ("ConcatTable", lambda: nn.ConcatTable().add(nn.Linear(4, 3)).add(nn.Identity()), lambda: randn(5, 4)),
    ("ConcatTable", lambda: nn.ConcatTable().add(nn.CAddTable()).add(nn.SelectTable(0)), lambda: [randn(5, 4), randn(5, 4)]),
    ("ParallelTable", lambda: nn.ParallelTable().add(nn.Linear(4, 3)).add(nn.Tanh()), lambda: [randn(5, 4), randn(2)]),
    ("Parallel", lambda: nn.Parallel(1, 0).add(nn.Linear(4, 3)).add(nn.Linear(4, 2)), lambda: randn(4, 2)),
]  # fmt: skip
#: Names that have tests of their own: bases, criteria, noise, and gradients unlike the output's.
ELSEWHERE = {
    "Container", "CriterionTable", "Dropout", "L1Penalty", "Module", "RReLU", "SparseLinear", "SpatialDropout",
    "VolumetricDropout",
}  # fmt: skip


def test_every_layer_is_here() -> None:
    layers = {name for name in nn.__all__ if issubclass(getattr(nn, name), nn.Module)}
    assert {name for name, _, _ in LAYERS} == layers - ELSEWHERE


@pytest.mark.parametrize("name, make, draw", LAYERS, ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(LAYERS)])
def test_gradients(name: str, make: Callable[[], Any], draw: Callable[[], Any]) -> None:
    module, value = make(), draw()
    check_module(module, value)
    module.evaluate()
    module.clearState()
    if "BatchNormalization" in name:
        check_module(module, value)


@pytest.mark.parametrize("name, make, draw", LAYERS, ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(LAYERS)])
def test_copies(name: str, make: Callable[[], Any], draw: Callable[[], Any]) -> None:
    module, value = make().double(), draw()
    module.evaluate()
    output = module.forward(value)
    assert repr(module).startswith("nn.")
    # A copy works alone, also one that went through pickle.
    for copied in (module.clone(), pickle.loads(pickle.dumps(module)), written_and_read(module)):
        assert type(copied) is type(module)
        for own, expected in zip(tensors_of(copied.forward(value)), tensors_of(output), strict=True):
            candelabra.testing.assert_close(own, expected)
    single = module.clone().float()
    assert single.type() == "torch.FloatTensor" and module.type() == "torch.DoubleTensor"
    if name != "Copy":
        halved = map_tensors(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor, value)
        assert all(t.dtype == candelabra.float32 for t in tensors_of(single.forward(halved)) if t.is_floating_point())
