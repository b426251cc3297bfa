"""Elementwise arithmetic, mathematics, comparison and logic."""

from .declaration import (
    COMPOSITE,
    FLOAT32_NUMBERS,
    FUNCTION_ONLY,
    HIDDEN,
    INPLACE,
    NONDIFFERENTIABLE,
    NUMBERS,
    TENSOR_FIRST,
    Refusal,
    document,
    operator,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

# What operators refuse, with PyTorch's exceptions and messages.
_Refusals = dict[str, Refusal]
_NO_COMPLEX: _Refusals = {"complex": None}
_NO_BOOL: _Refusals = {"bool": None}
_NO_INTEGRAL: _Refusals = {"bool": None, "integer": None}
_NO_INEXACT: _Refusals = {"float": None, "complex": None}
_ROUNDING: _Refusals = {"bool": None, "complex": (NotImplementedError, "{} is not supported for complex inputs")}
_ROUNDING_PART: _Refusals = {**_ROUNDING, "integer": None}
_COMPLEX_EXTREMUM: _Refusals = {"complex": (RuntimeError, "{} not implemented for complex tensors.")}
_COMPLEX_INFINITY: _Refusals = {"complex": (RuntimeError, "{} does not support complex inputs.")}
_COMPLEX_SIGNBIT: _Refusals = {"complex": (NotImplementedError, "signbit is not implemented for complex tensors.")}
_COMPLEX_HEAVISIDE: _Refusals = {"complex": (RuntimeError, "heaviside is not yet implemented for complex tensors.")}
_COMPLEX_SIGN: _Refusals = {"complex": (NotImplementedError, "Unlike NumPy, sign() is not intended to support complex numbers. Please use sgn() instead.")}  # fmt: skip
_RELU: _Refusals = {
    "bool": (RuntimeError, "Boolean inputs not supported for relu"),
    "complex": (NotImplementedError, "relu is not supported for complex types"),
}
_NEGATED_BOOL: _Refusals = {
    "bool": (
        RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.",
    )
}

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_UNARY = "self has the dtype of the output; for square, bools became int64."
_SEES_UNARY_FLOAT = (
    "self has the dtype of the output, floating point or complex; integers and bools became the default dtype."
)
_SEES_UNARY_BOOL = "self has any dtype; the output is bool."
_SEES_COMPLEX = "Both arguments are float32 or both float64; the output is the complex dtype of that precision."
_SEES_BINARY_ALPHA = (
    "self and other have the dtype of the output, which is not bool for sub and rsub; alpha is a number of a kind that "
    "this dtype can hold."
)
_SEES_BINARY = "self and other have the dtype of the output."
_SEES_BINARY_FLOAT = "self and other have the dtype of the output, floating point or complex; integers and bools became the default dtype."
_SEES_BINARY_INTEGER = "self and other have the dtype of the output, an integer dtype or, but for shifts, bool."
_SEES_COMPARE = "self and other have one dtype, for lt, le, gt and ge not a complex one; the output is bool."
_SEES_TERNARY = "The three tensors have the dtype of the output, for addcdiv not an integer one; value is a number."
_SEES_ACTIVATION = "self has the dtype of the output, floating point or complex."
_SEES_APPROXIMATE = 'approximate is "none" or "tanh".'
_SEES_ACTIVATION_PAIR = "Both tensors have the dtype of the output, to which they were promoted."


def _unary(
    name: str, sentence: str, given: str, shown: str, result: str = "of the dtype of `input`", kind: str = "Tensor"
) -> str:
    return document(
        sentence,
        f">>> candelabra.{name}(candelabra.tensor({given}))\n{shown}",
        input=f"{kind}: of any shape",
        returns=f"Tensor: of the shape of `input`, {result}",
    )


# ---- one argument, result of the same dtype
facts: list  # type: ignore[type-arg]  # of dicts; typing would be imported with the package
for name, shape, sentence, given, shown, *facts in (
    ("neg", "unary", "Change the sign of each element.", "[1, -2]", "tensor([-1,  2])", dict(out="exact", linear=("self",), refuses=_NEGATED_BOOL, tier="required")),
    ("sign", "unary", "Tell the sign of each element: -1, 0 or 1, and NaN for NaN.", "[-2.0, 0.0, 3.0]", "tensor([-1.,  0.,  1.])", dict(out="exact", refuses=_COMPLEX_SIGN)),
    ("sgn", "unary", "Tell the sign of each element; of a complex one, the number of magnitude 1 in its direction.", "[3 + 4j]", "tensor([0.6000+0.8000j])", dict(out="exact", jvp="sgn")),
    ("floor", "unary", "Round down to whole numbers.", "[-1.5, 1.5]", "tensor([-2.,  1.])", dict(out="exact", refuses=_ROUNDING, tier="required")),
    ("ceil", "unary", "Round up to whole numbers.", "[-1.5, 1.5]", "tensor([-1.,  2.])", dict(out="exact", refuses=_ROUNDING)),
    ("trunc", "unary", "Round towards zero to whole numbers.", "[-1.5, 1.5]", "tensor([-1.,  1.])", dict(out="exact", refuses=_ROUNDING)),
    ("frac", "unary", "Return the part after the decimal point, with the sign of the element: ``x - trunc(x)``.", "[-1.5, 2.25]", "tensor([-0.5000,  0.2500])", dict(out="exact", linear=("self",), refuses=_ROUNDING_PART)),
    ("square", "square", "Multiply each element by itself.", "[-2, 3]", "tensor([4, 9])", dict(autocast="float32 on accelerators", tier="fast")),
    ("conj_physical", "unary", "Compute the complex conjugate of each element.", "[1 + 2j]", "tensor([1.-2.j])", dict(out="exact", linear=("self",))),
    ("relu", "unary", "Replace negative elements by zero: ``max(x, 0)``.", "[-1.0, 2.0]", "tensor([0., 2.])", dict(refuses=_RELU, tier="fast")),
):  # fmt: skip
    operator(
        f"{name}(Tensor self) -> Tensor", shape=shape, **dict(*facts), tags=INPLACE, sees=_SEES_UNARY,
        doc=_unary(name, sentence, given, shown),
    )  # fmt: skip
operator(
    "round(Tensor self, *, int decimals=0) -> Tensor", shape="round", tags=INPLACE,
    out="exact", refuses=_ROUNDING,
    sees="self has the dtype of the output, not complex or bool; decimals is 0 unless that is floating point.",
    doc=document(
        "Round to the nearest integer, halves to the even one, or to a number of decimals.",
        ">>> candelabra.round(candelabra.tensor([0.5, 1.5, -1.7]))\ntensor([ 0.,  2., -2.])",
        input="Tensor: of any shape",
        decimals="int: the number of decimals; negative numbers round to the left of the decimal point",
        returns="Tensor: of the shape and dtype of `input`",
    ),
)  # fmt: skip
operator(
    "bitwise_not(Tensor self) -> Tensor", shape="unary", tags=INPLACE | NONDIFFERENTIABLE,
    out="exact", refuses=_NO_INEXACT,
    sees="self has the dtype of the output, an integer dtype or bool.",
    doc=_unary("bitwise_not", "Turn over every bit; of bools, the truth.", "[0, 5]", "tensor([-1, -6])", kind="Tensor of integers or bools"),
)  # fmt: skip
operator(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", shape="unary", tags=INPLACE,
    out="exact",
    sees=_SEES_UNARY,
    doc=document(
        "Replace NaN and infinities by numbers.",
        '>>> candelabra.nan_to_num(candelabra.tensor([float("nan"), 1.0, float("-inf")]), neginf=-9.0)\ntensor([ 0.,  1., -9.])',
        input="Tensor: of any shape",
        nan="float, optional: the replacement of NaN; 0 by default",
        posinf="float, optional: the replacement of infinity; the dtype's maximum by default",
        neginf="float, optional: the replacement of negative infinity; the dtype's minimum by default",
        returns="Tensor: of the shape and dtype of `input`",
    ),
)  # fmt: skip

# ---- one argument, integers become the default floating dtype
_FLOATING = "of the dtype of `input`; of the default dtype for integers"
for name, sentence, given, shown, *facts in (
    ("exp", "Raise e to the power of each element.", "[0.0, 1.0]", "tensor([1.0000, 2.7183])", dict(autocast="float32 on accelerators", tier="required")),
    ("exp2", "Raise 2 to the power of each element.", "[0.0, 3.0]", "tensor([1., 8.])"),
    ("expm1", "Compute ``exp(x) - 1``, precisely also near zero.", "[0.0, 1.0]", "tensor([0.0000, 1.7183])", dict(autocast="float32 on accelerators", tier="required")),
    ("log", "Compute natural logarithms.", "[1.0, 10.0]", "tensor([0.0000, 2.3026])", dict(autocast="float32 on accelerators", tier="required")),
    ("log2", "Compute logarithms to the base 2.", "[1.0, 8.0]", "tensor([0., 3.])", dict(autocast="float32 on accelerators")),
    ("log10", "Compute logarithms to the base 10.", "[1.0, 1000.0]", "tensor([0., 3.])", dict(autocast="float32 on accelerators")),
    ("log1p", "Compute ``log(1 + x)``, precisely also near zero.", "[0.0, 1.0]", "tensor([0.0000, 0.6931])", dict(autocast="float32 on accelerators", tier="required")),
    ("sqrt", "Compute square roots; NaN for negative numbers.", "[4.0, 9.0]", "tensor([2., 3.])", dict(tier="required")),
    ("rsqrt", "Compute ``1 / sqrt(x)``.", "[4.0, 16.0]", "tensor([0.5000, 0.2500])", dict(autocast="float32 on accelerators", tier="fast")),
    ("reciprocal", "Compute ``1 / x``.", "[2.0, 4.0]", "tensor([0.5000, 0.2500])", dict(autocast="float32 on accelerators", tier="fast")),
    ("sin", "Compute sines of angles in radians.", "[0.0, 1.0]", "tensor([0.0000, 0.8415])", dict(tier="required")),
    ("cos", "Compute cosines of angles in radians.", "[0.0, 1.0]", "tensor([1.0000, 0.5403])", dict(tier="required")),
    ("tan", "Compute tangents of angles in radians.", "[0.0, 1.0]", "tensor([0.0000, 1.5574])", dict(autocast="float32 on accelerators")),
    ("asin", "Compute arc sines, from -pi/2 to pi/2.", "[0.0, 1.0]", "tensor([0.0000, 1.5708])", dict(autocast="float32 on accelerators")),
    ("acos", "Compute arc cosines, from 0 to pi.", "[0.0, 1.0]", "tensor([1.5708, 0.0000])", dict(autocast="float32 on accelerators")),
    ("atan", "Compute arc tangents, from -pi/2 to pi/2.", "[0.0, 1.0]", "tensor([0.0000, 0.7854])"),
    ("sinh", "Compute hyperbolic sines.", "[0.0, 1.0]", "tensor([0.0000, 1.1752])", dict(autocast="float32 on accelerators")),
    ("cosh", "Compute hyperbolic cosines.", "[0.0, 1.0]", "tensor([1.0000, 1.5431])", dict(autocast="float32 on accelerators")),
    ("tanh", "Compute hyperbolic tangents.", "[0.0, 1.0]", "tensor([0.0000, 0.7616])", dict(tier="required")),
    ("asinh", "Compute inverse hyperbolic sines.", "[0.0, 1.0]", "tensor([0.0000, 0.8814])"),
    ("acosh", "Compute inverse hyperbolic cosines; NaN below 1.", "[1.0, 2.0]", "tensor([0.0000, 1.3170])"),
    ("atanh", "Compute inverse hyperbolic tangents; NaN outside of [-1, 1].", "[0.0, 0.5]", "tensor([0.0000, 0.5493])"),
    ("sigmoid", "Compute the logistic function, ``1 / (1 + exp(-x))``.", "[0.0, 2.0]", "tensor([0.5000, 0.8808])", dict(tier="fast")),
    ("erf", "Compute the error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to x.", "[0.0, 1.0]", "tensor([0.0000, 0.8427])", dict(tier="required")),
    ("erfc", "Compute the complementary error function, ``1 - erf(x)``, accurately also for small results.", "[0.0, 1.0]", "tensor([1.0000, 0.1573])"),
    ("erfinv", "Compute the inverse of the error function; NaN outside of [-1, 1].", "[0.0, 0.5]", "tensor([0.0000, 0.4769])", dict(autocast="float32 on accelerators")),
    ("lgamma", "Compute the natural logarithm of the magnitude of the gamma function.", "[1.0, 5.0]", "tensor([0.0000, 3.1781])"),
    ("digamma", "Compute the derivative of the logarithm of the gamma function.", "[1.0, 2.0]", "tensor([-0.5772,  0.4228])"),
):  # fmt: skip
    operator(
        f"{name}(Tensor self) -> Tensor", shape="unary_float", **dict(*facts), tags=INPLACE, sees=_SEES_UNARY_FLOAT,
        doc=_unary(name, sentence, given, shown, _FLOATING),
    )  # fmt: skip
operator(
    "logit(Tensor self, float? eps=None) -> Tensor", shape="unary_float", tags=COMPOSITE | INPLACE,
    sees=_SEES_UNARY_FLOAT,
    doc=document(
        "Compute ``log(x / (1 - x))``, the inverse of the logistic sigmoid; NaN outside of [0, 1].",
        ">>> candelabra.logit(candelabra.tensor([0.5, 0.75]))\ntensor([0.0000, 1.0986])",
        input="Tensor: probabilities, of any shape",
        eps="float, optional: the input is clamped to ``[eps, 1 - eps]`` first, unless this is None or negative",
        returns=f"Tensor: of the shape of `input`, {_FLOATING}",
    ),
)  # fmt: skip

# ---- one argument, other results
operator(
    "abs(Tensor self) -> Tensor", shape="unary_real", tier="required", jvp="abs", tags=INPLACE,
    out="exact",
    sees="self has any dtype but bool; the output is real where self is complex.",
    doc=_unary("abs", "Compute magnitudes.", "[-1, 2]", "tensor([1, 2])", "of the dtype of `input`, or of its parts for a complex one"),
)  # fmt: skip
operator(
    "angle(Tensor self) -> Tensor", shape="unary_angle", jvp="angle",
    sees=(
        "self is floating point or complex, integers and bools having become the default dtype; the output is real."
    ),
    doc=_unary("angle", "Compute the angle of complex numbers in radians; of real numbers 0, or pi for negative ones.", "[1j, -1.0]",
               "tensor([1.5708, 3.1416])", "of the real dtype of `input`; of the default dtype for integers"),
)  # fmt: skip
for name, sentence, given, shown, *facts in (
    ("isnan", "Tell which elements are NaN.", '[1.0, float("nan")]', "tensor([False,  True])"),
    ("isinf", "Tell which elements are infinite.", '[1.0, float("-inf")]', "tensor([False,  True])"),
    ("isfinite", "Tell which elements are neither infinite nor NaN.", '[1.0, float("inf")]', "tensor([ True, False])"),
    ("isposinf", "Tell which elements are infinity.", '[float("inf"), float("-inf")]', "tensor([ True, False])", dict(out="exact", refuses=_COMPLEX_INFINITY)),
    ("isneginf", "Tell which elements are minus infinity.", '[float("inf"), float("-inf")]', "tensor([False,  True])", dict(out="exact", refuses=_COMPLEX_INFINITY)),
    ("signbit", "Tell which elements have the sign bit set: the negative ones, minus zero included.", "[-0.0, 0.0, -3.0]", "tensor([ True, False,  True])", dict(out="exact", refuses=_COMPLEX_SIGNBIT)),
):  # fmt: skip
    operator(
        f"{name}(Tensor self) -> Tensor", shape="unary_bool", **dict(*facts), tags=NONDIFFERENTIABLE,
        sees=_SEES_UNARY_BOOL,
        doc=_unary(name, sentence, given, shown, "of dtype bool"),
    )  # fmt: skip
operator(
    "logical_not(Tensor self) -> Tensor", shape="unary_bool", tier="fast", tags=INPLACE | NONDIFFERENTIABLE,
    sees=_SEES_UNARY_BOOL,
    doc=_unary("logical_not", "Tell which elements are zero.", "[0, 2]", "tensor([ True, False])", "of dtype bool"),
)  # fmt: skip
operator(
    "complex(Tensor real, Tensor imag) -> Tensor", shape="complex", jvp="elementwise reals", tags=FUNCTION_ONLY,
    out="exact", linear=("real", "imag"),
    sees=_SEES_COMPLEX,
    doc=document(
        "Return complex numbers with given real and imaginary parts.",
        ">>> candelabra.complex(candelabra.tensor([1.0]), candelabra.tensor([2.0]))\ntensor([1.+2.j])",
        real="Tensor: the real parts, float32 or float64",
        imag="Tensor: the imaginary parts, of the same dtype",
        returns="Tensor: complex64 or complex128, of the shape that the arguments broadcast to",
    ),
)  # fmt: skip
operator(
    "polar(Tensor abs, Tensor angle) -> Tensor", shape="complex", jvp="elementwise reals", tags=FUNCTION_ONLY,
    out="exact", autocast="float32",
    sees=_SEES_COMPLEX,
    doc=document(
        "Return complex numbers with given magnitudes and angles: ``abs * (cos(angle) + sin(angle) j)``.",
        ">>> candelabra.polar(candelabra.tensor([2.0]), candelabra.tensor([0.0]))\ntensor([2.+0.j])",
        abs="Tensor: the magnitudes, float32 or float64",
        angle="Tensor: the angles in radians, of the same dtype",
        returns="Tensor: complex64 or complex128, of the shape that the arguments broadcast to",
    ),
)  # fmt: skip

# ---- two arguments, promoted
_PROMOTED = "Tensor: of the shape that the arguments broadcast to, of the dtype that they promote to"
_BOOL = "Tensor: of dtype bool and the shape that the arguments broadcast to"


def _binary(
    name: str, sentence: str, given: str, shown: str, returns: str = _PROMOTED, tags: int = NUMBERS, **parameters: str
) -> str:
    first = "Tensor or number" if tags & NUMBERS and not tags & TENSOR_FIRST else "Tensor"
    second = "Tensor or number" if tags & NUMBERS else "Tensor"
    return document(
        sentence, f">>> candelabra.{name}({given})\n{shown}",
        input=f"{first}: the first argument", other=f"{second}: the second argument", **parameters, returns=returns,
    )  # fmt: skip


for name, shape, sentence, given, shown in (
    ("add", "add", "Add: ``input + alpha * other``.", "candelabra.tensor([1, 2]), 10", "tensor([11, 12])"),
    ("sub", "subtract", "Subtract: ``input - alpha * other``.", "candelabra.tensor([1, 2]), candelabra.tensor([1, 1]), alpha=2", "tensor([-1,  0])"),
):  # fmt: skip
    operator(
        f"{name}(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", shape=shape, tier="required", tags=INPLACE | NUMBERS,
        sees=_SEES_BINARY_ALPHA,
        doc=_binary(name, sentence, given, shown, alpha="number: multiplies `other`"),
    )  # fmt: skip
operator(
    "mul(Tensor self, Tensor other) -> Tensor", shape="binary", tier="required", tags=INPLACE | NUMBERS | FLOAT32_NUMBERS,
    bilinear=("self", "other"),
    sees="self and other have the dtype of the output, but a number beside float16 or bfloat16 is float32.",
    doc=_binary("mul", "Multiply.", "candelabra.tensor([1, 2]), 1.5", "tensor([1.5000, 3.0000])"),
)  # fmt: skip
operator(
    "div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor", shape="divide", tier="required", tags=INPLACE | NUMBERS | FLOAT32_NUMBERS,
    sees=(
        'self and other have the dtype of the output, but a number beside float16 or bfloat16 is float32. '
        'rounding_mode is none, "floor" or "trunc": without one the dtype is floating point or complex, with one it'
        ' is neither complex nor bool.'
    ),
    doc=_binary(
        "div", "Divide.", 'candelabra.tensor([7, -7]), 2, rounding_mode="floor"', "tensor([ 3, -4])",
        _PROMOTED + "; without rounding, integers become the default dtype",
        rounding_mode="str, optional: ``\"floor\"`` or ``\"trunc\"`` round the quotient down or towards zero",
    ),
)  # fmt: skip
operator(
    "rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", shape="subtract", tags=NUMBERS | TENSOR_FIRST | COMPOSITE,
    sees=_SEES_BINARY_ALPHA,
    doc=_binary("rsub", "Subtract the other way round: ``other - alpha * input``.", "candelabra.tensor([1, 2]), 10", "tensor([9, 8])",
                tags=NUMBERS | TENSOR_FIRST, alpha="number: multiplies `input`"),
)  # fmt: skip
for name, sentence, given, shown, tier in (
    ("floor_divide", "Divide and round down.", "candelabra.tensor([7, -7]), 2", "tensor([ 3, -4])", ""),
    ("remainder", "Compute the remainder of a division rounded down; it has the sign of `other`.", "candelabra.tensor([7, -7]), 3", "tensor([1, 2])", ""),
    ("fmod", "Compute the remainder of a division rounded towards zero; it has the sign of `input`.", "candelabra.tensor([7, -7]), 3", "tensor([ 1, -1])", "required"),
):  # fmt: skip
    numbers = NUMBERS | TENSOR_FIRST if name == "fmod" else NUMBERS
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary", tier=tier, refuses=_NO_COMPLEX, tags=INPLACE | numbers,
        sees=_SEES_BINARY,
        doc=_binary(name, sentence, given, shown, tags=numbers),
    )  # fmt: skip
