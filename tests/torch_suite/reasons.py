"""Why tests that pass on PyTorch do not pass here: what is left aside, and causes by pattern."""

from __future__ import annotations

import re

#: Kinds of tensors that the count leaves aside, by a pattern in a test's name or error.
ASIDE = {
    "sparse tensors": r"sparse|coalesce|_csr|to_mkldnn|mkldnn|_coo|_(crow_|ccol_|col_|row_)?indices_copy|_values_copy|Tensor__(dimI|dimV|indices|nnz|to_dense|values)\s|_(hsmm|dsmm|saddmm)\s",
    "quantized tensors": r"quantiz|\bqu?int\d|_qu?int\d|QU?Int\d|per_(tensor|channel)_affine|fbgemm|choose_qparams|rowwise_prune|fused_moving_avg|wrapped_linear_prepack",
    "nested tensors": r"nested|jagged",
    "masked tensors": r"masked_(prod|sum|std|var|amax|amin|argmax|argmin|logsumexp|mean|norm|median|softmax|cumsum)|torch\.masked|'masked'",
}
#: Tests about any tensor, whose harness asks for internals of such tensors: they count.
COUNTED = r"test_device_ctx_init"
#: Causes, the first that matches; a pattern is sought in a test's name and error.
CAUSES = {
    "time limit or crash": r"^(crash|time limit)|: time limit",
    "the reference implementations torch._refs and torch._prims are not here": r"_refs|_prims",
    "complex32 has no tensors": r"complex32|ComplexHalf|chalf",
    "float8 dtypes": r"float8",
    "PyTorch's kernels for CUDA": r"_miopen_|torch_batch_norm_(backward_elemt|backward_reduce|elemt|gather_stats|gather_stats_with_counts|stats)\s|cuda_array_interface",
    "copy-on-write storages (_lazy_clone) are PyTorch's own": r"_lazy_clone|_storage_address|_data_address",
    "a step count is a Python number here, and a tensor in the state dict": r"'int' object has no attribute 'detach'",
    "operators and switches of PyTorch's dispatcher for its own tests": r"_dispatch_tls|_EnablePythonDispatcher|_dispatch_find_schema|"
    r"DispatchKeyGuard|_test_python_registration|_test_autograd_multiple_dispatch|_test_warn_in_autograd|_set_sequence_nr",
    "the operators of PyTorch's compiler (torch._higher_order_ops)": r"_higher_order_ops",
    "the harness describes tensors by internals of PyTorch's fake tensors": COUNTED,
    "a tensor has at most 64 dimensions": r"only tensors with up to 64 dims",
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
    if re.search(COUNTED, test):
        return None
    return next((kind for kind, pattern in ASIDE.items() if re.search(pattern, text)), None)


def cause(test: str, said: str) -> str:
    """Return the cause of a failure."""
    said = said.partition("\n\nTo execute this test")[0]
    text = f"{said} {test}"
    return next((name for name, pattern in CAUSES.items() if re.search(pattern, text)), "a condition does not hold")
