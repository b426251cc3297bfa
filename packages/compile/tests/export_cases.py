"""Layers of candelabra.nn with arguments, for the tests of exported programs."""

import candelabra
from candelabra import nn

_SIGNAL, _IMAGE, _VOLUME = (2, 4, 12), (2, 4, 10, 8), (2, 4, 6, 6, 6)


def _of(shape, *layers):
    return [(layer, (candelabra.randn(shape),)) for layer in layers]


def _activations():
    return _of(
        (3, 4),
        nn.ReLU(), nn.ReLU6(), nn.ELU(), nn.SELU(), nn.CELU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Tanh(),
        nn.Sigmoid(), nn.LogSigmoid(), nn.Hardshrink(), nn.Hardsigmoid(), nn.Hardswish(), nn.Hardtanh(), nn.LeakyReLU(), nn.PReLU(),
        nn.RReLU(), nn.Softplus(), nn.Softshrink(), nn.Softsign(), nn.Tanhshrink(), nn.Threshold(0.1, 2.0), nn.GLU(), nn.Softmin(1),
        nn.Softmax(1), nn.LogSoftmax(1), nn.ReLU(inplace=True), nn.Identity(), nn.Dropout(), nn.AlphaDropout(), nn.FeatureAlphaDropout(),
        nn.Linear(4, 5), nn.Linear(4, 5, bias=False), nn.LayerNorm(4), nn.RMSNorm(4), nn.Unflatten(1, (2, 2)), nn.Flatten(),
    )  # fmt: skip


def _spatial():
    return [
        *_of(
            _SIGNAL,
            nn.Conv1d(4, 6, 3), nn.ConvTranspose1d(4, 6, 3), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.LPPool1d(2, 2), nn.AdaptiveAvgPool1d(5),
            nn.AdaptiveMaxPool1d(5), nn.BatchNorm1d(4), nn.InstanceNorm1d(4), nn.Dropout1d(), nn.ReflectionPad1d(2),
            nn.ReplicationPad1d(2), nn.ZeroPad1d(2), nn.ConstantPad1d(2, 1.0), nn.CircularPad1d(2), nn.Upsample(scale_factor=2),
        ),
        *_of(
            _IMAGE,
            nn.Conv2d(4, 6, 3, padding="same"), nn.Conv2d(4, 4, 3, groups=2, padding_mode="reflect", padding=1),
            nn.ConvTranspose2d(4, 6, 3, stride=2), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.LPPool2d(2, 2), nn.AdaptiveAvgPool2d((3, None)),
            nn.AdaptiveMaxPool2d(3), nn.FractionalMaxPool2d(2, output_size=3), nn.BatchNorm2d(4), nn.InstanceNorm2d(4, affine=True),
            nn.GroupNorm(2, 4), nn.LocalResponseNorm(2), nn.Dropout2d(), nn.ChannelShuffle(2), nn.PixelShuffle(2), nn.PixelUnshuffle(2),
            nn.ReflectionPad2d(1), nn.ReplicationPad2d(1), nn.ZeroPad2d(1), nn.ConstantPad2d(1, 2.0), nn.CircularPad2d(1),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.UpsamplingNearest2d(scale_factor=2), nn.UpsamplingBilinear2d(scale_factor=2),
            nn.Unfold(2), nn.Softmax2d(), nn.MaxPool2d(2, return_indices=True),
        ),
        *_of((2, 16, 12), nn.Fold((4, 5), 2)),
        *_of(
            _VOLUME,
            nn.Conv3d(4, 5, 3), nn.ConvTranspose3d(4, 5, 3), nn.MaxPool3d(2), nn.AvgPool3d(2), nn.LPPool3d(2, 2), nn.AdaptiveAvgPool3d(2),
            nn.AdaptiveMaxPool3d(2), nn.BatchNorm3d(4), nn.InstanceNorm3d(4), nn.Dropout3d(), nn.ReflectionPad3d(1),
            nn.ReplicationPad3d(1), nn.ZeroPad3d(1), nn.ConstantPad3d(1, 2.0), nn.CircularPad3d(1),
        ),
    ]  # fmt: skip


def _losses():
    x, y = candelabra.randn(3, 4), candelabra.randn(3, 4)
    sign, ones = candelabra.ones(3).sign(), candelabra.rand(3, 4)
    classes = candelabra.tensor([0, 3, 1])
    return [
        *((layer, (x, y)) for layer in (nn.L1Loss(), nn.MSELoss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.KLDivLoss(reduction="batchmean"))),
        *((layer, (x, classes)) for layer in (nn.CrossEntropyLoss(), nn.NLLLoss(), nn.MultiMarginLoss(), nn.CrossEntropyLoss(label_smoothing=0.1))),
        (nn.BCELoss(), (x.sigmoid(), ones)),
        (nn.BCEWithLogitsLoss(), (x, ones)),
        (nn.PoissonNLLLoss(), (x, ones)),
        (nn.GaussianNLLLoss(), (x, y, ones + 0.1)),
        (nn.SoftMarginLoss(), (x, y.sign())),
        (nn.HingeEmbeddingLoss(), (x, y.sign())),
        (nn.MultiLabelSoftMarginLoss(), (x, ones)),
        (nn.CosineEmbeddingLoss(), (x, y, sign)),
        (nn.MarginRankingLoss(), (x[:, 0], y[:, 0], sign)),
        (nn.TripletMarginLoss(), (x, y, ones)),
        (nn.TripletMarginWithDistanceLoss(), (x, y, ones)),
        (nn.CosineSimilarity(), (x, y)),
        (nn.PairwiseDistance(), (x, y)),
    ]  # fmt: skip


def _sequences():
    x, state = candelabra.randn(5, 2, 8), candelabra.randn(2, 8)
    return [
        (nn.RNN(8, 6, 2), (x,)), (nn.LSTM(8, 6, 2, bidirectional=True), (x,)), (nn.GRU(8, 6, batch_first=True), (x,)),
        (nn.RNNCell(8, 8), (state, state)), (nn.GRUCell(8, 8), (state, state)), (nn.LSTMCell(8, 8), (state, (state, state))),
        (nn.MultiheadAttention(8, 2), (x, x, x)), (nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True), (x, x, x)),
        (nn.TransformerEncoderLayer(8, 2, 16), (x,)), (nn.TransformerDecoderLayer(8, 2, 16), (x, x)),
        (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2), (x,)), (nn.Transformer(8, 2, 1, 1, 16), (x, x)),
        (nn.Embedding(10, 4), (candelabra.tensor([[1, 2], [9, 0]]),)),
        (nn.Embedding(10, 4, padding_idx=0, max_norm=0.5), (candelabra.tensor([[1, 2], [9, 0]]),)),
        (nn.EmbeddingBag(10, 4, mode="mean"), (candelabra.tensor([[1, 2], [9, 0]]),)),
        (nn.Bilinear(8, 8, 3), (state, state)),
    ]  # fmt: skip


def cases():
    """Return pairs of a layer and its arguments."""
    candelabra.manual_seed(0)
    return [*_activations(), *_spatial(), *_losses(), *_sequences()]
