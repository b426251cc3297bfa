"""Softmax and its relatives along one dimension."""

from .declaration import COMPOSITE, HIDDEN, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_SOFTMAX = (
    "self has the dtype of the output, floating point; dim is wrapped, and tensors without dimensions are seen as "
    "one-dimensional of size 1."
)
_SEES_GRADIENT = (
    "grad and output have one dtype and the same sizes; dim is wrapped, and tensors without dimensions are seen as "
    "one-dimensional of size 1."
)

for name, sentence, shown, gradient, *facts in (
    ("softmax", "Scale exponentials so that they sum to 1: ``exp(x) / sum(exp(x))``, without overflow.", "tensor([0.5000, 0.5000])", "[ 0.1875, -0.1875]", dict(out="exact", autocast="float32 on accelerators", batching="along", tier="fast")),
    ("log_softmax", "Compute the logarithm of the softmax: ``x - log(sum(exp(x)))``, without overflow.", "tensor([-0.6931, -0.6931])", "[-0.2840, -2.1170]", dict(out="exact", autocast="float32 on accelerators", batching="along", tier="fast")),
):  # fmt: skip
    operator(
        f"{name}(Tensor self, int dim, dtype? dtype=None) -> Tensor", shape="softmax", **dict(*facts), jvp="softmax", tags=COMPOSITE,
        sees=_SEES_SOFTMAX,
        doc=document(
            sentence, f">>> candelabra.{name}(candelabra.tensor([1000.0, 1000.0]), 0)\n{shown}",
            input="Tensor: floating point", dim="int: the dimension of the sum", dtype="dtype, optional: `input` is converted to it first",
            returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
    operator(
        f"{name}_backward(Tensor grad, Tensor output, int dim) -> Tensor", shape="softmax_backward", tier="fast", tags=HIDDEN | COMPOSITE, batching="along",
        sees=_SEES_GRADIENT,
        doc=document(
            f"Compute the gradient of {name} from its result.",
            f">>> one_hot, result = candelabra.tensor([1.0, 0.0]), candelabra.tensor([0.25, 0.75])\n"
            f">>> candelabra.ops.{name}_backward(one_hot, result, 0)\ntensor({gradient})",
            grad="Tensor: the gradient of the result", output="Tensor: the result", dim="int: the dimension of the sum",
            returns="Tensor: the gradient of the input",
        ),
    )  # fmt: skip
