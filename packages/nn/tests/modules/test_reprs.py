"""Test the repr of layers, which match PyTorch's."""

import pytest

import candelabra
from candelabra import nn

TEXTS = {
    "Linear(in_features=2, out_features=3, bias=True)": lambda: nn.Linear(2, 3),
    "Linear(in_features=2, out_features=3, bias=False)": lambda: nn.Linear(2, 3, bias=False),
    "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)": lambda: nn.Bilinear(2, 3, 4),
    "Identity()": lambda: nn.Identity(),
    "Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1))": lambda: nn.Conv2d(4, 6, 3),
    "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 0), dilation=(2, 2), groups=2, bias=False)": lambda: (
        nn.Conv2d(4, 6, (3, 2), 2, (1, 0), 2, 2, False)
    ),
    "Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=same, padding_mode=circular)": lambda: nn.Conv2d(
        4, 6, 3, padding="same", padding_mode="circular"
    ),
    "Conv1d(4, 6, kernel_size=(3,), stride=(1,), padding=(1,))": lambda: nn.Conv1d(4, 6, 3, padding=1),
    "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))": lambda: nn.ConvTranspose2d(
        4, 6, 3, 2, output_padding=1
    ),
    "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(1,))": lambda: nn.ConvTranspose1d(4, 6, 3),
    "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)": lambda: nn.MaxPool2d(2),
    "MaxPool1d(kernel_size=3, stride=1, padding=1, dilation=2, ceil_mode=True)": lambda: nn.MaxPool1d(
        3, 1, 1, 2, ceil_mode=True
    ),
    "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))": lambda: nn.AvgPool1d(2),
    "AvgPool2d(kernel_size=(2, 3), stride=(2, 3), padding=0)": lambda: nn.AvgPool2d((2, 3)),
    "AdaptiveAvgPool2d(output_size=(None, 3))": lambda: nn.AdaptiveAvgPool2d((None, 3)),
    "AdaptiveMaxPool1d(output_size=2)": lambda: nn.AdaptiveMaxPool1d(2),
    "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)": lambda: nn.LPPool2d(2, 3),
    "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)": lambda: nn.BatchNorm2d(
        4
    ),
    "InstanceNorm1d(4, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)": lambda: (
        nn.InstanceNorm1d(4)
    ),
    "LayerNorm((4, 3), eps=1e-05, elementwise_affine=True, bias=False)": lambda: nn.LayerNorm((4, 3), bias=False),
    "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)": lambda: nn.GroupNorm(2, 4),
    "RMSNorm((4,), eps=None, elementwise_affine=True)": lambda: nn.RMSNorm(4),
    "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)": lambda: nn.LocalResponseNorm(2),
    "Embedding(3, 4, padding_idx=2, max_norm=1.0, norm_type=1.0)": lambda: nn.Embedding(3, 4, -1, 1.0, 1.0),
    "Dropout(p=0.3, inplace=True)": lambda: nn.Dropout(0.3, True),
    "AlphaDropout(p=0.5, inplace=False)": lambda: nn.AlphaDropout(),
    "Flatten(start_dim=1, end_dim=-1)": lambda: nn.Flatten(),
    "Unflatten(dim=1, unflattened_size=(2, 3))": lambda: nn.Unflatten(1, (2, 3)),
    "ZeroPad2d((1, 1, 1, 1))": lambda: nn.ZeroPad2d(1),
    "ConstantPad1d(padding=(1, 2), value=3.5)": lambda: nn.ConstantPad1d((1, 2), 3.5),
    "ReflectionPad1d((2, 2))": lambda: nn.ReflectionPad1d(2),
    "CircularPad2d((1, 2, 3, 4))": lambda: nn.CircularPad2d((1, 2, 3, 4)),
    "CosineSimilarity()": lambda: nn.CosineSimilarity(),
    "Threshold(threshold=1, value=2)": lambda: nn.Threshold(1, 2),
    "ReLU(inplace=True)": lambda: nn.ReLU(True),
    "ReLU6()": lambda: nn.ReLU6(),
    "RReLU(lower=0.125, upper=0.3333333333333333)": lambda: nn.RReLU(),
    "Hardtanh(min_val=-1.0, max_val=1.0, inplace=True)": lambda: nn.Hardtanh(inplace=True),
    "ELU(alpha=0.5)": lambda: nn.ELU(0.5),
    "GELU(approximate='tanh')": lambda: nn.GELU("tanh"),
    "Hardshrink(0.5)": lambda: nn.Hardshrink(),
    "LeakyReLU(negative_slope=0.01, inplace=True)": lambda: nn.LeakyReLU(inplace=True),
    "Softplus(beta=1.0, threshold=20.0)": lambda: nn.Softplus(),
    "PReLU(num_parameters=3)": lambda: nn.PReLU(3),
    "LogSoftmax(dim=1)": lambda: nn.LogSoftmax(1),
    "GLU(dim=-1)": lambda: nn.GLU(),
    "Conv3d(2, 2, kernel_size=(3, 3, 3), stride=(1, 1, 1))": lambda: nn.Conv3d(2, 2, 3),
    "ConvTranspose3d(2, 2, kernel_size=(3, 3, 3), stride=(1, 1, 1))": lambda: nn.ConvTranspose3d(2, 2, 3),
    "LazyConv1d(0, 2, kernel_size=(3,), stride=(1,))": lambda: nn.LazyConv1d(2, 3),
    "LazyLinear(in_features=0, out_features=2, bias=False)": lambda: nn.LazyLinear(2, False),
    "MaxPool3d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)": lambda: nn.MaxPool3d(2),
    "AvgPool3d(kernel_size=2, stride=2, padding=0)": lambda: nn.AvgPool3d(2),
    "MaxUnpool2d(kernel_size=(2, 2), stride=(3, 3), padding=(1, 1))": lambda: nn.MaxUnpool2d(2, 3, 1),
    "FractionalMaxPool2d()": lambda: nn.FractionalMaxPool2d(2, 3),
    "SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)": lambda: (
        nn.SyncBatchNorm(2)
    ),
    "CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)": lambda: nn.CrossMapLRN2d(3),
    "EmbeddingBag(4, 3, mode='max', padding_idx=1)": lambda: nn.EmbeddingBag(4, 3, mode="max", padding_idx=1),
    "Fold(output_size=4, kernel_size=2, dilation=1, padding=0, stride=1)": lambda: nn.Fold(4, 2),
    "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)": lambda: nn.Unfold(2),
    "Upsample(scale_factor=2.0, mode='nearest')": lambda: nn.Upsample(scale_factor=2),
    "UpsamplingBilinear2d(size=3, mode='bilinear')": lambda: nn.UpsamplingBilinear2d(3),
    "PixelShuffle(upscale_factor=2)": lambda: nn.PixelShuffle(2),
    "PixelUnshuffle(downscale_factor=2)": lambda: nn.PixelUnshuffle(2),
    "ChannelShuffle(groups=2)": lambda: nn.ChannelShuffle(2),
    "CTCLoss()": lambda: nn.CTCLoss(),
    "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.5)": lambda: nn.LSTM(
        3, 4, 2, bias=False, batch_first=True, dropout=0.5, proj_size=2
    ),
    "RNN(3, 4)": lambda: nn.RNN(3, 4, 1, "relu"),
    "GRU(3, 4, bidirectional=True)": lambda: nn.GRU(3, 4, bidirectional=True),
    "RNNCell(3, 4, bias=False, nonlinearity=relu)": lambda: nn.RNNCell(3, 4, False, "relu"),
    "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)\n)": lambda: (
        nn.MultiheadAttention(4, 2)
    ),
    "DataParallel(\n  (module): ReLU()\n)": lambda: nn.DataParallel(nn.ReLU()),
    "CrossEntropyLoss()": lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
    "TripletMarginWithDistanceLoss(\n  (distance_function): PairwiseDistance()\n)": lambda: (
        nn.TripletMarginWithDistanceLoss()
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_repr(text):
    assert repr(TEXTS[text]()) == text


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Conv2d(4, 6, 3, padding="x"), ValueError, "Invalid padding string 'x'"),
        (
            lambda: nn.Conv2d(4, 6, 3, padding="same", stride=2),
            ValueError,
            "padding='same' is not supported for strided convolutions",
        ),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(6, 4, 3, groups=3), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(6, 4, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(6, 4, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (
            lambda: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"),
            ValueError,
            'Only "zeros" padding mode is supported for',
        ),
        (lambda: nn.ConvTranspose1d(4, 4, 3, padding="same"), TypeError, "must be a number or a tuple of numbers"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "num_channels (4) must be divisible by num_groups (3)"),
        (lambda: nn.Embedding(3, 4, padding_idx=3), AssertionError, "Padding_idx must be within num_embeddings"),
        (lambda: nn.Embedding(3, 4, sparse=True), NotImplementedError, "sparse=True is not supported"),
        (lambda: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size must be a tuple of ints, but found type int"),
        (lambda: nn.Unflatten(1, (2.0,)), TypeError, "found element of type float at pos 0"),
        (lambda: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "only p == 1 and p == 2 supported"),
        (lambda: nn.TripletMarginLoss(-1.0), ValueError, "expected margin to be greater than 0"),
        (lambda: nn.EmbeddingBag(3, 4, padding_idx=3), AssertionError, "padding_idx must be within num_embeddings"),
        (
            lambda: nn.FractionalMaxPool2d(2),
            ValueError,
            "requires specifying either an output size, or a pooling ratio",
        ),
        (
            lambda: nn.FractionalMaxPool2d(2, 2, 0.5),
            ValueError,
            "only one of output_size and output_ratio may be specified",
        ),
        (
            lambda: nn.FractionalMaxPool3d(2, output_ratio=1.5),
            ValueError,
            "output_ratio must be between 0 and 1 (got 1.5)",
        ),
        (lambda: nn.FractionalMaxPool2d(0, 2), ValueError, "kernel_size must be an integer greater than zero"),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, []),
            ValueError,
            "cutoffs should be a sequence of length larger than 0",
        ),
        (
            lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 3]),
            ValueError,
            "sequence of unique, positive integers sorted",
        ),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 9]), ValueError, "each value is between 1 and n_classes-1"),
        (lambda: nn.HuberLoss(delta=1j), TypeError, "delta must be a float or int, got: <class 'complex'>"),
        (
            lambda: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=2),
            RuntimeError,
            "expected label_smoothing to be in range [0, 1]",
        ),
        (
            lambda: nn.LinearCrossEntropyLoss(2, 3, weight=candelabra.ones(2)),
            RuntimeError,
            "expected weight shape to be (3,), got (2,)",
        ),
        (lambda: nn.ZeroPad1d((1, 2, 3)), ValueError, "must be one number or 2"),
    ],
)
def test_constructor_errors(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