operator(
    "pow(Tensor self, Tensor exponent) -> Tensor", shape="pow", tier="required", tags=INPLACE | NUMBERS,
    autocast="float32 on accelerators",
    sees="self and exponent have the dtype of the output; a number that is an integer exponent is not negative and fits.",
    doc=document(
        "Raise `input` to the power of `exponent`.", ">>> candelabra.pow(candelabra.tensor([2.0, 3.0]), 2)\ntensor([4., 9.])",
        input="Tensor or number: the base", exponent="Tensor or number: the exponent", returns=_PROMOTED,
    ),
)  # fmt: skip
_NAN_PAIR = 'candelabra.tensor([1.0, float("nan")]), candelabra.tensor([2.0, 3.0])'
for name, sentence, shown, tier in (
    ("maximum", "Compute the elementwise maximum; NaN if one of the elements is NaN.", "tensor([2., nan])", "required"),
    ("minimum", "Compute the elementwise minimum; NaN if one of the elements is NaN.", "tensor([1., nan])", "required"),
    ("fmax", "Compute the elementwise maximum; if one of the elements is NaN, the other.", "tensor([2., 3.])", ""),
    ("fmin", "Compute the elementwise minimum; if one of the elements is NaN, the other.", "tensor([1., 3.])", ""),
):
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary", tier=tier, refuses=_COMPLEX_EXTREMUM, sees=_SEES_BINARY,
        doc=_binary(name, sentence, _NAN_PAIR, shown, tags=0),
    )  # fmt: skip
