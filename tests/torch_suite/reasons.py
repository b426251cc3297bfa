"""Why tests that pass on PyTorch do not pass here: what is left aside, and causes by pattern."""

from __future__ import annotations

import re

#: Kinds of tensors that the count leaves aside, by a pattern in a test's name or error.
ASIDE = {
    "sparse tensors": r"sparse|coalesce|_csr|to_mkldnn|mkldnn|_coo|_(crow_|ccol_|col_|row_)?indices_copy|_values_copy|Tensor__(dimI|dimV|indices|nnz|to_dense|values)\s|_(hsmm|dsmm|saddmm)\s",
    "quantized tensors": r"quantiz|\bqu?int\d|_qu?int\d|QU?Int\d|per_(tensor|channel)_affine|fbgemm|choose_qparams|rowwise_prune|fused_moving_avg|wrapped_linear_prepack",
    "nested tensors": r"nested|jagged",
    "masked tensors": r"masked_(prod|sum|std|var|amax|amin|argmax|argmin|logsumexp|mean|norm|median|softmax|cumsum)|torch\.masked|'masked'",
    "PyTorch's kernels for CUDA": r"_miopen_|torch_batch_norm_(backward_elemt|backward_reduce|elemt|gather_stats|gather_stats_with_counts|stats)\s|cuda_array_interface",
    "PyTorch's copy-on-write storages": r"_lazy_clone|_storage_address|_data_address",
}
#: Causes, the first that matches; a pattern is sought in a test's name and error.
CAUSES = {
    "time limit or crash": r"^(crash|time limit)|: time limit",
    "the reference implementations torch._refs and torch._prims are not here": r"_refs|_prims",
    "complex32 has no tensors": r"complex32|ComplexHalf|chalf",
    "float8 dtypes": r"float8",
    "tensors are not swapped (torch.utils.swap_tensors)": r"swap_module_params|swap_tensors|swap_True",
    "a tensor has at most 16 dimensions": r"a tensor has at most",
    "asserts a defect of PyTorch: an array and a tensor do not promote as two tensors do": r"test_numpy_array_binary_ufunc",
    "private names of PyTorch's modules": r"has no attribute '_|absent: torch\.(\w+\.)*_|cannot import name '_|No module named 'torch\._|no attribute '_",
    "public names that are absent": r"has no attribute '[a-z]|absent: |cannot import name|No module named|Unknown|has no such module",
    "not supported, with an error that says so": r"NotImplementedError|not supported|BackendError",
    "another error text": r"does not match|not found in|String comparison failed",
    "PyTorch raises, here it does not": r"not raised",
    "PyTorch warns, here it does not": r"warning caught|not triggered|Warning",
    "other numbers": r"not close|not equal|elements differ|mismatch|Mismatch",
    "raises here": r"(Type|Value|Runtime|Index|Attribute|Key|Overflow|File|Recursion|Import)Error",
}


def kind_aside(test: str, said: str) -> str | None:
    """Return the kind of tensors that a test is about, if the count leaves it aside."""
    text = f"{test} {said}"
    return next((kind for kind, pattern in ASIDE.items() if re.search(pattern, text)), None)


def cause(test: str, said: str) -> str:
    """Return the cause of a failure."""
    said = said.partition("\n\nTo execute this test")[0]
    text = f"{said} {test}"
    return next((name for name, pattern in CAUSES.items() if re.search(pattern, text)), "a condition does not hold")
