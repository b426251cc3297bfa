"""Names that PyTorch has and Candelabra lacks, by kind, so that errors can give a reason."""

from __future__ import annotations

_SPARSE = "there are no sparse tensors; all are strided"
_QUANTIZED = "there are no quantized tensors"

#: The names of each kind, and why they are missing.
_REASONS: tuple[tuple[str, str], ...] = (
    (
        "sparse sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor "
        "sparse_bsr_tensor sparse_bsc_tensor sparse_compressed_tensor hsmm hspmm smm spmm dsmm saddmm sspaddmm resize_as_sparse_",
        _SPARSE,
    ),
    (
        "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize qint8 quint8 qint32 quint4x2 quint2x4 "
        "qscheme per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric quantization int_repr q_scale "
        "q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points quantized_batch_norm quantized_max_pool1d "
        "quantized_max_pool2d quantized_lstm_cell quantized_gru_cell fake_quantize_per_tensor_affine fake_quantize_per_channel_affine",
        _QUANTIZED,
    ),
    ("nested jagged", "there are no nested tensors"),
    ("masked", "there are no masked tensors; candelabra.where and Tensor.masked_fill do most of what they do"),
    ("float4_e2m1fn_x2", "the smallest floating-point dtypes are those of float8, such as candelabra.float8_e4m3fn"),
)
REASONS: dict[str, str] = {name: reason for names, reason in _REASONS for name in names.split()}
