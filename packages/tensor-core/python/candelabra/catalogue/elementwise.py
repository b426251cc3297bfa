"""Elementwise arithmetic, mathematics, comparison and logic."""

from .declaration import COMPOSITE, FUNCTION_ONLY, HIDDEN, INPLACE, NONDIFFERENTIABLE, NUMBERS, operator

# ---- one argument, result of the same dtype
for name in ("neg", "sign", "sgn", "floor", "ceil", "trunc", "frac", "square", "positive", "conj_physical", "relu"):
    operator(f"{name}(Tensor self) -> Tensor", shape="unary", tags=INPLACE)
operator("round(Tensor self, *, int decimals=0) -> Tensor", shape="unary", tags=INPLACE)
operator("bitwise_not(Tensor self) -> Tensor", shape="unary", tags=INPLACE | NONDIFFERENTIABLE)
operator("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", shape="unary", tags=INPLACE)

# ---- one argument, integers become the default floating dtype
for name in (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid", "erf", "erfc", "erfinv", "lgamma", "digamma",
):  # fmt: skip
    operator(f"{name}(Tensor self) -> Tensor", shape="unary_float", tags=INPLACE)

# ---- one argument, other results
operator("abs(Tensor self) -> Tensor", shape="unary_real", tags=INPLACE)
operator("angle(Tensor self) -> Tensor", shape="unary_angle")
for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"):
    operator(f"{name}(Tensor self) -> Tensor", shape="unary_bool", tags=NONDIFFERENTIABLE)
operator("logical_not(Tensor self) -> Tensor", shape="unary_bool", tags=INPLACE | NONDIFFERENTIABLE)
operator("complex(Tensor real, Tensor imag) -> Tensor", shape="complex", tags=FUNCTION_ONLY)
operator("polar(Tensor abs, Tensor angle) -> Tensor", shape="complex", tags=FUNCTION_ONLY)

# ---- two arguments, promoted
for name in ("add", "sub"):
    operator(f"{name}(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", shape="binary_alpha", tags=INPLACE | NUMBERS)
operator("mul(Tensor self, Tensor other) -> Tensor", shape="binary", tags=INPLACE | NUMBERS)
operator("div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor", shape="divide", tags=INPLACE | NUMBERS)
operator("rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", shape="binary_alpha", tags=NUMBERS | COMPOSITE)
for name in ("floor_divide", "remainder", "fmod", "pow"):
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary", tags=INPLACE | NUMBERS)
for name in ("maximum", "minimum", "fmax", "fmin"):
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary")
for name in ("atan2", "hypot", "copysign", "xlogy", "logaddexp", "logaddexp2", "nextafter"):
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary_float", tags=INPLACE | NUMBERS)
operator("heaviside(Tensor self, Tensor values) -> Tensor", shape="binary", tags=INPLACE | NONDIFFERENTIABLE)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary_integer", tags=INPLACE | NUMBERS | NONDIFFERENTIABLE)
for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"):
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", shape="compare", tags=INPLACE | NUMBERS | NONDIFFERENTIABLE)

# ---- three arguments
operator("where(Tensor condition, Tensor input, Tensor other) -> Tensor", shape="where", tags=NUMBERS)
operator("clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", shape="clamp", tags=INPLACE | NUMBERS)
operator("lerp(Tensor self, Tensor end, Tensor weight) -> Tensor", shape="ternary_float", tags=INPLACE | NUMBERS)
for name in ("addcmul", "addcdiv"):
    operator(
        f"{name}(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        shape="ternary",
        tags=INPLACE,
    )

# ---- activations that backends may fuse; the gradients are operators too, so that they can be fused as well
operator("gelu(Tensor self, *, str approximate='none') -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE)
operator(
    "gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor", shape="activation_backward",
    tags=HIDDEN | COMPOSITE,
)  # fmt: skip
operator("silu(Tensor self) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE | INPLACE)
operator("silu_backward(Tensor grad, Tensor self) -> Tensor", shape="activation_backward", tags=HIDDEN | COMPOSITE)
operator("mish(Tensor self) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE | INPLACE)
operator("log_sigmoid(Tensor self) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE)
operator("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE)
operator(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    shape="activation",
    tags=HIDDEN | COMPOSITE | INPLACE,
)
operator("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE | INPLACE)
# grad where self > threshold, else 0: the gradient of relu and its relatives
operator(
    "threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor", shape="activation_backward", tags=HIDDEN | COMPOSITE
)
# The gradients of sigmoid and tanh from their results, as one pass each.
operator("sigmoid_backward(Tensor grad, Tensor output) -> Tensor", shape="activation_backward", tags=HIDDEN | COMPOSITE)
operator("tanh_backward(Tensor grad, Tensor output) -> Tensor", shape="activation_backward", tags=HIDDEN | COMPOSITE)
