"""Names of PyTorch's module ``torch.cuda`` that are not there, with what there is in their
place.
"""

from __future__ import annotations

_TENSORS = ["Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool"]
_STORAGES = [*_TENSORS, "ComplexFloat", "ComplexDouble"]

#: What is said of a name after "there is no ...: ".
UNAVAILABLE = {
    **{f"{kind}Tensor": "use candelabra.tensor(..., device='cuda')" for kind in _TENSORS},
    **{f"{kind}Storage": "use candelabra.tensor(..., device='cuda').untyped_storage()" for kind in _STORAGES},
    "CUDAPluggableAllocator": "memory comes from the backend's own allocator; a backend of one's own may have another (docs/backends.md)",
    "change_current_allocator": "memory comes from the backend's own allocator, which CANDELABRA_CUDA_ALLOC_CONF sets up",
    "GreenContext": "streams of parts of a GPU are not supported; Stream(priority=...) says what goes first",
    "green_contexts": "streams of parts of a GPU are not supported; Stream(priority=...) says what goes first",
    "CudaError": "failures of a device are candelabra.AcceleratorError",
    "DeferredCudaCallError": "a device that cannot be used is a candelabra.BackendError at its first use",
    "check_error": "failures of a device are candelabra.AcceleratorError",
    "cudaStatus": "failures of a device are candelabra.AcceleratorError",
    "cudart": "CUDA's runtime is a part of the backend's library; see candelabra.cuda.profiler, mem_get_info, Tensor.pin_memory",
    "current_blas_handle": "the backend's handles are its own; ExternalStream and Stream.cuda_stream share streams with other libraries",
    "current_solver_handle": "the backend's handles are its own; ExternalStream and Stream.cuda_stream share streams with other libraries",
    "gds": "GPUDirect Storage is not supported; candelabra.load maps files (mmap=True) and copies them",
    "jiterator": "kernels are not compiled while a program runs; candelabra.library adds operators of one's own (docs/custom-operators.md)",
    "sparse": "there are no sparse tensors",
    "tunable": "cuBLASLt's own choice of an algorithm is taken",
}