for name, sentence, given, shown, refuses, tier in (
    ("atan2", "Compute the angle of the point (other, input), from -pi to pi.", "candelabra.tensor([1.0]), candelabra.tensor([-1.0])", "tensor([2.3562])", {}, "required"),
    ("hypot", "Compute ``sqrt(input**2 + other**2)`` without overflow on the way.", "candelabra.tensor([3.0]), candelabra.tensor([4.0])", "tensor([5.])", _NO_INTEGRAL, ""),
    ("copysign", "Give the magnitude of `input` the sign of `other`.", "candelabra.tensor([1.0, 2.0]), -1", "tensor([-1., -2.])", {}, ""),
    ("xlogy", "Compute ``input * log(other)``, which is 0 where `input` is 0.", "candelabra.tensor([0.0, 2.0]), candelabra.tensor([0.0, 1.0])", "tensor([0., 0.])", {}, ""),
    ("logaddexp", "Compute ``log(exp(input) + exp(other))`` without overflow on the way.", "candelabra.tensor([1000.0]), candelabra.tensor([1000.0])", "tensor([1000.6932])", _NO_INTEGRAL, ""),
    ("logaddexp2", "Compute ``log2(2**input + 2**other)`` without overflow on the way.", "candelabra.tensor([1000.0]), candelabra.tensor([1000.0])", "tensor([1001.])", _NO_INTEGRAL, ""),
    ("nextafter", "Return the next number of the dtype after `input` in the direction of `other`.", "candelabra.tensor([1.0]), candelabra.tensor([2.0])", "tensor([1.0000])", _NO_INTEGRAL, ""),
):  # fmt: skip
    numbers = {"copysign": NUMBERS | TENSOR_FIRST, "xlogy": NUMBERS}.get(name, 0)
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary_float", refuses=refuses, tier=tier, tags=INPLACE | numbers,
        sees=_SEES_BINARY_FLOAT,
        doc=_binary(name, sentence, given, shown, _PROMOTED + "; integers become the default dtype", tags=numbers),
    )  # fmt: skip
