"""float8 dtypes and complex32: what they are, how they are kept, and which operators have them.

The conversions are tested in candelabra-backend-cpu.
"""

import base64
import copy
import io
import pickle

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra import safetensors

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values to real")

FLOAT8 = [c.float8_e4m3fn, c.float8_e5m2, c.float8_e4m3fnuz, c.float8_e5m2fnuz, c.float8_e8m0fnu]
SIGNED = FLOAT8[:4]
ALL = [*FLOAT8, c.complex32]
NAMES = [dtype.name for dtype in ALL]
each = pytest.mark.parametrize("dtype", ALL, ids=NAMES)


def made(dtype):
    """Return numbers that every one of the dtypes has."""
    return c.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 0.25]]).to(dtype)


def bits(tensor):
    return tensor.contiguous().view(c.uint8).tolist()


# ---- dtypes


@each
def test_dtype(dtype):
    assert dtype.itemsize == (4 if dtype is c.complex32 else 1)
    assert (dtype.is_floating_point, dtype.is_complex) == (dtype is not c.complex32, dtype is c.complex32)
    assert dtype.is_signed == (dtype is not c.float8_e8m0fnu)
    assert getattr(c, dtype.name) is dtype and repr(dtype) == f"candelabra.{dtype.name}"
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert c.chalf is c.complex32


@pytest.mark.parametrize(
    "dtype, largest, lowest, eps, tiny",
    [
        (c.float8_e4m3fn, 448, -448, 2**-3, 2**-6),
        (c.float8_e5m2, 57344, -57344, 2**-2, 2**-14),
        (c.float8_e4m3fnuz, 240, -240, 2**-3, 2**-7),
        (c.float8_e5m2fnuz, 57344, -57344, 2**-2, 2**-15),
        (c.float8_e8m0fnu, 2.0**127, 2.0**-127, 1, 2.0**-127),
    ],
)
def test_finfo(dtype, largest, lowest, eps, tiny):
    found = c.finfo(dtype)
    assert (found.max, found.min, found.eps, found.tiny, found.smallest_normal) == (largest, lowest, eps, tiny, tiny)
    assert (found.bits, found.resolution, found.dtype) == (8, 1.0, dtype.name)


def test_finfo_of_complex32():
    assert c.finfo(c.complex32) == c.finfo(c.float16)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_promotion_of_float8(dtype):
    for other in (
        c.bool,
        c.int8,
        c.uint16,
        c.float32,
        c.complex64,
        c.float8_e5m2 if dtype is not c.float8_e5m2 else c.float8_e4m3fn,
    ):
        with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote"):
            c.promote_types(dtype, other)
    assert c.promote_types(dtype, dtype) is dtype
    with pytest.raises(RuntimeError, match="attempted to promote Float8.* and Float"):
        c.cat([made(dtype), c.ones(2, 3)])
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Float8"):
        dtype.to_complex()


def test_complex_of_half():
    assert c.float16.to_complex() is c.complex32 and c.complex32.to_real() is c.float16
    assert c.bfloat16.to_complex() is c.complex64
    assert (c.ones(2, dtype=c.float16) * 2j).dtype is c.complex32


# ---- creation, printing


@each
def test_creation(dtype):
    zero = 2.0**-127 if dtype is c.float8_e8m0fnu else 0.0
    assert c.zeros(3, dtype=dtype).tolist() == [zero] * 3
    assert c.ones(3, dtype=dtype).tolist() == [1.0] * 3
    assert c.full((2, 2), 2.0, dtype=dtype).tolist() == [[2.0, 2.0]] * 2
    assert c.empty(2, 3, dtype=dtype).shape == (2, 3)
    assert c.tensor([1, 4.0], dtype=dtype).tolist() == [1.0, 4.0]
    assert c.zeros_like(made(dtype)).dtype is dtype and made(dtype).new_ones(2).tolist() == [1.0, 1.0]
    x = c.zeros(300, dtype=dtype)
    assert x.fill_(4.0).tolist() == [4.0] * 300 and x[0].item() == 4.0


