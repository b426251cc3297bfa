"""Tensors print as PyTorch prints them. The expected texts were made by PyTorch 2.13, its name
replaced by ours.
"""

import time

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

# What is evaluated, and what PyTorch prints for it.
CASES = {
    "float": ("c.tensor([1.0, 2.5, -3.25])", "tensor([ 1.0000,  2.5000, -3.2500])"),
    "whole floats": ("c.tensor([1.0, 2.0, -30.0])", "tensor([  1.,   2., -30.])"),
    "zeros": ("c.zeros(3)", "tensor([0., 0., 0.])"),
    "zero-dimensional": ("c.tensor(3.14159265)", "tensor(3.1416)"),
    "zero-dimensional integer": ("c.tensor(7)", "tensor(7)"),
    "zero-dimensional double": ("c.tensor(0.1, dtype=c.float64)", "tensor(0.1000, dtype=candelabra.float64)"),
    "integers": ("c.tensor([[1, -20], [300, 4]])", ("tensor([[  1, -20],\n        [300,   4]])")),
    "int32": ("c.tensor([1, 2], dtype=c.int32)", "tensor([1, 2], dtype=candelabra.int32)"),
    "uint8": ("c.tensor([1, 255], dtype=c.uint8)", "tensor([  1, 255], dtype=candelabra.uint8)"),
    "booleans": ("c.tensor([[True, False], [False, True]])", ("tensor([[ True, False],\n        [False,  True]])")),
    "double": ("c.tensor([1.5, 2.25], dtype=c.float64)", "tensor([1.5000, 2.2500], dtype=candelabra.float64)"),
    "half": ("c.tensor([1.5, 0.1], dtype=c.float16)", "tensor([1.5000, 0.1000], dtype=candelabra.float16)"),
    "bfloat16": ("c.tensor([1.5, 0.1], dtype=c.bfloat16)", "tensor([1.5000, 0.1001], dtype=candelabra.bfloat16)"),
    "complex": ("c.tensor([1 + 2j, -3.5 - 4j])", "tensor([ 1.0000+2.j, -3.5000-4.j])"),
    "whole complex": ("c.tensor([[1 + 2j], [0 - 1j]])", ("tensor([[1.+2.j],\n        [0.-1.j]])")),
    "complex128": ("c.tensor([1.5 + 2j], dtype=c.complex128)", "tensor([1.5000+2.j], dtype=candelabra.complex128)"),
    "complex zero-dimensional": ("c.tensor(1e-9 + 1e9j)", "tensor(1.0000e-09+1.0000e+09j)"),
    "nan and infinities": (
        "c.tensor([float('nan'), float('inf'), -float('inf'), 1.0])",
        "tensor([nan, inf, -inf, 1.])",
    ),
    "nan with decimals": ("c.tensor([float('nan'), 1.5, 10.25])", "tensor([    nan,  1.5000, 10.2500])"),
    "only nan": ("c.tensor([float('nan'), 0.0])", "tensor([nan, 0.])"),
    "scientific by range": ("c.tensor([1e-3, 1e3])", "tensor([1.0000e-03, 1.0000e+03])"),
    "scientific by size": ("c.tensor([1e10, 1.5])", "tensor([1.0000e+10, 1.5000e+00])"),
    "scientific by smallness": ("c.tensor([1e-5, 2e-5])", "tensor([1.0000e-05, 2.0000e-05])"),
    "scientific whole": ("c.tensor([1.0, 1e9])", "tensor([1.0000e+00, 1.0000e+09])"),
    "not scientific": ("c.tensor([1.0, 1000.0])", "tensor([   1., 1000.])"),
    "just not scientific": ("c.tensor([0.0001, 0.05])", "tensor([1.0000e-04, 5.0000e-02])"),
    "large integers": ("c.tensor([10**18, -1])", "tensor([1000000000000000000,                  -1])"),
    "empty": ("c.empty(0)", "tensor([])"),
    "empty with shape": ("c.empty(0, 3)", "tensor([], size=(0, 3))"),
    "empty integers": ("c.empty(0, dtype=c.int64)", "tensor([], dtype=candelabra.int64)"),
    "empty integers with shape": ("c.empty((2, 0), dtype=c.int64)", "tensor([], size=(2, 0), dtype=candelabra.int64)"),
    "empty bool": ("c.empty((0,), dtype=c.bool)", "tensor([], dtype=candelabra.bool)"),
    "long row": (
        "c.arange(100)",
        (
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n"
            "        36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53,\n"
            "        54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,\n"
            "        72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89,\n"
            "        90, 91, 92, 93, 94, 95, 96, 97, 98, 99])"
        ),
    ),
    "long row of floats": (
        "c.arange(30) / 7",
        (
            "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
            "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
            "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
            "        3.8571, 4.0000, 4.1429])"
        ),
    ),
    "summary of a row": ("c.arange(2000)", "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    "summary of a matrix": (
        "c.arange(10000).reshape(100, 100)",
        (
            "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
            "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
            "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
            "        ...,\n"
            "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
            "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
            "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])"
        ),
    ),
    "summary of floats": (
        "c.arange(10000.0).reshape(100, 100) / 3",
        (
            "tensor([[0.0000e+00, 3.3333e-01, 6.6667e-01,  ..., 3.2333e+01, 3.2667e+01,\n"
            "         3.3000e+01],\n"
            "        [3.3333e+01, 3.3667e+01, 3.4000e+01,  ..., 6.5667e+01, 6.6000e+01,\n"
            "         6.6333e+01],\n"
            "        [6.6667e+01, 6.7000e+01, 6.7333e+01,  ..., 9.9000e+01, 9.9333e+01,\n"
            "         9.9667e+01],\n"
            "        ...,\n"
            "        [3.2333e+03, 3.2337e+03, 3.2340e+03,  ..., 3.2657e+03, 3.2660e+03,\n"
            "         3.2663e+03],\n"
            "        [3.2667e+03, 3.2670e+03, 3.2673e+03,  ..., 3.2990e+03, 3.2993e+03,\n"
            "         3.2997e+03],\n"
            "        [3.3000e+03, 3.3003e+03, 3.3007e+03,  ..., 3.3323e+03, 3.3327e+03,\n"
            "         3.3330e+03]])"
        ),
    ),
    "summary of three dimensions": (
        "c.arange(8000).reshape(20, 20, 20)",
        (
            "tensor([[[   0,    1,    2,  ...,   17,   18,   19],\n"
            "         [  20,   21,   22,  ...,   37,   38,   39],\n"
            "         [  40,   41,   42,  ...,   57,   58,   59],\n"
            "         ...,\n"
            "         [ 340,  341,  342,  ...,  357,  358,  359],\n"
            "         [ 360,  361,  362,  ...,  377,  378,  379],\n"
            "         [ 380,  381,  382,  ...,  397,  398,  399]],\n"
            "\n"
            "        [[ 400,  401,  402,  ...,  417,  418,  419],\n"
            "         [ 420,  421,  422,  ...,  437,  438,  439],\n"
            "         [ 440,  441,  442,  ...,  457,  458,  459],\n"
            "         ...,\n"
            "         [ 740,  741,  742,  ...,  757,  758,  759],\n"
            "         [ 760,  761,  762,  ...,  777,  778,  779],\n"
            "         [ 780,  781,  782,  ...,  797,  798,  799]],\n"
            "\n"
            "        [[ 800,  801,  802,  ...,  817,  818,  819],\n"
            "         [ 820,  821,  822,  ...,  837,  838,  839],\n"
            "         [ 840,  841,  842,  ...,  857,  858,  859],\n"
            "         ...,\n"
            "         [1140, 1141, 1142,  ..., 1157, 1158, 1159],\n"
            "         [1160, 1161, 1162,  ..., 1177, 1178, 1179],\n"
            "         [1180, 1181, 1182,  ..., 1197, 1198, 1199]],\n"
            "\n"
            "        ...,\n"
            "\n"
            "        [[6800, 6801, 6802,  ..., 6817, 6818, 6819],\n"
            "         [6820, 6821, 6822,  ..., 6837, 6838, 6839],\n"
            "         [6840, 6841, 6842,  ..., 6857, 6858, 6859],\n"
            "         ...,\n"
            "         [7140, 7141, 7142,  ..., 7157, 7158, 7159],\n"
            "         [7160, 7161, 7162,  ..., 7177, 7178, 7179],\n"
            "         [7180, 7181, 7182,  ..., 7197, 7198, 7199]],\n"
            "\n"
            "        [[7200, 7201, 7202,  ..., 7217, 7218, 7219],\n"
            "         [7220, 7221, 7222,  ..., 7237, 7238, 7239],\n"
            "         [7240, 7241, 7242,  ..., 7257, 7258, 7259],\n"
            "         ...,\n"
            "         [7540, 7541, 7542,  ..., 7557, 7558, 7559],\n"
            "         [7560, 7561, 7562,  ..., 7577, 7578, 7579],\n"
            "         [7580, 7581, 7582,  ..., 7597, 7598, 7599]],\n"
            "\n"
            "        [[7600, 7601, 7602,  ..., 7617, 7618, 7619],\n"
            "         [7620, 7621, 7622,  ..., 7637, 7638, 7639],\n"
            "         [7640, 7641, 7642,  ..., 7657, 7658, 7659],\n"
            "         ...,\n"
            "         [7940, 7941, 7942,  ..., 7957, 7958, 7959],\n"
            "         [7960, 7961, 7962,  ..., 7977, 7978, 7979],\n"
            "         [7980, 7981, 7982,  ..., 7997, 7998, 7999]]])"
        ),
    ),
    "summary narrow": (
        "c.arange(4000).reshape(2, 2000)",
        ("tensor([[   0,    1,    2,  ..., 1997, 1998, 1999],\n        [2000, 2001, 2002,  ..., 3997, 3998, 3999]])"),
    ),
    "summary tall": (
        "c.arange(4000).reshape(2000, 2)",
        (
            "tensor([[   0,    1],\n"
            "        [   2,    3],\n"
            "        [   4,    5],\n"
            "        ...,\n"
            "        [3994, 3995],\n"
            "        [3996, 3997],\n"
            "        [3998, 3999]])"
        ),
    ),
    "exactly the threshold": (
        "c.arange(1000).reshape(10, 100)[:, :2]",
        (
            "tensor([[  0,   1],\n"
            "        [100, 101],\n"
            "        [200, 201],\n"
            "        [300, 301],\n"
            "        [400, 401],\n"
            "        [500, 501],\n"
            "        [600, 601],\n"
            "        [700, 701],\n"
            "        [800, 801],\n"
            "        [900, 901]])"
        ),
    ),
    "three dimensions": (
        "c.arange(8).reshape(2, 2, 2)",
        ("tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"),
    ),
    "four dimensions": (
        "c.arange(16).reshape(2, 2, 2, 2) / 4",
        (
            "tensor([[[[0.0000, 0.2500],\n"
            "          [0.5000, 0.7500]],\n"
            "\n"
            "         [[1.0000, 1.2500],\n"
            "          [1.5000, 1.7500]]],\n"
            "\n"
            "\n"
            "        [[[2.0000, 2.2500],\n"
            "          [2.5000, 2.7500]],\n"
            "\n"
            "         [[3.0000, 3.2500],\n"
            "          [3.5000, 3.7500]]]])"
        ),
    ),
    "requires grad": ("c.ones(2, requires_grad=True)", "tensor([1., 1.], requires_grad=True)"),
    "requires grad and dtype": (
        "c.ones(2, dtype=c.float64, requires_grad=True)",
        "tensor([1., 1.], dtype=candelabra.float64, requires_grad=True)",
    ),
    "suffix on a line of its own": (
        "c.ones(13, dtype=c.float64, requires_grad=True)",
        (
            "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n       dtype=candelabra.float64, requires_grad=True)"
        ),
    ),
    "suffix at the edge": (
        "c.ones(14, requires_grad=True)",
        ("tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n       requires_grad=True)"),
    ),
    "strided": ("c.arange(6).reshape(2, 3).T", ("tensor([[0, 3],\n        [1, 4],\n        [2, 5]])")),
    "expanded": (
        "c.tensor([[1.5], [2.5]]).expand(2, 3)",
        ("tensor([[1.5000, 1.5000, 1.5000],\n        [2.5000, 2.5000, 2.5000]])"),
    ),
    "negative zero": ("c.tensor([-0.0, 1.0])", "tensor([-0., 1.])"),
    "wide negative": ("c.tensor([-123456.789, 0.5])", "tensor([-1.2346e+05,  5.0000e-01])"),
    "int8": ("c.tensor([-128, 127], dtype=c.int8)", "tensor([-128,  127], dtype=candelabra.int8)"),
    "summary of complex": (
        "c.complex(c.arange(1500.0), c.arange(1500.0) / 2)",
        (
            "tensor([0.0000e+00+0.0000e+00j, 1.0000e+00+5.0000e-01j, 2.0000e+00+1.0000e+00j,\n"
            "         ..., 1.4970e+03+7.4850e+02j, 1.4980e+03+7.4900e+02j,\n"
            "        1.4990e+03+7.4950e+02j])"
        ),
    ),
    "summary of bool": (
        "c.arange(3000).reshape(3, 1000) > 1500",
        (
            "tensor([[False, False, False,  ..., False, False, False],\n"
            "        [False, False, False,  ...,  True,  True,  True],\n"
            "        [ True,  True,  True,  ...,  True,  True,  True]])"
        ),
    ),
}

