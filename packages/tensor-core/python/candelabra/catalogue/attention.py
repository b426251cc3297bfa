"""Attention, fused: the scores of all queries and keys are never in memory together."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_ATTENTION = (
    "query is (N, H, L, E), key (N, G, S, E) and value (N, G, S, V), of any strides and one floating-point dtype; G"
    " divides H. mask is bool or of that dtype, expanded to (N, H, L, S). logsumexp is contiguous, float32 for half"
    " precisions."
)

_ARGUMENTS = {
    "query": "Tensor: of shape (N, H, L, E)",
    "key": "Tensor: of shape (N, G, S, E), where G divides H: each head is shared by H / G heads of queries",
    "value": "Tensor: of shape (N, G, S, V)",
    "mask": "Tensor or None: broadcastable to (N, H, L, S); booleans, true for keys to attend to, or numbers to add to the scores",
}
_OPTIONS = {
    "is_causal": "bool: whether query i sees the keys up to i only",
    "scale": "float: the factor of the scores",
}
_NOTES = (
    "Rows of scores are summed online (Milakov and Gimelshein 2018), and recomputed for the gradient (Dao et al. 2022). The "
    "result is zero for queries whose keys are all masked."
)
operator(
    "_scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale)"
    " -> (Tensor output, Tensor logsumexp)",
    shape="_scaled_dot_product_attention", title="scaled_dot_product_attention", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="lower", batching="attention",
    sees=_SEES_ATTENTION,
    doc=document(
        "Compute ``softmax(scale * query @ key^T + mask) @ value`` (Vaswani et al. 2017).",
        ">>> x = candelabra.ones(1, 1, 2, 1)\n"
        ">>> candelabra.ops._scaled_dot_product_attention(x, x, x, None, True, 1.0).output.flatten()\ntensor([1., 1.])",
        **_ARGUMENTS, **_OPTIONS, out="", notes=_NOTES,
        returns="(output, logsumexp): of shapes (N, H, L, V) and (N, H, L); the second is the logarithm of each row's sum of "
        "exponentials, infinite if all keys are masked",
    ),
)  # fmt: skip
operator(
    "_scaled_dot_product_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor logsumexp,"
    " bool is_causal, float scale) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    shape="_scaled_dot_product_attention_backward", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    batching="attention",
    sees=f"{_SEES_ATTENTION} grad and output are (N, H, L, V), of any strides and that dtype.",
    doc=document(
        "Compute the gradients of attention.",
        ">>> x = candelabra.ones(1, 1, 2, 1)\n"
        ">>> made = candelabra.ops._scaled_dot_product_attention(x, x, x, None, False, 1.0)\n"
        ">>> candelabra.ops._scaled_dot_product_attention_backward(x, x, x, x, None, *made, False, 1.0).grad_value.flatten()\ntensor([1., 1.])",
        grad="Tensor: the gradient of the output", **_ARGUMENTS, output="Tensor: the first result", logsumexp="Tensor: the second result",
        **_OPTIONS, returns="(grad_query, grad_key, grad_value): in the shapes of query, key and value", out="", notes=_NOTES,
    ),
)  # fmt: skip
