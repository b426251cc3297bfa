"""Warnings: what PyTorch warns of, at the line of the program that called, so that Python shows
each line's once.
"""

import inspect
import warnings

import numpy
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra

MATRIX = candelabra.ones(2, 3)
COMPLEX = candelabra.tensor([1 + 2j])
READ_ONLY = numpy.broadcast_to(numpy.ones(1), (3,))

CASES = {
    "tensor(tensor)": (lambda: candelabra.tensor(MATRIX), "To copy construct from a tensor"),
    "new_tensor(tensor)": (lambda: MATRIX.new_tensor(MATRIX), "To copy construct from a tensor"),
    "T of three dimensions": (
        lambda: candelabra.ones(2, 3, 4).T,
        r"use of `x\.T` on tensors of dimension other than 2",
    ),
    "T of none": (lambda: candelabra.ones(()).T, "deprecated on 0-D tensors"),
    "to(real)": (lambda: COMPLEX.to(candelabra.float32), "discards the imaginary part"),
    "float()": (lambda: COMPLEX.float(), "discards the imaginary part"),
    "long()": (lambda: COMPLEX.long(), "discards the imaginary part"),
    "copy_": (lambda: candelabra.zeros(1).copy_(COMPLEX), "discards the imaginary part"),
    "meshgrid": (
        lambda: candelabra.meshgrid(MATRIX[0], MATRIX[1]),
        "it will be required to pass the indexing argument",
    ),
    "from_numpy": (lambda: candelabra.from_numpy(READ_ONLY), "NumPy array is not writable"),
    "frombuffer": (lambda: candelabra.frombuffer(b"ab", dtype=candelabra.uint8), "The given buffer is not writable"),
    "random_ from": (lambda: candelabra.ones(2).random_(-(2**25), 1), r"from is out of bounds \[-\(2\^24\), 2\^24\]"),
    "random_ to": (lambda: candelabra.ones(2).random_(0, 2**25), "to - 1 is out of bounds"),
    "stft": (lambda: candelabra.stft(candelabra.ones(8), 4, return_complex=True), "A window was not provided"),
    "istft": (lambda: candelabra.istft(COMPLEX.expand(3, 4), 4), "A window was not provided"),
    "out=": (lambda: candelabra.add(MATRIX, 1, out=candelabra.ones(2)), r"resized since it had shape \[2\]"),
    "nuclear_norm": (lambda: candelabra.nuclear_norm(MATRIX), "nuclear_norm is deprecated"),
    "frobenius_norm": (lambda: candelabra.frobenius_norm(MATRIX, (0, 1)), "frobenius_norm is deprecated"),
    "uint8 mask": (lambda: MATRIX[0][MATRIX[0].byte()], "uint8 is deprecated"),
}


@pytest.mark.parametrize("name", CASES)
def test_warns_once_at_the_line_that_called(name):
    call, message = CASES[name]
    with pytest.warns(UserWarning, match=message) as seen:
        call()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    first = inspect.getsourcelines(CASES[name][0])[1]
    assert seen[0].lineno == first


QUIET = {
    "frombuffer": lambda: candelabra.frombuffer(bytearray(b"ab"), dtype=candelabra.uint8),
    "random_": lambda: candelabra.ones(2).random_(0, 2**24),
    "tensor(list)": lambda: candelabra.tensor([1.0]),
    "T of a matrix": lambda: MATRIX.T,
    "T of a vector": lambda: candelabra.ones(2).T,
    "mT": lambda: candelabra.ones(2, 3, 4).mT,
    "complex to bool": lambda: COMPLEX.bool(),
    "complex to complex": lambda: COMPLEX.to(candelabra.complex128),
    "real": lambda: COMPLEX.real,
    "real to complex": lambda: MATRIX.to(candelabra.complex64),
    "meshgrid with indexing": lambda: candelabra.meshgrid(MATRIX[0], indexing="xy"),
    "from_numpy": lambda: candelabra.from_numpy(numpy.ones(2)),
    "as_tensor": lambda: candelabra.as_tensor(READ_ONLY),
    "tensor of a read-only array": lambda: candelabra.tensor(READ_ONLY),
    "out= of no elements": lambda: candelabra.add(MATRIX, 1, out=candelabra.empty(0)),
}


@pytest.mark.parametrize("name", QUIET)
def test_does_not_warn(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QUIET[name]()


def test_gradients_of_casts_are_quiet():
    pytest.importorskip("candelabra.autograd", reason="needs candelabra-autograd")
    x = candelabra.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x.to(candelabra.complex64) * COMPLEX).abs().sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), numpy.full(2, 5**0.5), rtol=1e-6)


def test_norms_that_warn_compute():
    a = numpy.random.default_rng(1).standard_normal((3, 4))
    x = candelabra.from_numpy(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numpy.testing.assert_allclose(candelabra.nuclear_norm(x).item(), numpy.linalg.norm(a, "nuc"))
        numpy.testing.assert_allclose(candelabra.nuclear_norm(x, True).numpy(), [[numpy.linalg.norm(a, "nuc")]])
        numpy.testing.assert_allclose(candelabra.frobenius_norm(x, 0).numpy(), numpy.linalg.norm(a, axis=0))
        numpy.testing.assert_allclose(candelabra.frobenius_norm(x, [0, 1], True).numpy(), [[numpy.linalg.norm(a)]])
        out = candelabra.empty(0, dtype=candelabra.float64)
        assert candelabra.frobenius_norm(x, [], out=out) is out and out.shape == ()
        with pytest.raises(RuntimeError, match="at most 2 dimensions, but got 3"):
            candelabra.frobenius_norm(candelabra.ones(1, 1, 1), [0, 1, 2])