OPTIONS = {
    "precision": ("precision=2", "c.tensor([1.23456, 2.0])", "tensor([1.23, 2.00])"),
    "threshold": ("threshold=5", "c.arange(10)", "tensor([0, 1, 2,  ..., 7, 8, 9])"),
    "edgeitems": (
        "threshold=5, edgeitems=1",
        "c.arange(20).reshape(4, 5)",
        ("tensor([[ 0,  ...,  4],\n        ...,\n        [15,  ..., 19]])"),
    ),
    "edgeitems zero": ("threshold=5, edgeitems=0", "c.arange(20).reshape(4, 5)", "tensor([...], size=(4, 5))"),
    "linewidth": (
        "linewidth=30",
        "c.arange(20)",
        (
            "tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10, 11, 12, 13, 14,\n        15, 16, 17, 18, 19])"
        ),
    ),
    "short": ("profile='short'", "c.arange(2000) / 3", "tensor([0.00e+00, 3.33e-01,  ..., 6.66e+02, 6.66e+02])"),
    "full": (
        "profile='full'",
        "c.arange(1200)[::100] / 3",
        (
            "tensor([  0.0000,  33.3333,  66.6667, 100.0000, 133.3333, 166.6667, 200.0000,\n"
            "        233.3333, 266.6667, 300.0000, 333.3333, 366.6667])"
        ),
    ),
    "scientific": ("sci_mode=True", "c.tensor([1.0, 2.5])", "tensor([1.0000e+00, 2.5000e+00])"),
    "not scientific": ("sci_mode=False", "c.tensor([1e-6, 1e6])", "tensor([      0.0000, 1000000.0000])"),
    "scientific complex": ("sci_mode=True", "c.tensor([1.5 + 2j])", "tensor([1.5000e+00+2.0000e+00j])"),
}


