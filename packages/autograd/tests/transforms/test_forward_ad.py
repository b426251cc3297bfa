"""Test forward mode: tangents of every operator against central differences, dual tensors, and
forward over reverse.
"""

from __future__ import annotations

import math

import pytest
from checking import as_function
from expressions import COMPLEX_EXPRESSIONS, EXPRESSIONS, expressions
from samples import COMPLEX_OPERATORS, has_samples, samples

import candelabra
from candelabra import Tensor
from candelabra.autograd import forward_ad, gradcheck, gradgradcheck
from candelabra.autograd.table import ROWS, WRITTEN
from candelabra.catalogue import OPERATORS
from candelabra.func import jvp

_NONDIFFERENTIABLE = 8
OPERATORS_WITH_SAMPLES = [
    name
    for name, operator in OPERATORS.items()
    if not operator.tags & _NONDIFFERENTIABLE
    and (name in ROWS or name in WRITTEN)
    and has_samples(name)
    and name not in EXPRESSIONS
]


def _direction(tensors):
    return tuple(candelabra.randn(tensor.shape, dtype=tensor.dtype) for tensor in tensors)


def _as_tuple(value):
    return (value,) if isinstance(value, Tensor) else tuple(value)


def check_tangents(function, tensors, step=1e-6, **tolerance):
    """Compare the tangents in a random direction with a central difference."""
    values = tuple(tensor.detach() for tensor in tensors)
    direction = _direction(values)

    def at(scale):
        moved = tuple((value + scale * part).requires_grad_() for value, part in zip(values, direction, strict=True))
        return [part.detach() for part in _as_tuple(function(*moved))]

    expected = [(above - below) / (2 * step) for above, below in zip(at(step), at(-step), strict=True)]
    outputs, tangents = jvp(lambda *given: _as_tuple(function(*given)), values, direction)
    tangents = [
        tangent
        for output, tangent in zip(outputs, tangents, strict=True)
        if output.is_floating_point() or output.is_complex()
    ]
    assert len(tangents) >= len(expected)
    for tangent, difference in zip(tangents, expected, strict=False):
        assert tangent.shape == difference.shape
        assert candelabra.allclose(tangent, difference, **{"rtol": 1e-4, "atol": 1e-5, "equal_nan": True, **tolerance})


def _whole_function(name, arguments, keywords):
    """Return a function of the tensors that require grad. It returns all differentiable
    floating-point results.
    """
    function, tensors = as_function(OPERATORS[name], arguments, keywords)
    recorded = function(*tensors)
    if isinstance(recorded, Tensor):
        return function, tensors
    every = _as_tuple(OPERATORS[name](*arguments, **keywords))
    places = [at for at, part in enumerate(every) if part.requires_grad]

    def chosen(*given):
        replacements = iter(given)

        def replace(value):
            if isinstance(value, Tensor) and value.requires_grad:
                return next(replacements)
            if isinstance(value, (list, tuple)):
                return type(value)([replace(entry) for entry in value])
            return value

        made = OPERATORS[name](
            *[replace(value) for value in arguments], **{key: replace(value) for key, value in keywords.items()}
        )
        return tuple(made[at] for at in places)

    return chosen, tensors


@pytest.mark.parametrize("name", OPERATORS_WITH_SAMPLES)
def test_real(name):
    for arguments, keywords in samples(name, candelabra.float64):
        function, tensors = _whole_function(name, arguments, keywords)
        check_tangents(function, tensors)


@pytest.mark.parametrize("name", [name for name in COMPLEX_OPERATORS if name in OPERATORS_WITH_SAMPLES])
def test_complex(name):
    for arguments, keywords in samples(name, candelabra.complex128):
        function, tensors = _whole_function(name, arguments, keywords)
        check_tangents(function, tensors)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name):
    for function, tensors in expressions(name, candelabra.float64):
        check_tangents(function, tensors)


@pytest.mark.parametrize("name", COMPLEX_EXPRESSIONS)
def test_expressions_of_complex_numbers(name):
    for function, tensors in expressions(name, candelabra.complex128):
        check_tangents(function, tensors)


@pytest.mark.parametrize(
    "name",
    [
        "linalg_inv_ex",
        "linalg_eigh_ex",
        "_fft_c2c",
        "_ctc_loss",
        "_scaled_dot_product_attention_backward",
        "linalg_svd_ex",
    ],
)
def test_gradients_of_expressions_have_tangents(name):
    for function, tensors in expressions(name, candelabra.float64):
        assert gradgradcheck(function, tensors, check_fwd_over_rev=True, check_rev_over_rev=False, atol=1e-4)


def test_dual_tensors_carry_tangents():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(candelabra.tensor([1.0, 2.0]), candelabra.tensor([1.0, 0.0]))
        primal, tangent = forward_ad.unpack_dual(x * x.sin())
    expected = [math.sin(1) + math.cos(1), 0.0]
    assert candelabra.allclose(tangent, candelabra.tensor(expected))
    assert candelabra.allclose(primal, candelabra.tensor([math.sin(1), 2 * math.sin(2)]))
    assert type(primal) is Tensor and type(tangent) is Tensor


