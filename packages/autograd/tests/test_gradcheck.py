"""Test that gradcheck and gradgradcheck find and report errors."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd import Function, GradcheckError, gradcheck, gradgradcheck


def leaf(*values, dtype=candelabra.float64):
    return candelabra.tensor(values, dtype=dtype, requires_grad=True)


def wrong(backward, forward=lambda ctx, x: x * 2):
    return type("Wrong", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


def test_right_gradients():
    assert gradcheck(lambda x: x * x.sin(), leaf(1.0, 2.0))
    assert gradgradcheck(lambda x: x * x.sin(), leaf(1.0, 2.0))
    assert gradcheck(lambda x, n, y: (x * y, x**n), (leaf(1.0, 2.0), 3, leaf(0.5, 0.25)))


def test_wrong_gradient():
    with pytest.raises(
        GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor"
    ):
        gradcheck(wrong(lambda ctx, grad: grad * 3), leaf(1.0, 2.0))
    assert not gradcheck(wrong(lambda ctx, grad: grad * 3), leaf(1.0, 2.0), raise_exception=False)


def test_detached_part():
    with pytest.raises(GradcheckError) as raised:
        gradcheck(lambda x: x.detach() * 2 + x, leaf(1.0, 1.0))
    text = str(raised.value)
    assert "numerical:tensor([[3.0000, 0.0000]" in text
    assert "analytical:tensor([[1., 0.]" in text
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(1.0))


def test_wrong_second_derivative():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x.detach()

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    assert gradcheck(wrong(backward, forward), leaf(1.0, 2.0))
    with pytest.raises(GradcheckError):
        gradgradcheck(wrong(backward, forward), leaf(1.0, 2.0))


def test_second_output_and_input_are_named():
    def backward(ctx, a, b):
        return a + b, a + 2 * b

    with pytest.raises(GradcheckError, match="for output 1 with respect to input 1"):
        gradcheck(wrong(backward, lambda ctx, x, y: (x + y, x + y)), (leaf(1.0), leaf(2.0)))


def test_not_reentrant():
    calls = []

    def backward(ctx, grad):
        calls.append(1)
        return grad * (2 + 1e-7 * len(calls))

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(wrong(backward), leaf(1.0, 2.0))
    assert gradcheck(wrong(backward), leaf(1.0), nondet_tol=1e-3)


def test_undefined_gradients():
    def backward(ctx, a, b):
        if not b.any().item():
            raise RuntimeError("b is needed")
        return a + b

    with pytest.raises((GradcheckError, RuntimeError), match="b is needed"):
        gradcheck(wrong(backward, lambda ctx, x: (x * 1, x * 1)), leaf(1.0))


def test_inputs_are_checked():
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        gradcheck(candelabra.sin, candelabra.ones(2))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        gradcheck(lambda x: x * 2, leaf(1.0, dtype=candelabra.float32), eps=1e-2, atol=1e-2, rtol=1e-2)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(candelabra.sin, candelabra.ones(1, dtype=candelabra.float64).expand(3).detach().requires_grad_())
    with pytest.raises(AssertionError, match="check_backward_ad"):
        gradcheck(candelabra.sin, leaf(1.0), check_backward_ad=False)


def test_outputs_that_depend_on_values():
    for other in (lambda x: candelabra.cat([x, x]), lambda x: x.float()):
        with pytest.raises(
            AssertionError, match="return outputs with the same (shape|dtype) when inputs are perturbed"
        ):
            gradcheck(lambda x, other=other: other(x) if x.item() >= 1 else x, leaf(1.0))


def test_complex():
    z = candelabra.tensor([1 + 2j, 0.5 - 1j], dtype=candelabra.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z.conj(), z)
    assert gradcheck(lambda z: z.abs(), z)
    assert gradcheck(lambda z: z.real * z.imag, z)
    assert gradcheck(lambda x: candelabra.complex(x, x * 2).exp(), leaf(0.5, 1.0))
    assert gradgradcheck(lambda z: (z * z).exp(), z)
    with pytest.raises(GradcheckError):
        # The gradient of z² is grad * conj(2z).
        gradcheck(wrong(lambda ctx, grad: grad * 2 * ctx.z, lambda ctx, z: setattr(ctx, "z", z.detach()) or z * z), z)


def test_fast_mode_and_batched():
    assert gradcheck(lambda x: x.exp() * x, leaf(1.0, 2.0), fast_mode=True, check_batched_grad=True)
    with pytest.raises(GradcheckError):
        gradcheck(wrong(lambda ctx, grad: grad * 3), leaf(1.0, 2.0), fast_mode=True)


def test_inputs_are_restored():
    x = leaf(1.0, 2.0)
    gradcheck(lambda x: x.exp(), x)
    assert x.tolist() == [1.0, 2.0]
    assert x.grad is None


def test_given_grad_outputs_and_gaps():
    assert gradgradcheck(lambda x: x.exp(), leaf(1.0, 2.0), leaf(0.5, 0.25))
    assert gradgradcheck(lambda x: x.exp(), leaf(1.0, 2.0), gen_non_contig_grad_outputs=True)


def test_namespace():
    assert autograd.gradcheck is gradcheck