@pytest.fixture(autouse=True)
def default_options():
    c.set_printoptions(profile="default")
    yield
    c.set_printoptions(profile="default")


@pytest.mark.parametrize("name", CASES)
def test_prints_as_pytorch(name):
    expression, expected = CASES[name]
    assert repr(eval(expression)) == expected


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    options, expression, expected = OPTIONS[name]
    eval(f"c.set_printoptions({options})")
    assert repr(eval(expression)) == expected


def test_str_is_repr():
    assert str(c.tensor([1.5])) == "tensor([1.5000])"


def test_unknown_profile():
    with pytest.raises(ValueError, match="'loud'.*default, short, full"):
        c.set_printoptions(profile="loud")


def test_sci_mode_is_reset_by_each_call():
    c.set_printoptions(sci_mode=True)
    c.set_printoptions(precision=2)
    assert repr(c.tensor([1.5])) == "tensor([1.50])"


def test_huge_tensor_prints_at_once():
    # 10^12 elements of one memory cell: only the shown ones may be read.
    huge = c.tensor([1.5]).expand(10**6, 10**6)
    started = time.perf_counter()
    text = repr(huge)
    assert time.perf_counter() - started < 1
    assert text.count("1.5000") == 36


def test_subclass_shows_its_name():
    class Weight(c.Tensor):
        pass

    assert repr(c.Tensor._make_subclass(Weight, c.ones(2))) == "Weight([1., 1.])"


def test_default_dtype_is_not_shown():
    c.set_default_dtype(c.float64)
    try:
        assert repr(c.tensor([1.5])) == "tensor([1.5000])"
        assert repr(c.tensor([1.5], dtype=c.float32)) == "tensor([1.5000], dtype=candelabra.float32)"
    finally:
        c.set_default_dtype(c.float32)


def test_printing_is_not_recorded():
    x = c.ones(2, requires_grad=True)
    repr(x)
    assert x.grad_fn is None and x.is_leaf