def test_printing():
    assert (
        repr(c.tensor([1.0, 2.5], dtype=c.float8_e4m3fn)) == "tensor([1.0000, 2.5000], dtype=candelabra.float8_e4m3fn)"
    )
    assert (
        repr(c.tensor([1.0, 2.5j], dtype=c.complex32)) == "tensor([1.+0.0000j, 0.+2.5000j], dtype=candelabra.complex32)"
    )
    assert c.ones(1, dtype=c.float8_e5m2).type() == "candelabra.Float8_e5m2Tensor"
    assert c.ones(1, dtype=c.complex32).type() == "candelabra.ComplexHalfTensor"


def test_numbers_out_of_range():
    assert c.full((2,), 1e9, dtype=c.float8_e4m3fn).tolist() == [448.0, 448.0]
    assert all(v != v for v in c.full((2,), 1e9, dtype=c.float8_e4m3fnuz).tolist())
    assert c.full((2,), 7e4, dtype=c.complex32).tolist() == [complex("inf")] * 2


# ---- moves


@each
def test_views(dtype):
    x = made(dtype)
    assert x.view(c.uint8).shape == (2, 3 * dtype.itemsize)
    assert x.view(c.uint8).view(dtype).tolist() == x.tolist()
    for view in (
        lambda t: t.t(),
        lambda t: t[:, 1:],
        lambda t: t.unsqueeze(0).expand(2, 2, 3),
        lambda t: t.unfold(1, 2, 1),
    ):
        assert view(x).dtype is dtype
        assert view(x).contiguous().float().tolist() == view(made(c.float32)).tolist()


MOVES = {
    "cat": lambda x: c.cat([x, x]),
    "stack": lambda x: c.stack([x, x], 1),
    "index": lambda x: x[c.tensor([1, 0, 1])],
    "mask": lambda x: x[c.tensor([True, False])],
    "masked_select": lambda x: x.masked_select(c.tensor([True, False, True])),
    "index_select": lambda x: x.index_select(1, c.tensor([2, 0])),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1),
    "repeat": lambda x: x.repeat(2, 2),
    "where": lambda x: c.where(c.tensor([True, False, True]), x, x.flip(0)),
    "clone": lambda x: x.clone(),
    "diag": lambda x: x.diag(),
    "index_put": lambda x: x.index_put((c.tensor([1, 0]),), x.clone()),
    "copy_": lambda x: c.empty_like(x.t()).t().copy_(x),
}


@each
@pytest.mark.parametrize("move", MOVES)
def test_moves(dtype, move):
    found, expected = MOVES[move](made(dtype)), MOVES[move](made(c.float32))
    assert found.dtype is dtype and found.float().tolist() == expected.tolist()


@each
def test_writing(dtype):
    x = made(dtype)
    x[0] = 2.0
    x[1, :2] = c.tensor([4.0, 1.0])
    assert x.float().tolist() == [[2.0, 2.0, 2.0], [4.0, 1.0, 0.25]]


# ---- operators


@each
def test_comparison(dtype):
    x = made(dtype)
    assert (x == x).all() and not (x != x).any()
    assert (x == 2.0).tolist() == [[False, True, False], [False, False, False]]
    assert c.equal(x, x.clone()) and not c.equal(x, x.flip(0))
    assert not x.isnan().any()
    assert x.all().item() and x.any(0).tolist() == [True] * 3


@pytest.mark.parametrize("dtype", SIGNED)
def test_products_and_magnitudes(dtype):
    x = c.tensor([-1.5, 0.5, 3.0]).to(dtype)
    assert x.abs().tolist() == [1.5, 0.5, 3.0] and x.abs().dtype is dtype
    assert (x * x).tolist() == (x.float() * x.float()).to(dtype).tolist()


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("sizes", [(6,), (3, 6), (2, 3, 6)])
def test_linear_is_rounded_once(dtype, sizes):
    generator = np.random.default_rng(0)
    x, weight, bias = (
        c.from_numpy(generator.standard_normal(shape).astype(np.float32)).to(dtype) for shape in (sizes, (4, 6), (4,))
    )
    linear = c.ops.linear
    for found, expected in (
        (linear(x, weight), linear(x.float(), weight.float())),
        (linear(x, weight, bias), linear(x.float(), weight.float(), bias.float())),
    ):
        assert found.dtype is dtype and found.shape == (*sizes[:-1], 4)
        assert found.tolist() == expected.to(dtype).tolist()
    with pytest.raises(RuntimeError, match="same dtype"):
        linear(x, weight, bias.float())


