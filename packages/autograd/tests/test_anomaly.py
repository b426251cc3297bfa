"""Test that anomaly detection reports the line of the forward pass."""

from __future__ import annotations

import threading
import warnings

import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd import Function


def make_nan(x):
    return (x * 0).sqrt() * 0  # the reported line


def test_nan_is_an_error_with_the_forward_line():
    x = candelabra.ones(2, requires_grad=True)
    with autograd.detect_anomaly():
        y = make_nan(x).sum()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0") as caught,
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."),
        ):
            y.backward()
    assert "the reported line" in str(caught[0].message)
    assert "Traceback of forward call that caused the error" in str(caught[0].message)


def test_without_looking_for_nan():
    x = candelabra.ones(2, requires_grad=True)
    with autograd.detect_anomaly(check_nan=False), warnings.catch_warnings():
        warnings.simplefilter("error")
        make_nan(x).sum().backward()
    assert bool(x.grad.isnan().all().item())


def test_failing_gradient_of_a_custom_function():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ArithmeticError("no")

    x = candelabra.ones(2, requires_grad=True)
    message = "Error detected in FailingBackward.*Traceback of forward call"
    with autograd.detect_anomaly():
        y = Failing.apply(x).sum()
        with pytest.warns(UserWarning, match=message), pytest.raises(ArithmeticError):
            y.backward()


def test_forward_outside_of_the_block():
    x = candelabra.ones(2, requires_grad=True)
    y = make_nan(x)
    with (
        autograd.detect_anomaly(),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError),
    ):
        y.sum().backward()


def test_switch():
    assert not autograd.is_anomaly_enabled()
    with autograd.set_detect_anomaly(True, check_nan=False):
        assert autograd.is_anomaly_enabled()
        assert not autograd.is_anomaly_check_nan_enabled()
        with autograd.detect_anomaly():
            assert autograd.is_anomaly_check_nan_enabled()
        with autograd.set_detect_anomaly(False):
            assert not autograd.is_anomaly_enabled()
    assert not autograd.is_anomaly_enabled()
    switch = autograd.set_detect_anomaly(True)
    assert autograd.is_anomaly_enabled()
    switch.__exit__()


def test_per_thread():
    seen = []
    with autograd.detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(autograd.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


class Failing(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("no gradient today")


def test_an_exception_says_where_the_walk_was():
    x = candelabra.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="no gradient today") as caught:
        (Failing.apply(x) * 3).sum().backward()
    (note,) = caught.value.__notes__
    assert "FailingBackward" in note
    assert "detect_anomaly" in note
    made = x * x
    made.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        made.sum().backward()
    assert "MulBackward0" in caught.value.__notes__[0]
    # Autograd still works afterwards.
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.filterwarnings("ignore:Error detected")
def test_an_exception_shows_the_forward_line_under_anomaly_detection():
    x = candelabra.ones(2, requires_grad=True)
    with autograd.detect_anomaly(), pytest.raises(ValueError, match="no gradient today") as caught:
        Failing.apply(x).sum().backward()
    assert "Failing.apply(x)" in caught.value.__notes__[0]
