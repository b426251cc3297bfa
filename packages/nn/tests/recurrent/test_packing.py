"""Test packed and padded sequences."""

import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra.nn.utils import rnn


def sequences(rng, lengths=(3, 5, 1)):
    return [rng.standard_normal((length, 2)) for length in lengths]


def test_pack_and_unpack(rng):
    given = sequences(rng)
    packed = rnn.pack_sequence([tensor(s) for s in given], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2] and packed.unsorted_indices.tolist() == [1, 0, 2]
    order = [(n, t) for t in range(5) for n in (1, 0, 2) if t < len(given[n])]
    assert_close(packed.data, [given[n][t] for n, t in order])
    for ours, theirs in zip(rnn.unpack_sequence(packed), given, strict=True):
        assert_close(ours, theirs)


def test_padding(rng):
    given = sequences(rng)
    right = rnn.pad_sequence([tensor(s) for s in given], padding_value=7.0)
    left = rnn.pad_sequence([tensor(s) for s in given], batch_first=True, padding_side="left")
    assert right.shape == (5, 3, 2) and left.shape == (3, 5, 2)
    for n, sequence in enumerate(given):
        assert_close(right[: len(sequence), n], sequence)
        assert (array(right[len(sequence) :, n]) == 7).all()
        assert_close(left[n, 5 - len(sequence) :], sequence)
    for ours, theirs in zip(rnn.unpad_sequence(right, candelabra.tensor([3, 5, 1])), given, strict=True):
        assert_close(ours, theirs)
    assert rnn.pad_sequence(candelabra.ones(3, 2)).shape == (2, 3)


@pytest.mark.parametrize("batch_first", [True, False])
def test_round_trip(rng, batch_first):
    x = rng.standard_normal((3, 4, 2) if batch_first else (4, 3, 2))
    lengths = candelabra.tensor([1, 4, 2], device="cpu")
    packed = rnn.pack_padded_sequence(tensor(x), lengths, batch_first, enforce_sorted=False)
    back, found = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=6)
    assert found.tolist() == [1, 4, 2]
    for n, length in enumerate((1, 4, 2)):
        row = array(back[n] if batch_first else back[:, n])
        assert row.shape == (6, 2) and (row[length:] == -1).all()
        assert (row[:length] == (x[n] if batch_first else x[:, n])[:length]).all()


@pytest.mark.host_only("moves from and to the CPU")
def test_conversions():
    packed = rnn.pack_sequence([candelabra.ones(2), candelabra.ones(1)])
    for name, dtype in (("double", "float64"), ("half", "float16"), ("long", "int64"), ("int", "int32"), ("short", "int16"),
                        ("char", "int8"), ("byte", "uint8"), ("float", "float32")):  # fmt: skip
        made = getattr(packed, name)()
        assert made.data.dtype is getattr(candelabra, dtype) and isinstance(made, rnn.PackedSequence)
    assert packed.to("cpu") is packed and packed.cpu() is packed and not packed.is_cuda
    assert rnn.PackedSequence((packed.data, packed.batch_sizes)).batch_sizes is packed.batch_sizes
    assert rnn.invert_permutation(None) is None


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda x: rnn.pack_padded_sequence(x, [1, 2, 3]), RuntimeError, "must be sorted in decreasing order when `enforce_sorted`"),
        (lambda x: rnn.pack_padded_sequence(x, [3, 2]), RuntimeError, "Expected `len(lengths)` to be equal to batch_size, but got 2"),
        (lambda x: rnn.pack_padded_sequence(x, [3, 2, 0]), RuntimeError, "Length of all samples has to be greater than 0"),
        (lambda x: rnn.pack_padded_sequence(x, [5, 2, 1]), RuntimeError, "longest length to be at most 4, but got 5"),
        (lambda x: rnn.pack_padded_sequence(x[:0], [1, 1, 1]), RuntimeError, "Cannot pack empty tensors"),
        (lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 2, 1]), total_length=2), ValueError, "total_length=2"),
        (lambda x: rnn.pad_sequence([]), RuntimeError, "received an empty list of sequences"),
        (lambda x: rnn.pad_sequence(3), RuntimeError, "Expected iterable for input sequences"),
        (lambda x: rnn.pad_sequence([x], padding_side="x"), RuntimeError, "Expected padding_side to be one of left or right, but got x."),
        (lambda x: rnn.pad_sequence([x, x[..., :1]]), RuntimeError, "must have the same sizes after the first"),
        (lambda x: rnn.PackedSequence(x), AssertionError, "data must be a pair"),
    ],
)  # fmt: skip
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act(candelabra.ones(4, 3, 2))
    assert text in str(caught.value)