operator(
    "heaviside(Tensor self, Tensor values) -> Tensor", shape="heaviside", tags=INPLACE | NONDIFFERENTIABLE,
    out="exact", refuses=_COMPLEX_HEAVISIDE,
    sees="self and values have the dtype of the output, which is not complex.",
    doc=document(
        "Compute the Heaviside step function: 0 for negative elements, 1 for positive ones, and `values` at zero.",
        ">>> candelabra.heaviside(candelabra.tensor([-1.0, 0.0, 2.0]), candelabra.tensor(0.5))\ntensor([0.0000, 0.5000, 1.0000])",
        input="Tensor: of any shape", values="Tensor: the value at zero, of the same dtype", returns=_PROMOTED,
    ),
)  # fmt: skip
for name, sentence, given, shown, refuses, tier in (
    ("bitwise_and", "Combine bits by *and*; of bools, truths.", "candelabra.tensor([6, 5]), 3", "tensor([2, 1])", {}, "required"),
    ("bitwise_or", "Combine bits by *or*; of bools, truths.", "candelabra.tensor([6, 5]), 3", "tensor([7, 7])", {}, "required"),
    ("bitwise_xor", "Combine bits by *exclusive or*; of bools, truths.", "candelabra.tensor([6, 5]), 3", "tensor([5, 6])", {}, "required"),
    ("bitwise_left_shift", "Move bits to the left: ``input * 2**other``.", "candelabra.tensor([1, 3]), 2", "tensor([ 4, 12])", _NO_BOOL, ""),
    ("bitwise_right_shift", "Move bits to the right: ``input / 2**other``, rounded down.", "candelabra.tensor([8, -3]), 1", "tensor([ 4, -2])", _NO_BOOL, ""),
):  # fmt: skip
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary_integer", refuses=refuses, tier=tier, tags=INPLACE | NUMBERS | NONDIFFERENTIABLE,
        sees=_SEES_BINARY_INTEGER,
        doc=_binary(name, sentence, given, shown),
    )  # fmt: skip