def test_linear_of_powers_of_two():
    x = made(c.float8_e8m0fnu)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e8m0fnu'"):
        c.ops.linear(x, x)


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize(
    "name",
    ["add", "sub", "div", "neg", "exp", "sqrt", "sum", "prod", "mean", "amax", "argmax", "lt", "maximum", "sort", "topk", "cumsum",
     "softmax", "relu", "round", "bmm", "uniform_", "normal_", "nonzero", "addcmul", "sigmoid"],
)  # fmt: skip
def test_operators_that_float8_has_not(dtype, name):
    x = made(dtype)
    calls = {
        "add": lambda: x + x, "sub": lambda: x - x, "div": lambda: x / x, "lt": lambda: x < x, "maximum": lambda: c.maximum(x, x),
        "topk": lambda: x.topk(1), "cumsum": lambda: x.cumsum(0), "softmax": lambda: c.softmax(x, 0),
        "bmm": lambda: c.bmm(x[None], x.t()[None]), "addcmul": lambda: c.addcmul(x, x, x),
    }  # fmt: skip
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_"):
        calls.get(name, lambda: getattr(x, name)())()


def test_arithmetic_of_complex32():
    a = c.tensor([1 + 2j, -3 + 0.5j, 0.25j], dtype=c.complex32)
    wide = a.to(c.complex64)
    for found, expected in (
        (a + a, wide + wide), (a - 2j, wide - 2j), (a * a, wide * wide), (-a, -wide), (a.sgn(), wide.sgn()),
        (a.conj().resolve_conj(), wide.conj()), (c.addcmul(a, a, a), c.addcmul(wide, wide, wide)), (a * 1.5, wide * 1.5),
        (c.add(a, a, alpha=2), c.add(wide, wide, alpha=2)), (a.abs(), wide.abs()), (a.real, wide.real), (a.imag, wide.imag),
    ):  # fmt: skip
        assert found.dtype is (c.complex32 if expected.dtype.is_complex else c.float16)
        np.testing.assert_allclose(found.to(expected.dtype).numpy(), expected.resolve_conj().numpy(), rtol=2e-3)
    assert (a * c.ones(3)).dtype is c.complex64
    assert c.view_as_complex(c.view_as_real(a)).tolist() == a.tolist()
    assert c.view_as_real(a).dtype is c.float16
    assert c.complex(a.real, a.imag).tolist() == a.tolist()
    assert a.chalf() is a and c.ones(2).chalf().dtype is c.complex32
    assert a.nonzero().tolist() == [[0], [1], [2]] and a.count_nonzero().item() == 3
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexHalf'"):
        a.exp()


# ---- products of scaled matrices


def scaled_operands():
    generator = np.random.default_rng(0)
    a, b = (c.from_numpy(generator.standard_normal((5, 7)).astype(np.float32)) for _ in range(2))
    return a.to(c.float8_e4m3fn), b.to(c.float8_e5m2).t()


def test_scaled_mm_of_whole_matrices():
    a, b = scaled_operands()
    exact = a.double() @ b.double() * 0.75
    found = c._scaled_mm(a, b, c.tensor(0.5), c.tensor(1.5), out_dtype=c.float32)
    np.testing.assert_allclose(found.numpy(), exact.numpy(), rtol=1e-5, atol=1e-6)
    assert (
        c._scaled_mm(a, b, c.tensor([0.5]), c.tensor(1.5), out_dtype=c.bfloat16).tolist() == found.bfloat16().tolist()
    )
    assert c._scaled_mm(a, b, c.tensor(0.5), c.tensor(1.5)).dtype is a.dtype
    bias = c.arange(5.0)
    biased = c._scaled_mm(a, b, c.tensor(0.5), c.tensor(1.5), bias=bias.bfloat16(), out_dtype=c.float32)
    np.testing.assert_allclose(biased.numpy(), (exact + bias).numpy(), rtol=1e-5, atol=1e-6)
    halved = c._scaled_mm(a, b, c.tensor(0.5), c.tensor(1.5), scale_result=c.tensor(2.0))
    assert halved.tolist() == (found / 2).to(a.dtype).tolist()
    out = c.empty(5, 5)
    assert c._scaled_mm(a, b, c.tensor(0.5), c.tensor(1.5), out_dtype=c.float32, out=out) is out
    assert out.tolist() == found.tolist()


