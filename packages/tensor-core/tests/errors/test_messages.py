"""Messages of common mistakes: the type of PyTorch's exception, and operator, shapes, dtypes and a
way out in the text.
"""

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c


def ones(*size, **options):
    return c.ones(*size, **options)


MISTAKES = {
    "matrix product": (
        lambda: ones(2, 3) @ ones(2, 3),
        RuntimeError,
        r"^mat1 and mat2 shapes .* \(2x3 and 2x3\) in mm\(\)",
    ),
    "matrix product of dtypes": (
        lambda: c.mm(ones(2, 2), ones(2, 2).double()),
        RuntimeError,
        r"float != double; .*\.to\(",
    ),
    "batches of matrices": (
        lambda: c.bmm(ones(2, 3), ones(2, 3)),
        RuntimeError,
        r"bmm\(\): .* must be a 3D tensor, .*\[2, 3\]",
    ),
    "dot": (lambda: c.dot(ones(2), ones(3)), RuntimeError, r"dot\(\): .*\[2\].*\[3\]"),
    "sizes in cat": (
        lambda: c.cat([ones(2, 3), ones(2, 4)]),
        RuntimeError,
        "^Sizes of tensors must match .*Expected size 3 but got size 4",
    ),
    "dimensions in cat": (
        lambda: c.cat([ones(2, 3), ones(2)]),
        RuntimeError,
        r"^Tensors must have same .*\[2, 3\] and \[2\]",
    ),
    "nothing in cat": (lambda: c.cat([]), (RuntimeError, ValueError), "non-empty list"),
    "a number in cat": (lambda: c.cat([ones(2), 3]), TypeError, "element 1 is a int"),
    "sizes in stack": (lambda: c.stack([ones(2), ones(3)]), RuntimeError, "stack expects each tensor to be equal size"),
    "view of a transposed tensor": (lambda: ones(2, 3).t().view(6), RuntimeError, r"\.reshape\("),
    "view of another size": (lambda: ones(2, 3).view(4), RuntimeError, r"shape '\[4\]' is invalid for input of size 6"),
    "index": (lambda: ones(2, 3)[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    "too many indices": (lambda: ones(2, 3)[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    "index of a number": (lambda: ones(())[0], IndexError, r"0-dim tensor. Use `tensor.item\(\)`"),
    "index in a tensor": (lambda: ones(2, 3)[c.tensor([5])], IndexError, "5.*dimension 0 with size 2"),
    "index of text": (lambda: ones(2)["a"], IndexError, r"integers, slices .* \(got str\)"),
    "negative step": (lambda: ones(2)[::-1], ValueError, "step must be greater than zero"),
    "mask": (lambda: ones(2, 3)[c.tensor([True, False, True])], IndexError, r"\[3\].*\[2, 3\]"),
    "broadcasting": (
        lambda: ones(2, 3) + ones(4),
        RuntimeError,
        r"add\(\): shapes \[2, 3\] and \[4\] cannot be broadcast",
    ),
    "broadcasting in place": (lambda: ones(2).add_(ones(3, 2)), RuntimeError, r"add_\(\): .*\[2\].*\[3, 2\]"),
    "promotion in place": (
        lambda: ones(2).long().add_(1.5),
        RuntimeError,
        "Float can't be cast to the desired output type Long",
    ),
    "item of several": (lambda: ones(2, 3).item(), RuntimeError, "with 6 elements cannot be converted to Scalar"),
    "bool of several": (
        lambda: bool(ones(2)),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    "int of several": (lambda: int(ones(2)), ValueError, r"only one element.*\[2\]"),
    "negative size": (lambda: c.zeros(-1), RuntimeError, "negative dimension -1"),
    "65 dimensions": (lambda: c.zeros([1] * 65), RuntimeError, "only tensors with up to 64 dims are supported, not 65"),
    "float as size": (lambda: c.zeros(2.5), TypeError, r"zeros\(\): argument 'size' .* must be .* ints?, not float"),
    "text as dtype": (lambda: c.ones(2, dtype="float32"), TypeError, r"ones\(\): .*candelabra\.float32, not 'float32'"),
    "dtype as device": (lambda: ones(2).to("float32"), RuntimeError, r"'float32' is no device .*candelabra\.float32"),
    "device": (lambda: ones(2).to("nowhere"), RuntimeError, "no backend for device 'nowhere' is installed"),
    "dimension": (lambda: ones(2).sum(5), IndexError, r"expected to be in range of \[-1, 0\], but got 5"),
    "keyword": (
        lambda: ones(2).sum(foo=1),
        TypeError,
        r"sum\(\) got an unexpected keyword argument 'foo'; its schema: sum\(",
    ),
    "missing argument": (
        lambda: c.add(ones(2)),
        TypeError,
        r"add\(\) missing required argument 'other'; its schema: add\(",
    ),
    "missing tensor": (lambda: c.relu(), TypeError, r"relu\(\) missing required argument 'input'"),
    "too many arguments": (lambda: c.relu(ones(2), 1), TypeError, "takes 1 positional argument but 2 were given"),
    "number for a tensor": (
        lambda: c.exp(2.0),
        TypeError,
        r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float",
    ),
    "number for a tensor of a composite": (
        lambda: c.unique(3),
        TypeError,
        r"unique\(\): argument 'input' \(position 1\) .*not int",
    ),
    "number for another tensor": (
        lambda: c.cross(ones(3), 3),
        TypeError,
        r"cross\(\): argument 'other' \(position 2\) .*not int",
    ),
    "number for the argument of a method": (
        lambda: ones(2).view_as(3),
        TypeError,
        r"view_as\(\): argument 'other' \(position 1\)",
    ),
    "number for the tensor of reshape": (
        lambda: c.reshape(3, (1,)),
        TypeError,
        r"reshape\(\): argument 'input' .* not int",
    ),
    "number for the tensor of flatten": (lambda: c.flatten(3), TypeError, r"flatten\(\): argument 'input' .* not int"),
    "number for the tensor of zeros_like": (
        lambda: c.zeros_like(3),
        TypeError,
        r"zeros_like\(\): argument 'input' .* not int",
    ),
    "number for the first matrix": (
        lambda: c.matmul(3, ones(2)),
        TypeError,
        r"matmul\(\): argument 'input' \(position 1\)",
    ),
    "number for the second matrix": (
        lambda: ones(2, 2).matmul(3),
        TypeError,
        r"matmul\(\): argument 'other' \(position 2\)",
    ),
    "two dtypes": (
        lambda: ones(2).to(c.float32, c.float64),
        TypeError,
        r"to\(\) received an invalid combination of arguments - got a second dtype",
    ),
    "equation": (
        lambda: c.einsum(3, ones(2)),
        TypeError,
        r"einsum\(\): argument 'equation' \(position 1\) must be str, not int",
    ),
    "dimension of unique": (lambda: c.unique(ones(2), dim=3), IndexError, r"range of \[-1, 0\], but got 3"),
    "number among tensors": (
        lambda: c.block_diag(ones(2), 3),
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
    ),
    "number in a list of tensors": (
        lambda: c.meshgrid([3], indexing="ij"),
        TypeError,
        "expected Tensor as element 0 in argument 0, but got int",
    ),
    "number in a product": (
        lambda: c.cartesian_prod(3),
        TypeError,
        "expected Tensor as element 0 in argument 0, but got int",
    ),
    "operand": (lambda: ones(2) + "a", TypeError, r"unsupported operand type\(s\) for \+"),
    "mean of integers": (lambda: ones(2).long().mean(), RuntimeError, "could not infer output dtype.*Long"),
    "softmax of integers": (
        lambda: ones(2).long().softmax(0),
        NotImplementedError,
        "\"softmax\" not implemented for 'Long'",
    ),
    "argmax of nothing": (lambda: c.argmax(c.empty(0)), (IndexError, RuntimeError), "argmax"),
    "transpose": (lambda: ones(2, 3).transpose(0, 2), IndexError, r"range of \[-2, 1\], but got 2"),
    "permute": (lambda: ones(2, 3).permute(0), RuntimeError, r"permute\(\): .*input.dim\(\) = 2 .* len\(dims\) = 1"),
    "expand": (
        lambda: ones(2, 3).expand(3, 3),
        RuntimeError,
        r"expanded size of the tensor \(3\).*Tensor sizes: \[2, 3\]",
    ),
    "split": (lambda: ones(2, 3).split([1, 2]), RuntimeError, "split_sizes"),
    "narrow": (lambda: ones(2, 3).narrow(0, 1, 5), RuntimeError, "exceeds dimension size"),
    "gather of floats": (lambda: ones(2, 3).gather(0, ones(2, 3)), RuntimeError, r"gather\(\): .*got Float; .*int64"),
    "gather": (
        lambda: ones(2, 3).gather(0, c.tensor([[5]])),
        RuntimeError,
        r"gather\(\): index 5 .* dimension 0 with size 2",
    ),
    "mask of floats": (
        lambda: ones(2).masked_select(ones(2)),
        RuntimeError,
        "expected BoolTensor for mask, but got Float",
    ),
    "ragged data": (lambda: c.tensor([[1, 2], [3]]), ValueError, "expected sequence of length 2 at dim 1"),
    "text as data": (lambda: c.tensor(["a"]), ValueError, "too many dimensions 'str'"),
    "text after a number": (lambda: c.tensor([0, "a"]), TypeError, r"new\(\): invalid data type 'str'"),
    "dims that are missing": (lambda: ones(2).flip(), TypeError, r"flip\(\) missing required argument 'dims'"),
    "a bool as a dimension": (lambda: ones(2).topk(1, True), TypeError, "argument 'dim' .* must be int, not bool"),
    "shape to prepend": (
        lambda: ones(2, 3).diff(dim=0, prepend=ones(1, 2)),
        RuntimeError,
        "diff expects the shape of tensor to prepend or append to match that of input",
    ),
    "dtype of out": (
        lambda: c.nonzero(ones(2), out=ones(2)),
        RuntimeError,
        "Expected object of scalar type Long but got scalar type Float for argument 'out'",
    ),
    "too large": (lambda: c.empty(2**31, 2**31, 2**31), RuntimeError, "Storage size calculation overflowed"),
    "resized to too many": (
        lambda: ones(1).resize_(2**31, 2**31, 2),
        RuntimeError,
        "Storage size calculation overflowed",
    ),
    "resized to too large strides": (
        lambda: ones(1).resize_(0, 4, 2**61),
        RuntimeError,
        "Stride calculation overflowed",
    ),
    "complex rfftn": (lambda: c.fft.rfftn(c.ones(2) * 1j), RuntimeError, "rfftn expects a real-valued input tensor"),
    "grids of two dtypes": (lambda: c.meshgrid(ones(2), c.arange(2)), RuntimeError, "to have the same dtype"),
    "grids of two devices": (
        lambda: c.meshgrid(ones(2), c.ones(2, device="meta")),
        RuntimeError,
        "to have the same device",
    ),
    "a range that is too wide": (lambda: ones(2).uniform_(-3e38, 3e38), RuntimeError, "uniform_ expects to-from"),
    "no sequence": (lambda: c.overrides.has_torch_function(3), TypeError, "expected a sequence"),
    "too large strides": (lambda: c.empty(0, 4, 2**61), RuntimeError, "Stride calculation overflowed"),
    "indices of bools": (
        lambda: c.take_along_dim(ones(2), c.tensor([True]), 0),
        RuntimeError,
        r"torch.take_along_dim\(\): dtype of indices should be Long",
    ),
    "shape as a tensor": (
        lambda: c.unravel_index(c.tensor(1), c.tensor([2])),
        TypeError,
        "expected 'shape' to be int or sequence of ints",
    ),
    "complex ends": (
        lambda: c.linspace(0, 1j, 3, dtype=c.float32),
        RuntimeError,
        r"torch.linspace\(\): inferred dtype",
    ),
    "negative deviation": (
        lambda: c.normal(c.zeros(()), -1, (2,)),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    "a dtype that cannot be aliased": (
        lambda: c.asarray(ones(2), dtype=c.float64, copy=False),
        ValueError,
        "with dtype '.*' into dtype '.*'",
    ),
    "a sequence that cannot be aliased": (
        lambda: c.asarray([1.0], copy=False),
        ValueError,
        "can't alias arbitrary sequence",
    ),
    "a stream": (lambda: ones(2).__dlpack__(stream="a"), TypeError, "stream must be ``int`` or ``none``"),
    "an index of nothing": (lambda: ones(2, 0)[:, [0]], IndexError, "out of bounds for dimension with size 0"),
    "no tensors": (lambda: c.meshgrid(), RuntimeError, "expects a non-empty TensorList"),
    "text in a tensor": (lambda: "a" in ones(2), RuntimeError, "but you passed in a <class 'str'>."),
    "None as data": (lambda: c.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
    "data that does not fit": (lambda: c.tensor([300], dtype=c.uint8), RuntimeError, "uint8 without overflow: 300"),
    "text to fill with": (
        lambda: c.full((2,), "a"),
        TypeError,
        r"full\(\): argument 'fill_value' \(position 2\) must be Number",
    ),
    "fill_ with several": (
        lambda: ones(2).fill_(ones(2)),
        RuntimeError,
        r"fill_ only supports 0-dimension .* copy_\(\)",
    ),
    "topk": (lambda: c.topk(ones(3), 5), RuntimeError, r"topk\(\): .*k is 5.*\[3\]"),
    "bincount of floats": (lambda: c.bincount(ones(2)), NotImplementedError, r"bincount.*candelabra\.float32"),
    "bincount of negative ones": (lambda: c.bincount(c.tensor([-1])), RuntimeError, "non-negative"),
    "an empty range": (lambda: c.histc(c.tensor([1]), min=2, max=1), RuntimeError, "max must be larger than min"),
    "histc": (lambda: c.histc(ones(2), bins=0), RuntimeError, r"histc\(\): bins must be > 0, but got 0"),
    "expanded in place": (
        lambda: ones(3).expand(2, 3).add_(1),
        RuntimeError,
        r"single memory location. Please clone\(\)",
    ),
    "attribute": (lambda: ones(2).foo, AttributeError, "has no attribute 'foo'"),
    "bool subtraction": (lambda: c.tensor([True]) - c.tensor([True]), RuntimeError, r"logical_xor|\^"),
    "bool negation": (lambda: -c.tensor([True]), RuntimeError, r"logical_not|~"),
    "rounding mode": (lambda: c.div(ones(2), 2, rounding_mode="foo"), RuntimeError, "foo"),
    "negative power": (
        lambda: c.tensor([1]).pow(-1),
        RuntimeError,
        "Integers to negative integer powers are not allowed",
    ),
    "length of a number": (lambda: len(ones(())), TypeError, r"len\(\) of a 0-d tensor"),
    "iteration over a number": (lambda: iter(ones(())), TypeError, "iteration over a 0-d tensor"),
    "integers that require grad": (lambda: ones(2, dtype=c.int64, requires_grad=True), RuntimeError, "int64"),
    "requires_grad_": (
        lambda: ones(2).requires_grad_("a"),
        TypeError,
        "argument 'requires_grad' .* must be bool, not str",
    ),
    "requires_grad_ by another name": (lambda: ones(2).requires_grad_(foo=True), TypeError, "unexpected keyword"),
    "set_grad_enabled": (lambda: c.set_grad_enabled("a"), TypeError, "must be bool, not str"),
    "a place to save": (lambda: c.save(ones(2), 3), AttributeError, "path, or a file-like object .*got int"),
    "limits of integers": (lambda: c.finfo(c.int64), TypeError, r"Use candelabra\.iinfo"),
    "singular matrix": (lambda: c.linalg.inv(ones(2, 2)), RuntimeError, "singular"),
    "no square": (lambda: c.linalg.inv(ones(2, 3)), RuntimeError, "square"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()


def test_a_failure_inside_is_not_taken_for_a_wrong_argument():
    class Strange(c.Tensor):
        @property
        def shape(self):
            raise AttributeError("no shape today")

    with pytest.raises(AttributeError, match="no shape today"):
        c.is_same_size(c.ones(2).as_subclass(Strange), c.ones(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.as_strided([2] * 3, [1] * 2**18),
        lambda x: x.view([1] * 2**18 + [3]),
        lambda x: x.to("é" * 2**18),
    ],
)
def test_messages_are_short_whatever_was_given(call):
    with pytest.raises((RuntimeError, TypeError)) as raised:
        call(c.ones(2))
    assert len(str(raised.value)) <= 1000
    assert "bytes left out" in str(raised.value) or "characters" in str(raised.value)


@pytest.mark.timeout(20)
def test_differences_end_with_the_elements():
    assert c.diff(c.ones(2, 5), n=2**40).shape == (2, 0)
    assert c.diff(c.ones(5, 2), n=4, dim=0).tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: c.ops.cross_entropy_forward(ones(1, 3), c.tensor([7]), None, 1, -100, 0.0), "cross_entropy"),
        (lambda: c.ops._pdist_forward(ones(2, 3), -1.0), "pdist"),
        (lambda: c.ops.native_layer_norm(ones(2, 3), [4]), "layer_norm"),
        (lambda: c.ops.native_batch_norm(ones(2, 3), None, None, ones(2), ones(3), True, 0.1, 1e-5), "batch_norm"),
        (lambda: c.ops.squared_error(ones(2), "text"), "mse_loss"),
        (lambda: c.ops.special_i0e("text"), "special.i0e"),
    ],
)
def test_messages_have_public_names(call, name):
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError), match=rf"^{name}\(\)"):
        call()


def test_a_device_that_is_none_lists_valid_names():
    with pytest.raises(
        c.BackendError, match=r"valid names are 'cpu', .*'meta'.*'cuda' \(pip install candelabra-backend-cuda\)"
    ):
        c.device("gpu")