for name, shape, sentence, given, shown, tier in (
    ("eq", "compare", "Tell where the arguments are equal.", "candelabra.tensor([1, 2]), 2", "tensor([False,  True])", "required"),
    ("ne", "compare", "Tell where the arguments are not equal.", "candelabra.tensor([1, 2]), 2", "tensor([ True, False])", "required"),
    ("lt", "compare_order", "Tell where `input` is less than `other`.", "candelabra.tensor([1, 2]), 2", "tensor([ True, False])", "required"),
    ("le", "compare_order", "Tell where `input` is less than or equal to `other`.", "candelabra.tensor([1, 2]), 1", "tensor([ True, False])", "required"),
    ("gt", "compare_order", "Tell where `input` is greater than `other`.", "candelabra.tensor([1, 2]), 1", "tensor([False,  True])", "fast"),
    ("ge", "compare_order", "Tell where `input` is greater than or equal to `other`.", "candelabra.tensor([1, 2]), 2", "tensor([False,  True])", "fast"),
    ("logical_and", "compare", "Tell where both arguments are not zero.", "candelabra.tensor([0, 2]), candelabra.tensor([1, 1])", "tensor([False,  True])", ""),
    ("logical_or", "compare", "Tell where at least one argument is not zero.", "candelabra.tensor([0, 0]), candelabra.tensor([0, 1])", "tensor([False,  True])", ""),
    ("logical_xor", "compare", "Tell where exactly one argument is not zero.", "candelabra.tensor([1, 0]), candelabra.tensor([1, 1])", "tensor([False,  True])", ""),
):  # fmt: skip
    numbers = 0 if name.startswith("logical") else NUMBERS | TENSOR_FIRST
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape=shape, tier=tier,
        tags=INPLACE | NONDIFFERENTIABLE | numbers, sees=_SEES_COMPARE,
        doc=_binary(name, sentence, given, shown, _BOOL, tags=numbers),
    )  # fmt: skip