def test_scaled_mm_by_rows():
    a, b = scaled_operands()
    rows, columns = c.arange(1.0, 6).reshape(5, 1), c.arange(2.0, 7).reshape(1, 5)
    found = c._scaled_mm(a, b, rows, columns, out_dtype=c.float32)
    exact = (a.double() * rows) @ (b.double() * columns)
    np.testing.assert_allclose(found.numpy(), exact.numpy(), rtol=1e-5, atol=1e-5)


def test_scaled_mm_refuses():
    a, b = scaled_operands()
    one = c.tensor(1.0)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(5x7 and 5x7\)"):
        c._scaled_mm(a, b.t(), one, one)
    with pytest.raises(RuntimeError, match="mat1 must be a matrix"):
        c._scaled_mm(a[0], b, one, one)
    with pytest.raises(RuntimeError, match="Bias must be size 5 but got 3"):
        c._scaled_mm(a, b, one, one, bias=c.ones(3))
    for bad in (
        lambda: c._scaled_mm(a.float(), b, one, one), lambda: c._scaled_mm(a, b, c.ones(5), c.ones(5)),
        lambda: c._scaled_mm(a, b, c.ones(5, 1), one), lambda: c._scaled_mm(a, b, one.double(), one),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Invalid scaling configuration"):
            bad()
    with pytest.raises(ValueError, match="out_dtype must match"):
        c._scaled_mm(a, b, one, one, out_dtype=c.float32, out=c.empty(5, 5, dtype=c.float16))


# ---- exchange


@each
def test_numpy_has_no_such_type(dtype):
    with pytest.raises(TypeError, match="Got unsupported ScalarType"):
        made(dtype).numpy()
    with pytest.raises(BufferError, match=f"no format for {dtype.name}"):
        memoryview(made(dtype))


@each
def test_dlpack(dtype):
    x = made(dtype)
    y = c.from_dlpack(x)
    assert y.dtype is dtype and y.data_ptr() == x.data_ptr() and y.tolist() == x.tolist()


@each
def test_pickle_and_copies(dtype):
    x = made(dtype)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert y.dtype is dtype and bits(y) == bits(x)


@each
@pytest.mark.parametrize("format", ["candelabra", "pytorch"])
def test_files(dtype, format):
    file = io.BytesIO()
    x = made(dtype)
    c.save({"x": x, "view": x[1:]}, file, format=format)
    file.seek(0)
    found = c.load(file)
    assert found["x"].dtype is dtype and bits(found["x"]) == bits(x)
    assert found["view"].data_ptr() == found["x"][1].data_ptr()


#: By torch.save() of PyTorch 2.13: the same five codes in each float8 dtype, and two numbers;
#: compressed.
WRITTEN_BY_PYTORCH = (
    "P)h>@6aWAK2mniEcU?<z&D>}K005c-000mG003cfV`yo1WiMo5bYU)VYiw=N$xp&S6bA4DA~1-!@B3O@5GW|>)f)$6jY)3}mcf#gmam-}B{A{Bf&bbm("
    "-?}LCX;#Z_r00<j(<UtwVWhLZOdu0x=yQIrEMc-Fvm5_qVBVf<q_SbuYSjB>5ST*<Ld7UL0p!#6mRr+W%G?95w?VT@?x{k9&J5`TTE#&UR^>`OYqg``I"
    "v4b8B$LTsgWEY-G~j485)LTS=3-1$M(ph+oCRQJ#-94Kng0dB7;PRC75BzshHKWWA~_aE6AICNHbxI=rZQaQRI9Wxe!Dy4$VMbnvi)r!7{^&id8K?`96"
    "LhYZ1GGbzyIW_GVyj348m$sr^2|4#TdBy@=0)NB(}qS8yQw!_Yqp{A1yt{GDC+rwp=+f;Kzm*SjTth_eV^#kt@wLjE$~i-NzJ;Dta?VkoPqXqn(Uoo>&"
    "fA4&yE1g@dV;WR@nfa3#P2k?!6>mmHxOmNF^r{dl({s2%*0|XQR000O8OJ#RmKX-BI1ONa40ssI28UO$QVRB<=X?A5VE^~Bma$#p>Utw%%XKrm}Zgev<"
    "0RT`-0|XQR000O8OJ#Rmg+1dL2mk;81^@s65dZ)HVRB<=X?A5VVtI6BZ*pX1a?8mqDalC%08mQ<1QY-O00;m}Wp`a2wifjV000050000E0001Ca${&|c"
    "4aSQVRT_HFtcE++vx%TP)h>@6aWAK2mniEcU>K}7WD@J000F5000gE003cfV`yo1WiMo5bYU+svtX>-=>h;yO9KQH00008083?eT^+U-^#=d|00jU501"
    "f~E0AX@tXlZt3FJxhKVJ|YXV65Be0sv4;0|XQR000O8OJ#Rm9kv$r2LJ#71poj54gdfEVRB<=X?A5VWMOn+FEg`XtlQ}V08mQ<1QY-O00;m}Wp`a2wif"
    "jV000050000E0001Ca${&|c4aSQVRT_HG_zo=+vx%TP)h>@6aWAK2mniEcU@?*tj!7l000O8000gE003cfV`yo1WiMo5bYU+wW3XXxVA%1$8URpB0|XQ"
    "R000O8OJ#Rm(Vk~j1ONa40ssI24*&oFVRB<=X?A5Vc4cyNX>V>b<^ljvO928D0~7!N00;m}Wp`ama?RXm0RRA+0ssII00000000000001h0RR910AX@t"
    "XlZt3FJxhKVJ>iMY*0%90u%!j00008083?eT|akm=>z}(00IC202%-Q00000000000Du9O0RRADa${&|c4aRvb98TVVP|DuVQgt<Zf#|5bWlqH0u%!j0"
    "0008083?eU4=d483+IX00sa601*HH00000000000Du9~0RRADa${&|c4aSOd30rOa%5$4P)h*<6ay3h000O8OJ#Rm9kv$r2LJ#71poj54gdfE0000000"
    "000fB^{t003cfV`yo1WiMo5bYU+rP)h*<6ay3h000O8OJ#Rm9kv$r2LJ#71poj54gdfE0000000000fB`%L003cfV`yo1WiMo5bYU+sP)h*<6ay3h000"
    "O8OJ#Rm9kv$r2LJ#71poj54gdfE0000000000fB|m;003cfV`yo1WiMo5bYU+tP)h*<6ay3h000O8OJ#Rm9kv$r2LJ#71poj54gdfE0000000000fB~W"
    "c003cfV`yo1WiMo5bYU+uP)h*<6ay3h000O8OJ#Rm9kv$r2LJ#71poj54gdfE0000000000fC1G4003cfV`yo1WiMo5bYU+vP)h*<6ay3h000O8OJ#Rm"
    "XtJ!$3IG5A2mk;84gdfE0000000000fB^^t003cfV`yo1WiMo5bYU+wP)h*<6ay3h000O8OJ#Rm(Vk~j1ONa40ssI24*&oF0000000000fB`-O003cfV"
    "`yo1WiNJRa&u{KZcs}F1^@s6015yK0BQmN0B-{T0000"
)


def test_files_of_pytorch():
    found = c.load(io.BytesIO(base64.b85decode(WRITTEN_BY_PYTORCH)))
    assert list(found) == NAMES
    for dtype in FLOAT8:
        assert found[dtype.name].dtype is dtype and bits(found[dtype.name]) == [0x38, 0x01, 0x7E, 0xB9, 0x44]
    assert found["complex32"].dtype is c.complex32 and found["complex32"].tolist() == [1 + 2j, -0.5 + 65504j]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_safetensors(dtype):
    data = safetensors.save({"x": made(dtype)})
    name = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0"}.get(dtype.name)
    assert name is None or name.encode() in data
    found = safetensors.load(data)["x"]
    assert found.dtype is dtype and bits(found) == bits(made(dtype))
