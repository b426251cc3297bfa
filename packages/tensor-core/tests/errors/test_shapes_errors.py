"""What shape rules refuse, with the exception types and messages of PyTorch, and the shapes, dtypes
and layouts they give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import candelabra as c


@pytest.fixture(scope="module", autouse=True)
def backend() -> None:
    try:
        c.empty(1, device="cpu")
    except c.BackendError as error:
        pytest.skip(f"no cpu backend is installed: {error}")


def f(*sizes: int, dtype: Any = None) -> c.Tensor:
    return c.ones(sizes, dtype=dtype)


def i(*sizes: int) -> c.Tensor:
    return c.zeros(sizes, dtype=c.int64)


def b(*sizes: int) -> c.Tensor:
    return c.ones(sizes, dtype=c.bool)


def z(*sizes: int) -> c.Tensor:
    return c.ones(sizes, dtype=c.complex64)


def d(*sizes: int) -> c.Tensor:
    return c.ones(sizes, dtype=c.float64)


Case = tuple[str, Callable[[], Any], type[Exception], str]

ELEMENTWISE: list[Case] = [
    ("broadcast", lambda: f(2, 3) + f(2, 4), RuntimeError, r"^The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1; add\(\): shapes \[2, 3\] and \[2, 4\]"),
    ("broadcast ranks", lambda: f(3) * f(2, 4), RuntimeError, r"tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"),
    ("gelu formula", lambda: c.ops.gelu(f(2), approximate="erf"), RuntimeError, r"gelu\(\): approximate argument must be either none or tanh, but got 'erf'"),
    ("gelu_backward formula", lambda: c.ops.gelu_backward(f(2), f(2), approximate="erf"), RuntimeError, r"gelu_backward\(\): approximate argument must be either none or tanh"),
    ("round decimals", lambda: c.round(i(2), decimals=1), NotImplementedError, "not implemented for 'Long'"),
    ("power overflow", lambda: i(2).to(c.int8) ** 200, RuntimeError, "value cannot be converted to type int8_t without overflow"),
    ("in-place shape", lambda: f(3).add_(f(2, 3)), RuntimeError, r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"),
    ("in-place dtype", lambda: i(2).add_(f(2)), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ("in-place division", lambda: i(2).div_(i(2)), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ("in-place exp", lambda: i(2).exp_(), RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ("in-place abs", lambda: z(2).abs_(), RuntimeError, "In-place abs is not supported for complex tensors"),
    ("negate bool", lambda: -b(2), RuntimeError, r"Negation, the `-` operator, on a bool tensor is not supported.*logical_not"),
    ("plus bool", lambda: c.positive(b(2)), RuntimeError, r"The `\+` operator, on a bool tensor is not supported"),
    ("subtract bools", lambda: b(2) - b(2), RuntimeError, "with two bool tensors is not supported.*logical_xor"),
    ("subtract from bool", lambda: b(2) - 1.0, RuntimeError, "with a bool tensor is not supported.*logical_not"),
    ("subtract bool", lambda: f(2) - b(2), RuntimeError, "with a bool tensor is not supported.*logical_not"),
    ("alpha of integers", lambda: c.add(i(2), i(2), alpha=1.5), RuntimeError, "argument alpha must not be a floating point number"),
    ("alpha bool", lambda: c.add(i(2), i(2), alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results"),
    ("alpha complex", lambda: c.add(f(2), f(2), alpha=1j), RuntimeError, "argument alpha must not be a complex number"),
    ("relu bool", lambda: c.relu(b(2)), RuntimeError, "Boolean inputs not supported for relu"),
    ("sign complex", lambda: c.sign(z(2)), NotImplementedError, "sgn"),
    ("floor complex", lambda: c.floor(z(2)), NotImplementedError, "floor is not supported for complex inputs"),
    ("isposinf complex", lambda: c.isposinf(z(2)), RuntimeError, "isposinf does not support complex inputs"),
    ("invert floats", lambda: c.bitwise_not(f(2)), NotImplementedError, "\"bitwise_not.*\" not implemented for 'Float'"),
    ("and floats", lambda: i(2) & f(2), NotImplementedError, "\"bitwise_and.*\" not implemented for 'Float'"),
    ("order complex", lambda: z(2) < 1, NotImplementedError, "\"lt.*\" not implemented for 'ComplexFloat'"),
    ("maximum complex", lambda: c.maximum(z(2), z(2)), RuntimeError, "maximum not implemented for complex tensors"),
    ("negative power", lambda: i(2) ** -1, RuntimeError, "Integers to negative integer powers are not allowed."),
    ("power of bools", lambda: b(2) ** b(2), NotImplementedError, "\"pow\" not implemented for 'Bool'"),
    ("rounding mode", lambda: c.div(f(2), f(2), rounding_mode="up"), RuntimeError, "expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'"),
    ("heaviside dtypes", lambda: c.heaviside(f(2), d(2)), RuntimeError, "not yet implemented for tensors with different dtypes"),
    ("hypot of integers", lambda: c.hypot(i(2), i(2)), NotImplementedError, "\"hypot.*\" not implemented for 'Long'"),
    ("where condition", lambda: c.where(f(2), 1, 2), RuntimeError, "expected condition to be a boolean tensor, but got a tensor with dtype Float"),
    ("clamp without bounds", lambda: c.clamp(f(2)), RuntimeError, "At least one of 'min' or 'max' must not be None"),
    ("clamp complex", lambda: c.clamp(z(2), 0, 1), NotImplementedError, "clamp is not supported for complex types"),
    ("clamp overflow", lambda: c.clamp(c.ones(2, dtype=c.uint8), -1, 300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
    ("lerp dtypes", lambda: c.lerp(f(2), d(2), 0.5), RuntimeError, "expected dtype float for `end` but got dtype double"),
    ("lerp of integers", lambda: c.lerp(i(2), i(2), 0.5), NotImplementedError, "\"lerp.*\" not implemented for 'Long'"),
    ("addcdiv of integers", lambda: c.addcdiv(i(2), i(2), i(2)), RuntimeError, "Integer division with addcdiv is no longer supported"),
    ("complex dtypes", lambda: c.complex(f(2), d(2)), RuntimeError, "Expected object of scalar type Float but got scalar type Double for second argument"),
    ("complex of integers", lambda: c.complex(i(2), i(2)), RuntimeError, "Expected both inputs to be Half, Float or Double tensors but got Long and Long"),
]  # fmt: skip

REDUCTIONS: list[Case] = [
    ("dim range", lambda: f(2, 3).sum(5), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"),
    ("dim of a number", lambda: f().sum(1), IndexError, r"expected to be in range of \[-1, 0\], but got 1"),
    ("dim twice", lambda: f(2, 3).sum((0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    ("mean of integers", lambda: i(2).mean(), RuntimeError, r"mean\(\): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"),
    ("mean as integers", lambda: f(2).mean(dtype=c.int64), RuntimeError, "Optional dtype must be either a floating point or complex dtype. Got: Long"),
    ("amax of nothing", lambda: f(0, 3).amax(), RuntimeError, r"amax\(\): Expected reduction dim to be specified for input.numel\(\) == 0"),
    ("amax of an empty dim", lambda: f(0, 3).amax(0), IndexError, r"amax\(\): Expected reduction dim 0 to have non-zero size"),
    ("max of an empty dim", lambda: c.ops.max_with_indices(f(0, 3), 0), IndexError, r"max\(\): Expected reduction dim 0 to have non-zero size"),
    ("max complex", lambda: c.ops.max_with_indices(z(2), 0), RuntimeError, r"max\(\): does not support complex input"),
    ("argmax of nothing", lambda: f(0, 3).argmax(), IndexError, r"argmax\(\): Expected reduction dim to be specified"),
    ("argmax bool", lambda: b(2).argmax(), RuntimeError, "does not support bool input"),
    ("var of integers", lambda: i(2).var(), RuntimeError, "std and var only support floating point and complex dtypes"),
    ("norm of integers", lambda: c.ops.linalg_vector_norm(i(2)), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    ("infinity norm of nothing", lambda: c.ops.linalg_vector_norm(f(0), float("inf")), RuntimeError, "cannot compute the inf norm on an empty tensor"),
    ("cumsum dim", lambda: f(2).cumsum(1), IndexError, "Dimension out of range"),
    ("sort dim", lambda: f(2).sort(2), IndexError, "Dimension out of range"),
    ("sort complex", lambda: z(2).sort(), RuntimeError, "complex"),
    ("topk too many", lambda: f(2).topk(3), RuntimeError, "selected index k out of range"),
    ("topk of a number", lambda: f().topk(2), RuntimeError, "selected index k out of range"),
    ("softmax of integers", lambda: c.softmax(i(2), 0), NotImplementedError, "\"softmax.*\" not implemented for 'Long'"),
    ("softmax dim", lambda: c.softmax(f(2), 3), IndexError, "Dimension out of range"),
]  # fmt: skip

JOINING: list[Case] = [
    ("cat nothing", lambda: c.cat([]), ValueError, "expected a non-empty list of Tensors"),
    ("cat numbers", lambda: c.cat([f(), f(2)]), RuntimeError, r"zero-dimensional tensor \(at position 0\) cannot be concatenated"),
    ("cat ranks", lambda: c.cat([f(2, 3), f(2)]), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
    ("cat sizes", lambda: c.cat([f(2, 3), f(2, 4)]), RuntimeError, "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list."),
    ("stack sizes", lambda: c.stack([f(2), f(3)]), RuntimeError, r"stack expects each tensor to be equal size, but got \[2\] at entry 0 and \[3\] at entry 1"),
    ("flip twice", lambda: c.flip(f(2, 3), [0, 0]), RuntimeError, "dim 0 appears multiple times"),
    ("tril of a vector", lambda: c.tril(f(2)), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
]  # fmt: skip

INDEXING: list[Case] = [
    ("gather dtype", lambda: f(2, 3).gather(0, f(2, 3)), RuntimeError, r"gather\(\): Expected dtype int32/int64 for index"),
    ("gather rank", lambda: f(2, 3).gather(0, i(2)), RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
    ("gather size", lambda: f(2, 3).gather(1, i(3, 3)), RuntimeError, r"expected index \[3, 3\] to be no larger than self \[2, 3\] apart from dimension 1"),
    ("scatter dtype", lambda: f(2, 3).scatter(0, i(2, 3), d(2, 3)), RuntimeError, r"Expected self.dtype to be equal to src.dtype"),
    ("scatter size", lambda: f(2, 3).scatter(1, i(2, 4), f(2, 3)), RuntimeError, r"Expected index \[2, 4\] to be no larger than self \[2, 3\] apart from dimension 1 and to be no larger size than src \[2, 3\]"),
    ("scatter rank", lambda: f(2, 3).scatter(0, i(2), f(2, 3)), RuntimeError, "Index tensor must have the same number of dimensions as self tensor"),
    ("scatter complex", lambda: f(2, 3).scatter(1, i(2, 3), 1j), RuntimeError, "value cannot be converted to type float without overflow"),
    ("index_select matrix", lambda: f(2, 3).index_select(0, i(2, 3)), IndexError, "Index is supposed to be a vector"),
    ("index_select dtype", lambda: f(2, 3).index_select(0, f(2)), RuntimeError, "Expected dtype int32"),
    ("index_add dtype", lambda: f(2, 3).index_add(0, i(2), d(2, 3)), RuntimeError, r"self \(Float\) and source \(Double\) must have the same scalar type"),
    ("index_add count", lambda: f(2, 3).index_add(0, i(3), f(2, 3)), RuntimeError, r"Number of indices \(3\) should be equal to source.size\(dim\): \(2\), for dim: 0"),
    ("index_add shape", lambda: f(2, 3).index_add(0, i(2), f(2, 4)), RuntimeError, r"excluding the specified dimension. Got self.shape = \[2, 3\] source.shape = \[2, 4\]"),
    ("index_copy rank", lambda: f(2, 3).index_copy(0, i(2), f(2)), IndexError, r"Source dimensionality \(1\), destination dimensionality \(2\)"),
    ("index_copy index", lambda: f(2, 3).index_copy(0, f(2), f(2, 3)), RuntimeError, "Expected a long tensor for index, but got Float"),
    ("index_fill index", lambda: f(2, 3).index_fill(0, f(2), 1), IndexError, "Expected dtype int64 for index"),
    ("too many indices", lambda: c.ops.index(f(2, 3), [i(2), i(2), i(2)]), IndexError, "too many indices for tensor of dimension 2"),
    ("mask shape", lambda: c.ops.index(f(2, 3), [b(3)]), IndexError, r"The shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[2, 3\] at index 0"),
    ("index dtype", lambda: c.ops.index(f(2, 3), [f(2)]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ("index broadcast", lambda: c.ops.index(f(2, 3), [i(2), i(3)]), IndexError, r"could not be broadcast together with shapes \[2\], \[3\]"),
    ("index into nothing", lambda: c.ops.index(f(0, 3), [i(2)]), IndexError, "out of bounds for dimension with size 0"),
    ("index_put shape", lambda: f(2, 3).index_put([i(2)], f(5)), RuntimeError, r"value tensor of shape \[5\] cannot be broadcast to indexing result of shape \[2, 3\]"),
    ("index_put dtype", lambda: f(2, 3).index_put([i(2)], d(2, 3)), RuntimeError, "Index put requires the source and destination dtypes match, got Float for the destination and Double for the source"),
    ("take from nothing", lambda: c.take(f(0), i(2)), IndexError, "tried to take from an empty tensor"),
    ("masked_fill mask", lambda: f(2).masked_fill(f(2), 1), RuntimeError, "only supports boolean masks"),
    ("masked_fill value", lambda: f(2).masked_fill(b(2), f(2)), RuntimeError, r"only supports a 0-dimensional value tensor, but got tensor with 1 dimension\(s\)"),
    ("masked_scatter dtype", lambda: f(2).masked_scatter(b(2), d(2)), RuntimeError, "expected self and source to have same dtypes"),
    ("masked_select mask", lambda: c.masked_select(f(2), f(2)), RuntimeError, "expected BoolTensor for mask"),
    ("embedding indices", lambda: c.ops.embedding(f(4, 3), f(2)), RuntimeError, "'indices'"),
    ("embedding weight", lambda: c.ops.embedding(f(4), i(2)), RuntimeError, "'weight' must be 2-D"),
]  # fmt: skip

PRODUCTS: list[Case] = [
    ("mm shapes", lambda: c.mm(f(2, 3), f(4, 5)), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
    ("mm dtypes", lambda: c.mm(f(2, 3), d(3, 4)), RuntimeError, r"^expected m1 and m2 to have the same dtype, but got: float != double; mm\(\).*\.to\("),
    ("mm ranks", lambda: c.mm(f(2), f(2, 3)), RuntimeError, "self must be a matrix"),
    ("bmm ranks", lambda: c.bmm(f(2, 3), f(2, 3)), RuntimeError, "batch1 must be a 3D tensor"),
    ("bmm shapes", lambda: c.bmm(f(2, 3, 4), f(2, 5, 4)), RuntimeError, r"Expected size for first two dimensions of batch2 tensor to be: \[2, 4\] but got: \[2, 5\]"),
    ("dot ranks", lambda: c.dot(f(2, 3), f(2)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
    ("dot sizes", lambda: c.dot(f(2), f(3)), RuntimeError, "to have the same number of elements, but got 2 and 3 elements respectively"),
    ("dot dtypes", lambda: c.dot(f(2), d(2)), RuntimeError, "expected both vectors to have same dtype, but found Float and Double"),
    ("lstsq driver", lambda: c.ops.linalg_lstsq_driver(f(3, 2), f(3, 1), 1e-6, "qr"), RuntimeError, r"should be one of \(gels, gelsy, gelsd, gelss\), but got qr"),
    ("histc bins", lambda: c.ops._histc(f(2), 2**31, 0.0, 1.0), RuntimeError, "2147483648 bins are too many"),
    ("addmm shapes", lambda: c.addmm(f(2), f(2, 3), f(2, 3)), RuntimeError, r"cannot be multiplied \(2x3 and 2x3\)"),
    ("addmm self", lambda: c.addmm(f(4), f(2, 3), f(3, 2)), RuntimeError, r"The expanded size of the tensor \(2\) must match the existing size \(4\) at non-singleton dimension 1"),
    ("addmm dtype", lambda: c.addmm(d(2), f(2, 3), f(3, 2)), RuntimeError, "self and mat2 must have the same dtype, but got Double and Float"),
]  # fmt: skip

LAYERS: list[Case] = [
    ("nll target dtype", lambda: c.ops.nll_loss_forward(f(2, 3), f(2), None, 1, -100), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ("nll batch", lambda: c.ops.nll_loss_forward(f(2, 3), i(3), None, 1, -100), ValueError, r"Expected input batch_size \(2\) to match target batch_size \(3\)"),
    ("nll weight", lambda: c.ops.nll_loss_forward(f(2, 3), i(2), f(2), 1, -100), RuntimeError, "weight tensor should be defined either for all 3 classes or no classes"),
    ("conv channels", lambda: c.ops.convolution(f(2, 3, 5, 5), f(4, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1), RuntimeError, r"Given groups=1, weight of size \[4, 2, 3, 3\], expected input\[2, 3, 5, 5\] to have 2 channels, but got 3 channels instead"),
    ("conv kernel", lambda: c.ops.convolution(f(2, 3, 5, 5), f(4, 3, 3, 3), None, [1, 1], [0, 0], [3, 3], 1), RuntimeError, r"Calculated padded input size per channel: \(5 x 5\). Kernel size: \(7 x 7\)"),
    ("conv stride", lambda: c.ops.convolution(f(2, 3, 5), f(4, 3, 3), None, [0], [0], [1], 1), RuntimeError, "non-positive stride is not supported"),
    ("conv padding", lambda: c.ops.convolution(f(2, 3, 5), f(4, 3, 3), None, [1], [-1], [1], 1), RuntimeError, "negative padding is not supported"),
    ("conv groups", lambda: c.ops.convolution(f(2, 3, 5), f(4, 1, 3), None, [1], [0], [1], 3), RuntimeError, "expected weight to be divisible by 3 at dimension 0"),
    ("conv bias", lambda: c.ops.convolution(f(2, 3, 5), f(4, 3, 3), f(3), [1], [0], [1], 1), RuntimeError, "expected bias to be 1-dimensional with 4 elements"),
    ("conv dtype", lambda: c.ops.convolution(f(2, 3, 5), d(4, 3, 3), None, [1], [0], [1], 1), RuntimeError, r"Input type \(float\) and weight type \(double\) should be the same"),
    ("conv lists", lambda: c.ops.convolution(f(2, 3, 5, 5), f(4, 3, 3, 3), None, [1, 1, 1], [0], [1], 1), RuntimeError, "expected stride to be a single integer value or a list of 2 values"),
    ("conv dims", lambda: c.ops.convolution(f(1, 1, 3, 3, 3, 3), f(1, 1, 2, 2, 2, 2), None, [1], [0], [1], 1), RuntimeError, r"conv4d\(\): convolutions have three spatial dimensions at most, but got 4"),
    ("conv backward dims", lambda: c.ops.convolution_backward_weight(f(1, 1, 2, 2, 2, 2), f(1, 1, 3, 3, 3, 3), [1, 1, 2, 2, 2, 2], [1], [0], [1], 1), RuntimeError, "three spatial dimensions at most, but got 4"),
    ("conv overflow", lambda: c.ops.convolution(f(2, 3, 5), f(4, 3, 3), None, [1], [0], [2**63 - 1], 1), RuntimeError, "dilation=.* is out of range"),
    ("pool overflow", lambda: c.ops.max_pool(f(1, 1, 5), [2**62], [], [2**61], [1], False), RuntimeError, "is out of range"),
    ("pool padding", lambda: c.ops.max_pool(f(1, 1, 5, 5), [3, 3], [], [2, 2], [1, 1], False), RuntimeError, "pad should be at most half of effective kernel size, but got pad=2, kernel_size=3 and dilation=1"),
    ("pool size", lambda: c.ops.max_pool(f(2, 3, 5, 5), [7, 7], [], [0, 0], [1, 1], False), RuntimeError, r"Given input size: \(3x5x5\). Calculated output size: \(3x0x0\). Output size is too small"),
    ("pool stride", lambda: c.ops.max_pool(f(1, 1, 5, 5), [3, 3], [0, 0], [0, 0], [1, 1], False), RuntimeError, "stride should not be zero"),
    ("pool divisor", lambda: c.ops.avg_pool(f(1, 1, 5, 5), [3, 3], [], [0, 0], False, True, 0), RuntimeError, "divisor must be not zero"),
    ("pool dims", lambda: c.ops.avg_pool(f(1, 1, 3, 3, 3, 3), [2], [], [0], False, True, None), RuntimeError, r"expected a batch \(N, C, spatial...\) of 3 to 5 dimensions, but got shape \[1, 1, 3, 3, 3, 3\]"),
    ("pool backward dims", lambda: c.ops.adaptive_avg_pool_backward(f(1, 1, 1, 1, 1, 1), [1, 1, 2, 2, 2, 2]), RuntimeError, "of 3 to 5 dimensions"),
    ("pool backward divisor", lambda: c.ops.avg_pool_backward(f(1, 1, 1), [1, 1, 3], [3], [], [0], False, True, 0), RuntimeError, "divisor must be not zero"),
    ("pool backward dtype", lambda: c.ops.max_pool_backward(i(1, 1, 1), i(1, 1, 1), [1, 1, 2]), NotImplementedError, "\"max_pool_backward\" not implemented for 'Long'"),
    ("upsample mode", lambda: c.ops._upsample(f(1, 1, 2), [4], [], "best", False, False), ValueError, "mode must be .* but got \"best\""),
    ("adaptive pool", lambda: c.ops.adaptive_avg_pool(f(1, 1, 0, 5), [2, 2]), RuntimeError, r"non-zero size for non-batch dimensions, but input has sizes \[1, 1, 0, 5\] with dimension 2 being empty"),
    ("dropout p", lambda: c.ops.native_dropout(f(2), 1.5), ValueError, "dropout probability has to be between 0 and 1"),
    ("uniform bounds", lambda: f(2).uniform_(2, 1), RuntimeError, r"uniform_ expects to return a \[from, to\) range, but found from=2 > to=1"),
    ("uniform integers", lambda: i(2).uniform_(), NotImplementedError, "not implemented for 'Long'"),
    ("exponential rate", lambda: f(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0"),
    ("random range", lambda: c.ops.random_range_(f(2), 3, 3), RuntimeError, "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"),
    ("normal std", lambda: f(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    ("bernoulli p", lambda: f(2).bernoulli_(2), RuntimeError, r"bernoulli_ expects p to be in \[0, 1\], but got p=2"),
    ("fill complex", lambda: f(2).fill_(1j), RuntimeError, "value cannot be converted to type float without overflow"),
]  # fmt: skip

NORMALIZATION: list[Case] = [
    ("batch norm weight", lambda: c.ops.native_batch_norm(f(2, 3), f(2), None, None, None, True, 0.1, 1e-5), RuntimeError, "weight should contain 3 elements not 2"),
    ("batch norm running", lambda: c.ops.native_batch_norm(f(2, 3), None, None, f(2), f(2), True, 0.1, 1e-5), RuntimeError, "running_mean should contain 3 elements not 2"),
    ("batch norm eval", lambda: c.ops.native_batch_norm(f(2, 3), None, None, None, None, False, 0.1, 1e-5), RuntimeError, "running_mean must be defined in evaluation mode"),
    ("batch norm variance", lambda: c.ops.native_batch_norm(f(2, 3), None, None, f(3), None, False, 0.1, 1e-5), RuntimeError, "running_var must be defined in evaluation mode"),
    ("batch norm variance size", lambda: c.ops.native_batch_norm(f(2, 3), None, None, f(3), f(2), False, 0.1, 1e-5), RuntimeError, "running_var should contain 3 elements not 2"),
    ("layer norm shape", lambda: c.ops.native_layer_norm(f(2, 3), [4], None, None, 1e-5), RuntimeError, r"Given normalized_shape=\[4\], expected input with shape \[\*, 4\], but got input of size\[2, 3\]"),
    ("layer norm weight", lambda: c.ops.native_layer_norm(f(2, 3), [3], f(2), None, 1e-5), RuntimeError, r"Expected weight to be of same shape as normalized_shape, but got weight of shape \[2\] and normalized_shape = \[3\]"),
    ("group norm groups", lambda: c.ops.native_group_norm(f(2, 3, 4), None, None, 2, 1e-5), RuntimeError, r"divisible by num_groups, but got input of shape \[2, 3, 4\] and num_groups=2"),
    ("group norm weight", lambda: c.ops.native_group_norm(f(2, 3, 4), f(2), None, 3, 1e-5), RuntimeError, "Expected weight to be a vector of size equal to the number of channels in input"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        pytest.param(*case[1:], id=case[0])
        for case in ELEMENTWISE + REDUCTIONS + JOINING + INDEXING + PRODUCTS + LAYERS + NORMALIZATION
    ],
)
def test_refused(call: Callable[[], Any], exception: type[Exception], message: str) -> None:
    with pytest.raises(exception, match=message) as caught:
        call()
    assert type(caught.value) is exception


def test_numel_overflow() -> None:
    wide = c.empty(1).expand(2**40, 1)
    tall = c.empty(1).expand(1, 2**40)
    with pytest.raises(RuntimeError, match="integer multiplication overflow"):
        wide + tall


def test_optimizer_lists() -> None:
    options = (0.1, 0.0, 0.9, 0.0, False, False, True)
    with pytest.raises(RuntimeError, match="expected one entry for each of 1 parameters in list 1, but got 2"):
        c.ops._fused_sgd_([f(2)], [f(2), f(2)], [f(2)], *options)
    with pytest.raises(RuntimeError, match=r"entry 0 of list 1 is of shape \[3\].*but its parameter of shape \[2\]"):
        c.ops._fused_sgd_([f(2)], [f(3)], [f(2)], *options)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        c.ops._fused_sgd_([f(1).expand(2)], [f(2)], [f(2)], *options)


# ---- shapes and dtypes that are given

RESULTS: list[tuple[str, Callable[[], Any], tuple[int, ...], Any]] = [
    ("broadcast", lambda: f(2, 1, 3) + f(4, 1), (2, 4, 3), c.float32),
    ("broadcast empty", lambda: f(0, 1) + f(3), (0, 3), c.float32),
    ("number first", lambda: 1 - f(2), (2,), c.float32),
    ("zero-dimensional", lambda: f() + f(), (), c.float32),
    ("integer division", lambda: i(2) / 2, (2,), c.float32),
    ("comparison", lambda: f(2, 1) < f(3), (2, 3), c.bool),
    ("exp of integers", lambda: c.exp(i(2)), (2,), c.float32),
    ("abs of complex", lambda: c.abs(z(2)), (2,), c.float32),
    ("square of bool", lambda: c.square(b(2)), (2,), c.int64),
    ("power of bool", lambda: b(2) ** 2, (2,), c.int64),
    ("where of numbers", lambda: c.where(b(2), 1, 0), (2,), c.int64),
    ("where of floats", lambda: c.where(b(2), 1.0, 0), (2,), c.float32),
    ("clamp promotes", lambda: c.clamp(i(2), 0.5), (2,), c.float32),
    ("sum of bools", lambda: b(2, 3).sum(), (), c.int64),
    ("sum keepdim", lambda: f(2, 3, 4).sum((0, 2), keepdim=True), (1, 3, 1), c.float32),
    ("sum of a dim", lambda: f(2, 3, 4).sum(-2), (2, 4), c.float32),
    ("sum without dims", lambda: f(2, 3).sum(()), (), c.float32),
    ("sum of an empty dim", lambda: f(2, 0).sum(1), (2,), c.float32),
    ("sum as dtype", lambda: f(2).sum(dtype=c.float64), (), c.float64),
    ("prod", lambda: i(2, 3).prod(0), (3,), c.int64),
    ("argmax of all", lambda: f(2, 3).argmax(), (), c.int64),
    ("argmax keepdim", lambda: f(2, 3).argmax(keepdim=True), (1, 1), c.int64),
    ("argmax of a number", lambda: f().argmax(0), (), c.int64),
    ("any", lambda: f(2, 3).any((0,)), (3,), c.bool),
    ("cumsum", lambda: b(3).cumsum(0), (3,), c.int64),
    ("cumsum of a number", lambda: f().cumsum(0), (), c.float32),
    ("sort", lambda: f(2, 3).sort(0)[1], (2, 3), c.int64),
    ("sort of a number", lambda: f().sort()[0], (), c.float32),
    ("topk", lambda: f(2, 3).topk(2)[0], (2, 2), c.float32),
    ("softmax of a number", lambda: c.softmax(f(), 0), (), c.float32),
    ("softmax dtype", lambda: c.softmax(i(2), 0, dtype=c.float64), (2,), c.float64),
    ("cat promotes", lambda: c.cat([f(2), i(1), z(3)], -1), (6,), c.complex64),
    ("cat legacy empty", lambda: c.cat([f(0), f(2, 3)]), (2, 3), c.float32),
    ("gather", lambda: f(2, 3).gather(1, i(2, 1)), (2, 1), c.float32),
    ("gather int32", lambda: f(2, 3).gather(1, i(2, 1).to(c.int32)), (2, 1), c.float32),
    ("gather from a number", lambda: f().gather(0, i(2)), (2,), c.float32),
    ("gather nothing", lambda: f(2, 3).gather(0, i(0)), (0,), c.float32),
    ("scatter", lambda: f(2, 3).scatter(1, i(1, 2), 5.0), (2, 3), c.float32),
    ("scatter nothing", lambda: f(2, 3).scatter(1, i(0), f(0)), (2, 3), c.float32),
    ("index_select", lambda: f(2, 3).index_select(1, i(5)), (2, 5), c.float32),
    ("index_select of a number", lambda: f().index_select(0, i(1)), (), c.float32),
    ("index", lambda: c.ops.index(f(4, 5, 6), [i(2, 1), i(3)]), (2, 3, 6), c.float32),
    ("index adjacent", lambda: c.ops.index(f(4, 5, 6), [None, i(2), i(2)]), (4, 2), c.float32),
    ("index apart", lambda: c.ops.index(f(4, 5, 6), [i(2), None, i(2)]), (2, 5), c.float32),
    ("index mask", lambda: c.ops.index(f(4, 5, 6), [None, b(5, 6)]), (4, 30), c.float32),
    ("index_put", lambda: f(4, 5).index_put([i(2)], f(1, 1, 5)), (4, 5), c.float32),
    ("masked_fill broadcasts", lambda: f(3).masked_fill(b(2, 1), 0), (2, 3), c.float32),
    ("masked_select", lambda: c.masked_select(f(3), b(2, 1)), (6,), c.float32),
    ("nonzero", lambda: c.nonzero(f(2, 3)), (6, 2), c.int64),
    ("embedding", lambda: c.ops.embedding(f(4, 3), i(2, 5)), (2, 5, 3), c.float32),
    ("mm", lambda: c.mm(f(2, 3), f(3, 4)), (2, 4), c.float32),
    ("mm empty", lambda: c.mm(f(2, 0), f(0, 4)), (2, 4), c.float32),
    ("bmm", lambda: c.bmm(f(5, 2, 3), f(5, 3, 4)), (5, 2, 4), c.float32),
    ("addmm", lambda: c.addmm(f(4), f(2, 3), f(3, 4)), (2, 4), c.float32),
    ("linear of a vector", lambda: c.ops.linear(f(3), f(4, 3)), (4,), c.float32),
    ("linear batches", lambda: c.ops.linear(f(2, 5, 3), f(4, 3), f(4)), (2, 5, 4), c.float32),
    ("conv", lambda: c.ops.convolution(f(2, 4, 7, 8), f(6, 2, 3, 3), f(6), [2, 1], [1, 0], [1, 2], 2), (2, 6, 4, 4), c.float32),
    ("conv transposed", lambda: c.ops.convolution_backward_input(f(2, 6, 4, 4), f(6, 2, 3, 3), [2, 4, 7, 8], [2, 1], [1, 0], [1, 2], 2), (2, 4, 7, 8), c.float32),
    ("pool ceil", lambda: c.ops.max_pool(f(2, 3, 6, 6), [3, 3], [2, 2], [0, 0], [1, 1], True)[0], (2, 3, 3, 3), c.float32),
    ("pool default stride", lambda: c.ops.avg_pool(f(2, 3, 6), [2], [], [0], False, True, None), (2, 3, 3), c.float32),
    ("adaptive pool", lambda: c.ops.adaptive_max_pool(f(2, 3, 6, 5), [4, 1])[1], (2, 3, 4, 1), c.int64),
    ("nll of one", lambda: c.ops.nll_loss_forward(f(3), i(), None, 0, -100)[0], (), c.float32),
    ("nll images", lambda: c.ops.nll_loss_forward(f(2, 3, 4), i(2, 4), None, 0, -100)[0], (2, 4), c.float32),
    ("layer norm statistics", lambda: c.ops.native_layer_norm(f(2, 3, 4), [3, 4], None, None, 1e-5)[1], (2, 1, 1), c.float32),
]  # fmt: skip


@pytest.mark.parametrize(("call", "shape", "dtype"), [pytest.param(*case[1:], id=case[0]) for case in RESULTS])
def test_result(call: Callable[[], Any], shape: tuple[int, ...], dtype: Any) -> None:
    result = call()
    assert tuple(result.shape) == shape
    assert result.dtype == dtype


def test_layouts_are_kept() -> None:
    transposed = f(3, 2).t()
    assert (transposed + transposed).stride() == (1, 2)
    assert (transposed + 1).stride() == (1, 2)
    assert c.exp(transposed).stride() == (1, 2)
    assert (transposed + f(2, 3)).stride() == (1, 2)  # the first operand decides
    assert (f(2, 3) + transposed).stride() == (3, 1)
    image = f(2, 3, 4, 5).contiguous(memory_format=c.channels_last)
    assert (image * image).stride() == image.stride()
    assert (image * f(3, 1, 1)).stride() == image.stride()
    assert c.ops.max_pool(image, [2, 2], [], [0, 0], [1, 1], False)[0].stride() == (12, 1, 6, 3)
    assert f(2, 6)[:, ::2].exp().stride() == (3, 1)


def test_in_place_computes_in_the_promoted_dtype() -> None:
    small = c.tensor([1, 2], dtype=c.int8)
    small.add_(c.tensor([1, 1], dtype=c.int64))
    assert small.dtype == c.int8
    assert small.tolist() == [2, 3]
    single = f(2)
    single.mul_(d(2) * 3)
    assert single.dtype == c.float32
    assert single.tolist() == [3.0, 3.0]
    counts = c.ones(3, dtype=c.int32)
    counts.cumsum_(0)
    assert counts.dtype == c.int32
    assert counts.tolist() == [1, 2, 3]


def test_numbers_wrap_in_unsigned_tensors() -> None:
    bytes_ = c.ones(2, dtype=c.uint8)
    assert (bytes_ + 300).tolist() == [45, 45]  # as in PyTorch: 300 is 44 as a uint8
    assert (bytes_ + -1).tolist() == [0, 0]


def test_mask_positions() -> None:
    values = c.arange(12).reshape(3, 4)
    mask = values > 4
    assert c.ops.index(values, [mask]).tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert c.ops.index(values, [None, c.tensor([True, False, False, True])]).tolist() == [[0, 3], [4, 7], [8, 11]]
    values.index_put_([mask], c.tensor(0))
    assert values.tolist() == [[0, 1, 2, 3], [4, 0, 0, 0], [0, 0, 0, 0]]


def test_warns_of_too_few_degrees_of_freedom() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert f(1).var().isnan().item()


def test_decompositions_ask_the_rule_what_is_wrong() -> None:
    shuffle = c.ops.pixel_shuffle
    x = c.zeros(3, 2, 2)
    with pytest.raises(RuntimeError, match="divisible by the square of upscale_factor") as called:
        shuffle(x, 2)
    with pytest.raises(RuntimeError) as checked:
        shuffle.check(x, 2)
    assert str(checked.value) == str(called.value)
    assert shuffle.check(c.zeros(4, 2, 2), 2) is None
    with pytest.raises(RuntimeError) as decomposed:
        c.composite.movement.joining.pixel_shuffle(x, 2)
    assert str(decomposed.value) == str(called.value)
    with pytest.raises(TypeError, match="pixel_shuffle"):
        shuffle.check(x)