# ---- three arguments
operator(
    "where(Tensor condition, Tensor input, Tensor other) -> Tensor", shape="where", tier="required", tags=NUMBERS,
    out="exact",
    sees="condition is bool; input and other have the dtype of the output.",
    doc=document(
        "Select elements of `input` where the condition is true, else of `other`.\n\n"
        "With only the condition, return the indices of true elements, as ``nonzero(condition, as_tuple=True)``.",
        ">>> x = candelabra.tensor([-1.0, 2.0])\n>>> candelabra.where(x > 0, x, 0)\ntensor([0., 2.])",
        condition="Tensor: of dtype bool",
        input="Tensor or number: the elements where the condition is true",
        other="Tensor or number: the elements where it is false",
        returns=_PROMOTED,
    ),
)  # fmt: skip
operator(
    "clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", shape="clamp", tier="fast", tags=INPLACE | NUMBERS | TENSOR_FIRST,
    out="exact",
    sees=(
        "self, and min and max where they are given, have the dtype of the output, neither complex nor bool; one of"
        " the two may be missing."
    ),
    doc=document(
        "Clamp elements to the range from `min` to `max`.",
        ">>> candelabra.clamp(candelabra.tensor([-2.0, 0.5, 2.0]), -1, 1)\ntensor([-1.0000,  0.5000,  1.0000])",
        input="Tensor: of any shape",
        min="Tensor or number, optional: the lower bound",
        max="Tensor or number, optional: the upper bound, which takes precedence over the lower one",
        returns="Tensor: ``minimum(maximum(input, min), max)``; NaN propagates",
        raises="RuntimeError: if both bounds are missing",
    ),
)  # fmt: skip
operator(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor", shape="ternary_float", tier="fast",
    tags=INPLACE | NUMBERS | TENSOR_FIRST | FLOAT32_NUMBERS,
    sees=(
        "The three tensors have the dtype of the output, floating point or complex, but a number beside float16 or "
        "bfloat16 is float32."
    ),
    doc=document(
        "Interpolate linearly: ``input + weight * (end - input)``.",
        ">>> candelabra.lerp(candelabra.tensor([0.0, 10.0]), candelabra.tensor([1.0, 20.0]), 0.5)\ntensor([ 0.5000, 15.0000])",
        input="Tensor: the start point (weight 0), floating point or complex",
        end="Tensor: the end point (weight 1)",
        weight="Tensor or number: the interpolation weight",
        returns="Tensor: of the shape that the arguments broadcast to",
    ),
)  # fmt: skip
for name, sentence, shown in (
    ("addcmul", "Add a product: ``input + value * tensor1 * tensor2``.", "tensor([7.])"),
    ("addcdiv", "Add a quotient: ``input + value * tensor1 / tensor2``.", "tensor([2.5000])"),
):
    operator(
        f"{name}(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", shape=name, tier="fast", tags=INPLACE,
        sees=_SEES_TERNARY,
        doc=document(
            sentence,
            f">>> x, y, z = candelabra.tensor([1.0]), candelabra.tensor([3.0]), candelabra.tensor([2.0])\n>>> candelabra.{name}(x, y, z)\n{shown}",
            input="Tensor: the first summand", tensor1="Tensor: the first factor", tensor2="Tensor: the second one",
            value="number: the factor of the product or quotient", returns=_PROMOTED,
        ),
    )  # fmt: skip


# ---- activations that backends may fuse; the gradients are operators too, so that they can be
# fused as well
def _activation(call: str, sentence: str, given: str, shown: str, **parameters: str) -> str:
    return document(
        sentence, f">>> candelabra.ops.{call.replace('X', f'candelabra.tensor({given})')}\n{shown}",
        input="Tensor: floating point, of any shape", **parameters, returns="Tensor: of the shape and dtype of `input`",
    )  # fmt: skip


