"""Groups as the loops of their kernels, block by block, and rows that groups broadcast: the same
bits as ordinary calls.
"""

from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_functions import random_function
from test_compiled_groups import BINARY, BINARY_OF_FLOATS, FLOATS, UNARY, UNARY_OF_FLOATS, compiled, identical, values
from test_tiles import BINARY as TILED_BINARY
from test_tiles import UNARY as TILED_UNARY

import candelabra
from candelabra import nn

F = nn.functional


@pytest.fixture(params=["loops of kernels", "LLVM"])
def compiler(request):
    """Run the test without LLVM and with it."""
    from candelabra_backend_cpu import library_path, llvm

    if request.param == "LLVM":
        pytest.importorskip("llvmlite")
        yield
        return
    compiled(lambda x: x * 2 + 1, candelabra.ones(70_000))  # registers LLVM, where it is
    llvm.unregister(library_path())
    yield
    if find_spec("llvmlite") is not None:
        llvm.register(library_path())


@pytest.mark.usefixtures("compiler")
class TestGroups:
    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_random_groups(self, data):
        unary, binary = UNARY + UNARY_OF_FLOATS + TILED_UNARY, BINARY + BINARY_OF_FLOATS + TILED_BINARY
        function = random_function(data.draw, unary, binary)
        dtype = data.draw(st.sampled_from(FLOATS))
        x, y = values(dtype), values(dtype, seed=1)
        made, _ = compiled(function, x, y)
        assert all(map(identical, made(x, y), function(x, y)))

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_broadcast_operands(self, data):
        function = random_function(data.draw, UNARY, BINARY)
        dtype = data.draw(st.sampled_from(FLOATS))
        sizes = data.draw(st.sampled_from([(300, 257), (9, 8192), (70_000, 1), (8, 16, 30, 20), (40, 1, 1800)]))
        x = values(dtype, sizes)
        if len(sizes) == 4 and data.draw(st.booleans()):
            x = x.to(memory_format=candelabra.channels_last)
        if data.draw(st.booleans()):
            x = x.transpose(0, -1)
        kept = [data.draw(st.booleans()) for _ in sizes]
        y = values(dtype, tuple(size if keeps else 1 for size, keeps in zip(x.shape, kept, strict=True)), seed=1)
        if data.draw(st.booleans()):
            y = candelabra.stack([y, y + 1], -1)[..., 0]
        made, _ = compiled(function, x, y)
        assert all(map(identical, made(x, y), function(x, y)))

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_scale_and_shift_are_in_the_group(self, dtype):
        x, scale, shift = values(dtype, (300, 512)), values(dtype, (512,), 1), values(dtype, (512, 2), 2)[:, 0]

        def function(x):
            return F.gelu(x * scale + shift) * 0.5

        made, program = compiled(function, x)
        assert program.group_sizes == [4] and program.compiled_sizes == [4]
        assert identical(made(x), function(x))

    def test_an_operand_is_a_row_and_the_whole(self):
        def function(x):
            return (x * x[:1] + 1) * x[-1:] - x[0, 0]

        x = values(candelabra.float32, (300, 300))
        made, program = compiled(function, x)
        assert program.group_sizes == [4] and identical(made(x), function(x))

    def test_channels_last_images(self):
        x = values(candelabra.float32, (4, 16, 40, 40)).to(memory_format=candelabra.channels_last)
        scale, shift = values(candelabra.float32, (16, 1, 1), 1), values(candelabra.float32, (1, 16, 1, 1), 2)

        def function(x):
            return (x * scale + shift).relu()

        made, program = compiled(function, x)
        assert program.group_sizes == [3] and identical(made(x), function(x))

    def test_what_the_group_writes_is_not_broadcast_in_it(self):
        def function(x):
            y = x + 1
            row = y[:1]
            z = x * row
            return z * 2 - row

        x = values(candelabra.float32, (300, 300))
        made, _ = compiled(function, x)
        assert identical(made(x), function(x))

    def test_masks_and_results_of_several_dtypes(self):
        def function(x, y):
            mask = (x > y) & ~x.isnan()
            chosen = candelabra.where(mask, x.exp(), y)
            return chosen.tanh(), mask, chosen.double() * 2

        x, y = values(candelabra.float32), values(candelabra.float32, seed=1)
        made, _ = compiled(function, x, y)
        assert all(map(identical, made(x, y), function(x, y)))

    @pytest.mark.parametrize("numel", [65_536, 65_537, 65_536 + 1023, 9_000_001])
    def test_ends_of_tensors_and_streaming_stores(self, numel):
        def function(x):
            y = (x * 2 + 1).sigmoid() - x
            return y, y * 0.5

        x = candelabra.linspace(-4, 4, numel)
        made, program = compiled(function, x)
        assert program.compiled_sizes == program.group_sizes
        assert all(map(identical, made(x), function(x)))

    def test_results_in_the_memory_of_operands(self):
        def function(x):
            y = x * 2
            y.exp_().add_(x).mul_(y)
            x.mul_(3).tanh_()
            return y

        first = values(candelabra.float32)
        second = first.clone()
        made, _ = compiled(function, first.clone())
        assert identical(made(first), function(second)) and identical(first, second)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_threads(self, threads):
        def function(x):
            return (x * 2 + 1).exp() - x.sin()

        before = candelabra.get_num_threads()
        candelabra.set_num_threads(threads)
        try:
            x = candelabra.randn(1 << 20)
            made, program = compiled(function, x)
            assert program.compiled_sizes == [5] and made(x).equal(function(x))
        finally:
            candelabra.set_num_threads(before)

    def test_more_operators_than_one_chain_takes(self):
        def function(x):
            for _ in range(30):
                x = (x * 0.5).sin() + 0.1
            return x

        x = candelabra.randn(70_000)
        made, _ = compiled(function, x)
        assert made(x).equal(function(x))
