"""Special functions; candelabra.special has the names that are called."""

from .declaration import HIDDEN, INPLACE, NONDIFFERENTIABLE, NUMBERS, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_UNARY_FLOAT = (
    "self has the dtype of the output, floating point or complex; integers and bools became the default dtype."
)
_SEES_BINARY_FLOAT = "self and other have the dtype of the output, floating point or complex; integers and bools became the default dtype."
_SEES_DIVISOR = "self and other have the dtype of the output, an integer one."

_RETURNS = "Tensor: of the shape and dtype of `input`; integers become the default dtype"
_PAIR = "Tensor: of the shape that the arguments broadcast to; integers become the default dtype"
operator(
    "i0(Tensor self) -> Tensor", shape="unary_float", tags=INPLACE,
    sees=_SEES_UNARY_FLOAT,
    doc=document(
        "Compute the modified Bessel function of the first kind of order 0.",
        ">>> candelabra.i0(candelabra.tensor([0.0, 1.0]))\ntensor([1.0000, 1.2661])",
        input="Tensor: of any shape", returns=_RETURNS, notes="Abramowitz and Stegun, 9.6.12 and 9.7.1.",
    ),
)  # fmt: skip
for name, sentence, given, shown, source in (
    ("i0e", "Compute ``exp(-|x|) * i0(x)``.", "[0.0, 1.0]", "tensor([1.0000, 0.4658])", "Abramowitz and Stegun, 9.6.12 and 9.7.1."),
    ("i1", "Compute the modified Bessel function of the first kind of order 1.", "[0.0, 1.0]", "tensor([0.0000, 0.5652])", "Abramowitz and Stegun, 9.6.10 and 9.7.1."),
    ("i1e", "Compute ``exp(-|x|) * i1(x)``.", "[0.0, 1.0]", "tensor([0.0000, 0.2079])", "Abramowitz and Stegun, 9.6.10 and 9.7.1."),
    ("modified_bessel_k0", "Compute the modified Bessel function of the second kind of order 0; inf at 0, NaN below.", "[1.0, 2.0]", "tensor([0.4210, 0.1139])", "Abramowitz and Stegun, 9.6.13, 9.6.24 and 9.7.2."),
    ("modified_bessel_k1", "Compute the modified Bessel function of the second kind of order 1; inf at 0, NaN below.", "[1.0, 2.0]", "tensor([0.6019, 0.1399])", "Abramowitz and Stegun, 9.6.11, 9.6.24 and 9.7.2."),
    ("scaled_modified_bessel_k0", "Compute ``exp(x) * modified_bessel_k0(x)``.", "[1.0, 2.0]", "tensor([1.1445, 0.8416])", "Abramowitz and Stegun, 9.6.13, 9.6.24 and 9.7.2."),
    ("scaled_modified_bessel_k1", "Compute ``exp(x) * modified_bessel_k1(x)``.", "[1.0, 2.0]", "tensor([1.6362, 1.0335])", "Abramowitz and Stegun, 9.6.11, 9.6.24 and 9.7.2."),
    ("bessel_j0", "Compute the Bessel function of the first kind of order 0.", "[0.0, 1.0]", "tensor([1.0000, 0.7652])", "The C library's j0."),
    ("bessel_j1", "Compute the Bessel function of the first kind of order 1.", "[0.0, 1.0]", "tensor([0.0000, 0.4401])", "The C library's j1."),
    ("bessel_y0", "Compute the Bessel function of the second kind of order 0; -inf at 0, NaN below.", "[1.0, 2.0]", "tensor([0.0883, 0.5104])", "The C library's y0."),
    ("bessel_y1", "Compute the Bessel function of the second kind of order 1; -inf at 0, NaN below.", "[1.0, 2.0]", "tensor([-0.7812, -0.1070])", "The C library's y1."),
    ("spherical_bessel_j0", "Compute the spherical Bessel function of the first kind of order 0, ``sin(x) / x``.", "[0.0, 1.0]", "tensor([1.0000, 0.8415])", "Abramowitz and Stegun, 10.1.11."),
    ("airy_ai", "Compute Airy's function Ai.", "[0.0, 1.0]", "tensor([0.3550, 0.1353])", "Abramowitz and Stegun, 10.4.2, 10.4.7 and 10.4.14."),
    ("erfcx", "Compute ``exp(x**2) * erfc(x)``.", "[0.0, 1.0]", "tensor([1.0000, 0.4276])", "Abramowitz and Stegun, 7.1.23."),
    ("ndtr", "Compute the area under the standard normal density from -inf to x.", "[0.0, 1.96]", "tensor([0.5000, 0.9750])", "``erfc(-x / sqrt(2)) / 2``; by erfcx for small results."),
    ("log_ndtr", "Compute the logarithm of the area under the standard normal density from -inf to x.", "[0.0, -10.0]", "tensor([ -0.6931, -53.2313])", "By erfcx where the area is small."),
    ("ndtri", "Compute the inverse of the area under the standard normal density: inf at 1, NaN outside of [0, 1].", "[0.5, 0.975]", "tensor([0.0000, 1.9600])", "Halley's method on log_ndtr."),
    ("entr", "Compute ``-x * log(x)``: 0 at 0, -inf below.", "[0.0, 0.5]", "tensor([0.0000, 0.3466])", "By definition."),
):  # fmt: skip
    operator(
        f"special_{name}(Tensor self) -> Tensor", shape="unary_float", tags=HIDDEN,
        sees=_SEES_UNARY_FLOAT,
        doc=document(
            sentence, f">>> candelabra.special.{name}(candelabra.tensor({given}))\n{shown}",
            input="Tensor: of any shape", returns=_RETURNS, notes=source,
        ),
    )  # fmt: skip