def _gradient(call: str, of: str, shown: str, saved: str = "self", **parameters: str) -> str:
    what = "the input of the activation" if saved == "self" else "the result of the activation"
    return document(
        f"Compute the gradient of {of}.",
        f">>> one, x = candelabra.ones(2), candelabra.tensor([0.0, 1.0])\n>>> candelabra.ops.{call}\n{shown}",
        grad="Tensor: the gradient of the result", **{saved: f"Tensor: {what}"}, **parameters,
        returns="Tensor: the gradient of the input",
    )  # fmt: skip


_APPROXIMATE = 'str: ``"none"``, or ``"tanh"`` for the formula with a hyperbolic tangent'
operator(
    "gelu(Tensor self, *, str approximate='none') -> Tensor", shape="gelu", tier="fast", tags=HIDDEN | COMPOSITE,
    sees=f"{_SEES_ACTIVATION} {_SEES_APPROXIMATE}",
    doc=_activation(
        "gelu(X)", "Multiply each element by the normal distribution function of it (Hendrycks and Gimpel 2016).", "[-1.0, 1.0]",
        "tensor([-0.1587,  0.8413])", approximate=_APPROXIMATE,
    ),
)  # fmt: skip
operator(
    "gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor", shape="gelu_backward", tier="fast",
    tags=HIDDEN | COMPOSITE, sees=f"{_SEES_ACTIVATION_PAIR} {_SEES_APPROXIMATE}",
    doc=_gradient("gelu_backward(one, x)", "gelu", "tensor([0.5000, 1.0833])", approximate=_APPROXIMATE),
)  # fmt: skip
operator(
    "silu(Tensor self) -> Tensor", shape="activation", tier="fast", tags=HIDDEN | COMPOSITE | INPLACE,
    sees=_SEES_ACTIVATION,
    doc=_activation("silu(X)", "Multiply each element by the logistic function of it.", "[0.0, 1.0]", "tensor([0.0000, 0.7311])"),
)  # fmt: skip
operator(
    "silu_backward(Tensor grad, Tensor self) -> Tensor", shape="activation_backward", tier="fast", tags=HIDDEN | COMPOSITE,
    sees=_SEES_ACTIVATION_PAIR,
    doc=_gradient("silu_backward(one, x)", "silu", "tensor([0.5000, 0.9277])"),
)  # fmt: skip
operator(
    "mish(Tensor self) -> Tensor", shape="activation", jvp="composite", tags=HIDDEN | COMPOSITE | INPLACE,
    sees=_SEES_ACTIVATION,
    doc=_activation("mish(X)", "Compute ``x * tanh(softplus(x))`` (Misra 2019).", "[0.0, 1.0]", "tensor([0.0000, 0.8651])"),
)  # fmt: skip
operator(
    "log_sigmoid(Tensor self) -> Tensor", shape="activation", title="logsigmoid", tags=HIDDEN | COMPOSITE,
    sees=_SEES_ACTIVATION,
    doc=_activation(
        "log_sigmoid(X)", "Compute the logarithm of the logistic function, finite for all finite x.", "[0.0, -1000.0]",
        "tensor([-6.9315e-01, -1.0000e+03])",
    ),
)  # fmt: skip
operator(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", shape="activation", jvp="composite", tags=HIDDEN | COMPOSITE,
    autocast="float32 on accelerators",
    sees=_SEES_ACTIVATION,
    doc=_activation(
        "softplus(X)", "Compute ``log(1 + exp(beta * x)) / beta``, a smooth relu.", "[0.0, 50.0]", "tensor([ 0.6931, 50.0000])",
        beta="number: how sharp the bend is", threshold="number: if ``beta * x`` is above it, the result is x",
    ),
)  # fmt: skip
operator(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", shape="activation",
    tags=HIDDEN | COMPOSITE | INPLACE,
    sees=_SEES_ACTIVATION,
    doc=_activation(
        "elu(X)", "Compute x for positive elements, else ``alpha * (exp(x) - 1)`` (Clevert, Unterthiner and Hochreiter 2015).", "[-1.0, 2.0]",
        "tensor([-0.6321,  2.0000])", alpha="number: minus the limit for negative x", scale="number: multiplies the result",
        input_scale="number: multiplies x in the exponential",
    ),
)  # fmt: skip
operator(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE | INPLACE,
    sees=_SEES_ACTIVATION,
    doc=_activation(
        "leaky_relu(X, 0.5)", "Multiply negative elements by a small number.", "[-1.0, 2.0]", "tensor([-0.5000,  2.0000])",
        negative_slope="number: what they are multiplied by",
    ),
)  # fmt: skip
# grad where self > threshold, else 0: the gradient of relu and its relatives
operator(
    "threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor", shape="activation_backward", tier="fast", jvp="elementwise", tags=HIDDEN | COMPOSITE,
    batching="elementwise",
    sees=_SEES_ACTIVATION_PAIR,
    doc=_gradient(
        "threshold_backward(one, x, 0)", "the gradients of relu and its relatives: `grad` for inputs above a threshold, else 0", "tensor([0., 1.])",
        threshold="number: the threshold",
    ),
)  # fmt: skip
# The gradients of sigmoid and tanh from their results, as one pass each.
operator(
    "sigmoid_backward(Tensor grad, Tensor output) -> Tensor", shape="activation_backward", tier="fast", jvp="elementwise reals", tags=HIDDEN | COMPOSITE,
    batching="elementwise",
    sees=_SEES_ACTIVATION_PAIR,
    doc=_gradient("sigmoid_backward(one, x.sigmoid())", "sigmoid from its result", "tensor([0.2500, 0.1966])", "output"),
)  # fmt: skip
operator(
    "tanh_backward(Tensor grad, Tensor output) -> Tensor", shape="activation_backward", tier="fast", jvp="elementwise reals", tags=HIDDEN | COMPOSITE,
    batching="elementwise",
    sees=_SEES_ACTIVATION_PAIR,
    doc=_gradient("tanh_backward(one, x.tanh())", "tanh from its result", "tensor([1.0000, 0.4200])", "output"),
)  # fmt: skip
# Piecewise activations, and the gradients of those above, each in one pass.
_LIMITS = {"min_val": "number: the lower limit", "max_val": "number: the upper one"}
_LAMBDA = "number: half the width of the interval around 0"
_ELU = {
    "alpha": "number: minus the limit for negative x", "scale": "number: multiplies the result",
    "input_scale": "number: multiplies x in the exponential",
}  # fmt: skip
for _schema, _sentence, _call, _shown, _parameters in (
    ("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)", "Cut off at two limits.", "hardtanh(X)", "tensor([-1.0000,  0.5000])", _LIMITS),
    ("hardswish(Tensor self)", "Compute ``x * relu6(x + 3) / 6`` (Howard et al. 2019).", "hardswish(X)", "tensor([-0.3333,  0.2917])", {}),
    ("hardsigmoid(Tensor self)", "Compute ``relu6(x + 3) / 6`` (Howard et al. 2019).", "hardsigmoid(X)", "tensor([0.1667, 0.5833])", {}),
    ("hardshrink(Tensor self, Scalar lambd=0.5)", "Replace elements of an interval around 0 by 0.", "hardshrink(X)", "tensor([-2.,  0.])", {"lambd": _LAMBDA}),
    ("softshrink(Tensor self, Scalar lambd=0.5)", "Move elements towards 0, those of an interval around it to 0.", "softshrink(X)", "tensor([-1.5000,  0.0000])", {"lambd": _LAMBDA}),
    (
        "threshold(Tensor self, Scalar threshold, Scalar value)", "Replace elements up to a threshold by a number.", "threshold(X, 0, 9)", "tensor([9.0000, 0.5000])",
        {"threshold": "number: the threshold", "value": "number: what replaces them"},
    ),
):  # fmt: skip
    operator(
        f"{_schema} -> Tensor", shape="activation", tags=HIDDEN | COMPOSITE,
        sees=_SEES_ACTIVATION,
        doc=_activation(_call, _sentence, "[-2.0, 0.5]", _shown, **_parameters),
    )  # fmt: skip
