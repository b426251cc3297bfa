"""Products of matrices and vectors."""

from .declaration import COMPOSITE, HIDDEN, INPLACE, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_MATRICES = (
    "Matrices have any strides and one dtype: transposed views are common, and no copy is made before the call."
)
_SEES_ADDED = "self is expanded to the sizes of the output, and is not read if beta is 0; beta and alpha are numbers."
_SEES_ROWS = "Matrices are contiguous, of one floating-point dtype, in batches of the same sizes."

_RAISES = "RuntimeError: if the inner sizes differ"
operator(
    "mm(Tensor self, Tensor mat2) -> Tensor", shape="mm", tier="required",
    out="exact", autocast="lower", bilinear=("self", "mat2"), batching="product",
    sees=_SEES_MATRICES,
    doc=document(
        "Multiply two matrices.",
        ">>> candelabra.mm(candelabra.tensor([[1, 2], [3, 4]]), candelabra.tensor([[1, 0], [0, 2]]))\ntensor([[1, 4],\n        [3, 8]])",
        input="Tensor: of shape (n, k)", mat2="Tensor: of shape (k, m)", returns="Tensor: of shape (n, m)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "bmm(Tensor self, Tensor mat2) -> Tensor", shape="bmm", tier="required",
    out="exact", autocast="lower", bilinear=("self", "mat2"), batching="product",
    sees=_SEES_MATRICES,
    doc=document(
        "Multiply two batches of matrices.",
        ">>> candelabra.bmm(candelabra.ones(2, 1, 3), candelabra.ones(2, 3, 1)).shape\ncandelabra.Size([2, 1, 1])",
        input="Tensor: of shape (b, n, k)", mat2="Tensor: of shape (b, k, m)", returns="Tensor: of shape (b, n, m)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "mv(Tensor self, Tensor vec) -> Tensor", shape="mv", tags=COMPOSITE,
    out="exact", autocast="lower", bilinear=("self", "vec"), batching="product",
    sees=_SEES_MATRICES,
    doc=document(
        "Multiply a matrix and a vector.",
        ">>> candelabra.mv(candelabra.tensor([[1, 2], [3, 4]]), candelabra.tensor([1, 1]))\ntensor([3, 7])",
        input="Tensor: of shape (n, k)", vec="Tensor: of shape (k,)", returns="Tensor: of shape (n,)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "dot(Tensor self, Tensor tensor) -> Tensor", shape="dot",
    out="exact", autocast="widest on accelerators", bilinear=("self", "tensor"), batching="product",
    sees="Both vectors have any strides, one size and one dtype.",
    doc=document(
        "Sum the products of the elements of two vectors.",
        ">>> candelabra.dot(candelabra.tensor([1, 2]), candelabra.tensor([3, 4]))\ntensor(11)",
        input="Tensor: of shape (k,)", tensor="Tensor: of shape (k,)", returns="Tensor: without dimensions", raises=_RAISES,
    ),
)  # fmt: skip
# beta * self + alpha * (a @ b). With beta == 0, self is not read.
operator(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", shape="addmm", tier="fast", jvp="addmm", tags=INPLACE,
    out="exact", autocast="lower", batching="added_product",
    sees=f"{_SEES_MATRICES} {_SEES_ADDED}",
    doc=document(
        "Multiply two matrices and add a third: ``beta * input + alpha * (mat1 @ mat2)``.",
        ">>> candelabra.addmm(candelabra.ones(2), candelabra.eye(2), candelabra.eye(2), alpha=2)\ntensor([[3., 1.],\n        [1., 3.]])",
        input="Tensor: broadcast to (n, m); ignored if `beta` is 0", mat1="Tensor: of shape (n, k)", mat2="Tensor: of shape (k, m)",
        beta="number: multiplies `input`", alpha="number: multiplies the product", returns="Tensor: of shape (n, m)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
    shape="addmm_activation", tags=COMPOSITE,
    out="exact", autocast="lower",
    sees=(
        f"{_SEES_MATRICES} {_SEES_ADDED} The dtype is neither complex nor bool, and not an integer one if use_gelu "
        "is set."
    ),
    doc=document(
        "Apply relu or gelu to ``beta * input + alpha * (mat1 @ mat2)``, in one pass if the backend can.",
        ">>> x = candelabra.tensor([[1.0, -2.0]])\n>>> candelabra._addmm_activation(candelabra.ones(2), x, candelabra.eye(2))\ntensor([[2., 0.]])",
        input="Tensor: broadcast to (n, m); ignored if `beta` is 0", mat1="Tensor: of shape (n, k)", mat2="Tensor: of shape (k, m)",
        beta="number: multiplies `input`", alpha="number: multiplies the product",
        use_gelu="bool: whether to apply gelu instead of relu. On CUDA, float16 and bfloat16 may use the tanh approximation, whose "
        "error is less than 0.0005",
        returns="Tensor: of shape (n, m)", raises=f"{_RAISES}; NotImplementedError: for complex numbers, and for gelu of integers",
    ),
)  # fmt: skip
operator(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", shape="baddbmm", tier="fast", jvp="addmm", tags=INPLACE,
    out="exact", autocast="lower", batching="added_product",
    sees=f"{_SEES_MATRICES} {_SEES_ADDED}",
    doc=document(
        "Multiply two batches of matrices and add a third: ``beta * input + alpha * (batch1 @ batch2)``.",
        ">>> candelabra.baddbmm(candelabra.ones(1), candelabra.ones(2, 1, 3), candelabra.ones(2, 3, 1)).flatten()\ntensor([4., 4.])",
        input="Tensor: broadcast to (b, n, m); ignored if `beta` is 0", batch1="Tensor: of shape (b, n, k)",
        batch2="Tensor: of shape (b, k, m)", beta="number: multiplies `input`", alpha="number: multiplies the product",
        returns="Tensor: of shape (b, n, m)", raises=_RAISES,
    ),
)  # fmt: skip
# input @ weight.T + bias, with any number of leading dimensions of input
operator(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", shape="linear", tier="fast", jvp="composite", tags=HIDDEN | COMPOSITE,
    autocast="lower", batching="linear",
    sees=(
        "input has at least two dimensions and any strides, weight is a matrix of any strides, bias has one entry "
        "for each row of weight; all have one dtype. A one-dimensional input is seen as (1, features), and so is a "
        "one-dimensional weight. The output is contiguous."
    ),
    doc=document(
        "Compute ``input @ weight.T + bias``.",
        ">>> candelabra.ops.linear(candelabra.ones(2), candelabra.tensor([[1.0, 2.0]]), candelabra.tensor([10.0]))\ntensor([13.])",
        input="Tensor: of shape (..., k)", weight="Tensor: of shape (m, k)", bias="Tensor, optional: of shape (m,)",
        returns="Tensor: of shape (..., m)", raises=_RAISES,
    ),
)  # fmt: skip
operator(
    "_cdist_forward(Tensor x1, Tensor x2, float p) -> Tensor", shape="_cdist_forward", title="cdist", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32",
    sees=_SEES_ROWS,
    doc=document(
        "Compute the p-norms of the differences of all pairs of rows.",
        ">>> candelabra.ops._cdist_forward(candelabra.zeros(1, 2), candelabra.tensor([[3.0, 4.0]]), 2.0)\ntensor([[5.]])",
        x1="Tensor: of shape (..., P, M)", x2="Tensor: of shape (..., R, M), the leading sizes those of `x1`",
        p="float: the order of the norm, not negative", returns="Tensor: of shape (..., P, R)", out="",
    ),
)  # fmt: skip
# Where no gradient is wanted.
operator(
    "_pdist_forward(Tensor self, float p) -> Tensor", shape="_pdist_forward", title="pdist", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees="self is a contiguous matrix of a floating-point dtype.",
    doc=document(
        "Compute the p-norms of the differences of all pairs of rows of one matrix, those of the first row first.",
        ">>> candelabra.ops._pdist_forward(candelabra.tensor([[0.0], [3.0], [7.0]]), 2.0)\ntensor([3., 7., 4.])",
        input="Tensor: of shape (N, M), floating point", p="float: the order of the norm, not negative",
        returns="Tensor: of N * (N - 1) / 2 elements", out="",
    ),
)  # fmt: skip
operator(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, Tensor result, float p) -> Tensor",
    shape="_cdist_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_ROWS} grad and result are contiguous, too, and of that dtype.",
    doc=document(
        "Compute the gradient of the distances of all pairs of rows with respect to the first matrix.",
        ">>> x1, x2 = candelabra.zeros(1, 2), candelabra.tensor([[3.0, 4.0]])\n"
        ">>> candelabra.ops._cdist_backward(candelabra.ones(1, 1), x1, x2, candelabra.ops._cdist_forward(x1, x2, 2.0), 2.0)\n"
        "tensor([[-0.6000, -0.8000]])",
        grad="Tensor: the gradient of the distances", x1="Tensor: of shape (..., P, M)", x2="Tensor: of shape (..., R, M)",
        result="Tensor: the distances", p="float: the order of the norm", returns="Tensor: of the shape of `x1`", out="",
        notes="Equal rows have no gradient. For infinite `p`, all differences of the largest magnitude have one.",
    ),
)  # fmt: skip