for name, word, shown in (("igamma", "lower", "tensor([0.8647])"), ("igammac", "upper", "tensor([0.1353])")):
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="binary_float", tags=INPLACE,
        sees=_SEES_BINARY_FLOAT,
        doc=document(
            f"Compute the regularized {word} incomplete gamma function of order `input` at `other`.",
            f">>> candelabra.{name}(candelabra.tensor([1.0]), candelabra.tensor([2.0]))\n{shown}",
            input="Tensor: the order, at least 0", other="Tensor: the argument, at least 0", returns=_PAIR,
            notes="Abramowitz and Stegun, 6.5.29 and 6.5.31; near the origin Temme, 1994.",
        ),
    )  # fmt: skip
operator(
    "special_zeta(Tensor self, Tensor other) -> Tensor", shape="binary_float", tags=HIDDEN | NUMBERS,
    sees=_SEES_BINARY_FLOAT,
    doc=document(
        "Compute the Hurwitz zeta function, ``sum_k (k + other) ** -input``.",
        ">>> candelabra.special.zeta(candelabra.tensor([2.0]), 1)\ntensor([1.6449])",
        input="Tensor or number: the exponent, at least 1", other="Tensor or number: the start of the sum", returns=_PAIR,
        notes="By the Euler-Maclaurin formula; Johansson, 2014.",
    ),
)  # fmt: skip
operator(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor", shape="binary_float", tags=HIDDEN | NUMBERS,
    sees=_SEES_BINARY_FLOAT,
    doc=document(
        "Compute ``input * log1p(other)``, which is 0 where `input` is 0 and `other` is not NaN.",
        ">>> candelabra.special.xlog1py(candelabra.tensor([0.0, 2.0]), -1 + candelabra.tensor([0.0, 1.0]))\ntensor([0., 0.])",
        input="Tensor or number: the factor", other="Tensor or number: the argument of the logarithm", returns=_PAIR,
    ),
)  # fmt: skip
for name, sentence, shown in (
    ("chebyshev_polynomial_t", "Chebyshev's polynomials of the first kind", "tensor([-0.5000])"),
    ("chebyshev_polynomial_u", "Chebyshev's polynomials of the second kind", "tensor([0.])"),
    ("chebyshev_polynomial_v", "Chebyshev's polynomials of the third kind", "tensor([-1.])"),
    ("chebyshev_polynomial_w", "Chebyshev's polynomials of the fourth kind", "tensor([1.])"),
    (
        "shifted_chebyshev_polynomial_t",
        "Chebyshev's polynomials of the first kind of ``2 * input - 1``",
        "tensor([-1.])",
    ),
    (
        "shifted_chebyshev_polynomial_u",
        "Chebyshev's polynomials of the second kind of ``2 * input - 1``",
        "tensor([-1.])",
    ),
    (
        "shifted_chebyshev_polynomial_v",
        "Chebyshev's polynomials of the third kind of ``2 * input - 1``",
        "tensor([-1.])",
    ),
    (
        "shifted_chebyshev_polynomial_w",
        "Chebyshev's polynomials of the fourth kind of ``2 * input - 1``",
        "tensor([-1.])",
    ),
    ("hermite_polynomial_h", "Hermite's polynomials of physicists", "tensor([-1.])"),
    ("hermite_polynomial_he", "Hermite's polynomials of statisticians", "tensor([-0.7500])"),
    ("laguerre_polynomial_l", "Laguerre's polynomials", "tensor([0.1250])"),
    ("legendre_polynomial_p", "Legendre's polynomials", "tensor([-0.1250])"),
):
    operator(
        f"special_{name}(Tensor self, Tensor n) -> Tensor", shape="binary_float", tags=HIDDEN | NUMBERS,
        sees=_SEES_BINARY_FLOAT,
        doc=document(
            f"Compute {sentence}, by their recurrence.", f">>> candelabra.special.{name}(candelabra.tensor([0.5]), 2)\n{shown}",
            input="Tensor or number: of any shape", n="Tensor or number: the degree, truncated; the result is 0 for negative degrees",
            returns=_PAIR, notes="Abramowitz and Stegun, chapter 22.",
        ),
    )  # fmt: skip
for name, sentence, shown, *facts in (
    ("gcd", "Compute greatest common divisors, which are nonnegative.", "tensor([2])", dict(batching="elementwise")),
    ("lcm", "Compute least common multiples, which are nonnegative.", "tensor([12])", dict(batching="elementwise")),
):
    operator(
        f"{name}(Tensor self, Tensor other) -> Tensor", shape="divisor", **dict(*facts), tags=INPLACE | NONDIFFERENTIABLE,
        sees=_SEES_DIVISOR,
        doc=document(
            sentence, f">>> candelabra.{name}(candelabra.tensor([4]), candelabra.tensor([6]))\n{shown}",
            input="Tensor: of an integer dtype", other="Tensor: of an integer dtype",
            returns="Tensor: of the shape that the arguments broadcast to, of the dtype that they promote to",
        ),
    )  # fmt: skip
operator(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", shape="frexp",
    out="exact", batching="elementwise",
    sees=(
        "self and mantissa have one floating-point dtype; exponent is int32. self has any strides; the outputs are "
        "contiguous."
    ),
    doc=document(
        "Decompose numbers: ``input = mantissa * 2**exponent``, the magnitude of the mantissa at least 1/2 and less than 1.",
        ">>> candelabra.frexp(candelabra.tensor([6.0])).mantissa\ntensor([0.7500])",
        input="Tensor: floating point", returns="(mantissa, exponent): the exponent is int32",
    ),
)  # fmt: skip
