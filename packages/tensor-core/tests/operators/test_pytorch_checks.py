"""Errors and warnings of composite functions that PyTorch's own tests ask for."""

from collections.abc import Callable
from typing import Any

import pytest

import candelabra


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks_refuse_one_tensor(name: str) -> None:
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        getattr(candelabra, name)(candelabra.ones(2))


def test_splits_name_themselves() -> None:
    with pytest.raises(RuntimeError, match=r"^torch\.hsplit requires a tensor with at least 1 dimension"):
        candelabra.hsplit(candelabra.tensor(1.0), 2)
    with pytest.raises(RuntimeError, match=r"^torch\.vsplit attempted to split along dimension 0"):
        candelabra.vsplit(candelabra.ones(3, 2), 2)


def test_diff_needs_parts_of_the_same_dimensions() -> None:
    with pytest.raises(RuntimeError, match="diff expects prepend or append to be the same dimension as input"):
        candelabra.diff(candelabra.ones(3), prepend=candelabra.ones(2, 2))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("addcmul", lambda x: candelabra.addcmul(x, 2, x, x)),
        ("addcdiv_", lambda x: x.clone().addcdiv_(2, x, x)),
        ("add", lambda x: candelabra.add(x, 2, x)),
    ],
)
def test_deprecated_overloads_warn(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
        call(candelabra.ones(2))


def test_tensor_of_a_storage() -> None:
    values = candelabra.tensor([1.5, -2.0])
    assert candelabra.tensor(values.untyped_storage(), dtype=values.dtype).tolist() == [1.5, -2.0]
    typed = values.storage()
    shared = candelabra.tensor(typed)
    assert shared.tolist() == [1.5, -2.0] and shared.data_ptr() == values.data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        candelabra.tensor(typed, dtype=candelabra.int32)
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        candelabra.tensor([1]).set_(typed)


def test_meta_storage_has_no_elements() -> None:
    storage = candelabra.empty(3, device="meta").untyped_storage()
    for read in (lambda: storage[0], storage.tolist):
        with pytest.raises(NotImplementedError, match="Not available"):
            read()
    with pytest.raises(NotImplementedError, match="Not available"):
        candelabra.empty(3, device="meta").storage()[0]