def test_tensors_without_tangents_have_none():
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(candelabra.ones(2) * 2).tangent is None
        x = forward_ad.make_dual(candelabra.ones(2), candelabra.ones(2))
        assert forward_ad.unpack_dual(x.detach()).tangent is None
        assert forward_ad.unpack_dual(x > 0).tangent is None


def test_in_place_operations_and_views_share_tangents():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(candelabra.tensor(2.0), candelabra.tensor(1.0))
        y = candelabra.zeros(3)
        view = y[1:]
        y[0] = x
        view.add_(x * x)
        view[0].mul_(x)
        y.mul_(2)
        primal, tangent = forward_ad.unpack_dual(y)
        assert primal.tolist() == [4.0, 16.0, 8.0]
        assert tangent.tolist() == [2.0, 24.0, 8.0]
        y.zero_()
        assert forward_ad.unpack_dual(view).tangent.tolist() == [0.0, 0.0]


def test_the_caller_s_tangent_is_not_written_to():
    direction = candelabra.ones(2)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(candelabra.ones(2), direction)
        x.mul_(3)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [3.0, 3.0]
    assert direction.tolist() == [1.0, 1.0]


def test_reverse_over_forward():
    x = candelabra.tensor([1.0, 2.0], dtype=candelabra.float64, requires_grad=True)
    direction = candelabra.tensor([3.0, -1.0], dtype=candelabra.float64)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual((forward_ad.make_dual(x, direction) ** 3).sum()).tangent
    (gradient,) = candelabra.autograd.grad(tangent, x)
    assert candelabra.allclose(gradient, 6 * x.detach() * direction)


def test_forward_over_reverse():
    x = candelabra.tensor([1.0, 2.0], dtype=candelabra.float64, requires_grad=True)
    direction = candelabra.tensor([3.0, -1.0], dtype=candelabra.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, direction)
        (gradient,) = candelabra.autograd.grad((dual**3).sum(), dual)
        primal, tangent = forward_ad.unpack_dual(gradient)
    assert candelabra.allclose(primal, 3 * x.detach() ** 2)
    assert candelabra.allclose(tangent, 6 * x.detach() * direction)


def test_gradcheck_in_forward_mode():
    x = candelabra.randn(3, dtype=candelabra.float64, requires_grad=True)
    z = candelabra.randn(3, dtype=candelabra.complex128, requires_grad=True)
    options = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda x: (x.sin(), x.exp().sum()), (x,), **options)
    assert gradcheck(lambda z: (z.sin() * z.conj(), z.abs()), (z,), **options)
    assert gradgradcheck(lambda x: (x.sin(), x.exp().sum()), (x,), check_fwd_over_rev=True)


class _WrongTangent(candelabra.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3


def test_gradcheck_finds_a_wrong_tangent():
    x = candelabra.randn(3, dtype=candelabra.float64, requires_grad=True)
    assert gradcheck(_WrongTangent.apply, (x,))
    with pytest.raises(candelabra.autograd.GradcheckError, match="forward mode mismatch"):
        gradcheck(_WrongTangent.apply, (x,), check_forward_ad=True)


def test_errors():
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(candelabra.ones(1), candelabra.ones(1))
    with pytest.raises(RuntimeError, match="Trying to exit"):
        forward_ad.exit_dual_level()
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="different size"):
            forward_ad.make_dual(candelabra.ones(1), candelabra.ones(2))
        with pytest.raises(ValueError, match="floating point"):
            forward_ad.make_dual(candelabra.ones(1, dtype=candelabra.int64), candelabra.ones(1))
        with pytest.raises(RuntimeError, match="dtype"):
            forward_ad.make_dual(candelabra.ones(1), candelabra.ones(1, dtype=candelabra.float64))
        x = forward_ad.make_dual(candelabra.ones(1), candelabra.ones(1))
        with pytest.raises(RuntimeError, match="out="):
            candelabra.add(x, 1, out=candelabra.empty(1))
    assert forward_ad.unpack_dual(x).tangent is None
    assert (x + 1).tolist() == [2.0]


@pytest.mark.parametrize("lifting", [True, False], ids=["jvp", "dual_level"])
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda base, t: base.copy_(t * t), [2.0, 40.0]),
        (lambda base, t: base.copy_(candelabra.ones(3)), [0.0, 0.0]),
        (lambda base, t: base.zero_(), [0.0, 0.0]),
        (lambda base, t: base[1:].copy_(t[1:] * 3), [2.0, 30.0]),
        (lambda base, t: base.mul_(2), [4.0, 40.0]),
    ],
)
def test_views_follow_the_tangent_of_their_changed_base(write, expected, lifting):
    def function(t):
        base = t * 2
        view = base[:2]
        write(base, t)
        return view * 1

    t, tangent = candelabra.tensor([1.0, 2.0, 3.0]), candelabra.tensor([1.0, 10.0, 100.0])
    if lifting:
        _, made = candelabra.func.jvp(function, (t,), (tangent,))
    else:
        with forward_ad.dual_level():
            made = forward_ad.unpack_dual(function(forward_ad.make_dual(t, tangent))).tangent
    assert made.tolist() == expected
