"""Softmax and its relatives along one dimension."""

from .declaration import COMPOSITE, HIDDEN, document, operator

for name, sentence, shown, gradient in (
    ("softmax", "Scale exponentials so that they sum to 1: ``exp(x) / sum(exp(x))``, without overflow.", "tensor([0.5000, 0.5000])", "[ 0.1875, -0.1875]"),
    ("log_softmax", "Compute the logarithm of the softmax: ``x - log(sum(exp(x)))``, without overflow.", "tensor([-0.6931, -0.6931])", "[-0.2840, -2.1170]"),
):  # fmt: skip
    operator(
        f"{name}(Tensor self, int dim, dtype? dtype=None) -> Tensor", shape="softmax", tags=COMPOSITE,
        doc=document(
            sentence, f">>> candelabra.{name}(candelabra.tensor([1000.0, 1000.0]), 0)\n{shown}",
            input="Tensor: floating point", dim="int: along which the sum goes", dtype="dtype, optional: to which `input` is converted first",
            returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
    operator(
        f"{name}_backward(Tensor grad, Tensor output, int dim) -> Tensor", shape="softmax_backward", tags=HIDDEN | COMPOSITE,
        doc=document(
            f"Compute the gradient of {name} from its result.",
            f">>> one_hot, result = candelabra.tensor([1.0, 0.0]), candelabra.tensor([0.25, 0.75])\n"
            f">>> candelabra.ops.{name}_backward(one_hot, result, 0)\ntensor({gradient})",
            grad="Tensor: the gradient of the result", output="Tensor: the result", dim="int: along which the sum went",
            returns="Tensor: the gradient of the input",
        ),
    )  # fmt: skip