operator(
    "prelu(Tensor self, Tensor weight) -> Tensor", shape="activation_backward", tags=HIDDEN | COMPOSITE,
    autocast="lower on accelerators",
    sees=_SEES_ACTIVATION_PAIR,
    doc=document(
        "Multiply negative elements by weights (He et al. 2015).",
        ">>> x, weight = candelabra.tensor([-2.0, 0.5]), candelabra.tensor([0.25])\n>>> candelabra.ops.prelu(x, weight)\ntensor([-0.5000,  0.5000])",
        input="Tensor: floating point, of any shape", weight="Tensor: the factors of negative elements; broadcast with `input`", returns=_PROMOTED,
    ),
)  # fmt: skip
for _schema, _of, _call, _shown, _parameters in (
    ("hardtanh_backward(Tensor grad, Tensor self, Scalar min_val=-1, Scalar max_val=1)", "hardtanh; 0 at the limits", "hardtanh_backward(one, x)", "tensor([1., 0.])", _LIMITS),
    ("hardswish_backward(Tensor grad, Tensor self)", "hardswish", "hardswish_backward(one, x)", "tensor([0.5000, 0.8333])", {}),
    ("hardsigmoid_backward(Tensor grad, Tensor self)", "hardsigmoid", "hardsigmoid_backward(one, x)", "tensor([0.1667, 0.1667])", {}),
    ("shrink_backward(Tensor grad, Tensor self, Scalar lambd=0.5)", "hardshrink and softshrink", "shrink_backward(one, x)", "tensor([0., 1.])", {"lambd": _LAMBDA}),
    (
        "leaky_relu_backward(Tensor grad, Tensor self, Scalar negative_slope=0.01)", "leaky_relu", "leaky_relu_backward(one, x, 0.5)", "tensor([0.5000, 1.0000])",
        {"negative_slope": "number: the factor of negative elements"},
    ),
    ("elu_backward(Tensor grad, Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", "elu", "elu_backward(one, x)", "tensor([1., 1.])", _ELU),
    (
        "softplus_backward(Tensor grad, Tensor self, Scalar beta=1, Scalar threshold=20)", "softplus", "softplus_backward(one, x)", "tensor([0.5000, 0.7311])",
        {"beta": "number: how sharp the bend is", "threshold": "number: if ``beta * x`` is above it, the result is x"},
    ),
    ("log_sigmoid_backward(Tensor grad, Tensor self)", "log_sigmoid", "log_sigmoid_backward(one, x)", "tensor([0.5000, 0.2689])", {}),
    ("mish_backward(Tensor grad, Tensor self)", "mish", "mish_backward(one, x)", "tensor([0.6000, 1.0490])", {}),
):  # fmt: skip
    operator(
        f"{_schema} -> Tensor",
        shape="activation_backward",
        tags=HIDDEN | COMPOSITE,
        sees=_SEES_ACTIVATION_PAIR,
        doc=_gradient(_call, _of, _shown, **_parameters),
    )
