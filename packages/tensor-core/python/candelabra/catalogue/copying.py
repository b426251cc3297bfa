"""Copies: between tensors, dtypes and devices."""

from .declaration import ANY_DEVICE, COMPOSITE, CORE, HIDDEN, METHOD_ONLY, NO_OUT, OVERWRITES, document, operator

_FORMAT = "memory_format, optional: the order of the elements in memory; that of the tensor by default"
# The kernel "copy_" converts dtypes and walks strides on one device; the core takes care of
# broadcasting and of other devices.
operator(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", shape="copy_", tier="required", tags=METHOD_ONLY | NO_OUT | ANY_DEVICE | OVERWRITES,
    batching="elementwise",
    sees=(
        "The output is self. src has its sizes and is on the same device; dtypes differ freely (complex to real "
        "drops the imaginary part). The core does plain copies of bytes, and moves tensors between devices, before."
    ),
    doc=document(
        "Copy the elements of another tensor into this one, which is returned.",
        ">>> candelabra.zeros(2).copy_(candelabra.tensor([1, 2]))\ntensor([1., 2.])",
        src="Tensor: of any dtype and device, broadcast to the shape of this tensor",
        non_blocking="bool: whether a copy between devices may be asynchronous",
        returns="Tensor: this tensor", out="",
    ),
)  # fmt: skip
operator(
    "clone(Tensor self, *, memory_format? memory_format=None) -> Tensor", shape="clone", tags=CORE | NO_OUT,
    linear=("self",), batching="copied",
    doc=document(
        "Copy a tensor into new memory.",
        ">>> x = candelabra.zeros(2)\n>>> y = candelabra.clone(x)\n>>> y[0] = 1\n>>> x\ntensor([0., 0.])",
        input="Tensor: the tensor to copy", memory_format=_FORMAT, returns="Tensor: of the same shape, dtype and device", out="",
    ),
)  # fmt: skip
# On the device, if nothing is recorded. All signatures are in composite/movement/copying.py.
operator(
    "to(Tensor(a) self, object target=None, object second=None, *, dtype? dtype=None, device? device=None) -> Tensor(a)",
    shape="to", tags=HIDDEN | CORE | COMPOSITE | NO_OUT,
)  # fmt: skip
# dtype and device of the result are given.
operator(
    "_to_copy(Tensor self, *, dtype? dtype=None, device? device=None, bool non_blocking=False, memory_format? memory_format=None) -> Tensor",
    shape="_to_copy", title="to", tags=HIDDEN | CORE | NO_OUT,
    linear=("self",), batching="copied",
    doc=document(
        "Copy a tensor to a dtype and device.",
        ">>> candelabra.ops._to_copy(candelabra.tensor([1.5]), dtype=candelabra.int64)\ntensor([1])",
        input="Tensor: the tensor to copy", dtype="dtype, optional: of the result; by default that of the tensor",
        device="device, optional: of the result; by default that of the tensor",
        non_blocking="bool: whether a copy between devices may be asynchronous", memory_format=_FORMAT,
        returns="Tensor: a copy, even if nothing changes", out="",
    ),
)  # fmt: skip
operator(
    "contiguous(Tensor self, *, memory_format? memory_format=None) -> Tensor", shape="contiguous", tags=METHOD_ONLY | CORE | NO_OUT,
    linear=("self",), batching="copied",
    doc=document(
        "Return a contiguous tensor: the tensor itself if it is contiguous, else a copy.",
        ">>> candelabra.ones(2, 3).T.contiguous().stride()\n(2, 1)",
        memory_format="memory_format, optional: the memory format; row-major by default", returns="Tensor: of the same shape", out="",
    ),
)  # fmt: skip
