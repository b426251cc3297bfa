"""Assembly of the package: operators and composites become functions of the package and methods of
Tensor.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import SimpleNamespace

from candelabra import _C, printing, return_types
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import FUNCTION_ONLY, HIDDEN, METHOD_ONLY

from . import composite
from .composite.registration import BY_OPERATOR, overridable, overridable_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from types import FrameType, ModuleType
    from typing import Any

#: Dtypes whose names hide Python's own, and PyTorch's second names of dtypes.
DTYPE_NAMES = {
    "bool": _C.bool, "float": _C.float32, "double": _C.float64, "half": _C.float16, "short": _C.int16, "int": _C.int32,
    "long": _C.int64, "chalf": _C.complex32, "cfloat": _C.complex64, "cdouble": _C.complex128,
}  # fmt: skip

#: In-place variants that are also functions, besides those with one argument.
FUNCTIONS_IN_PLACE = ("clamp", "gcd", "index_put", "lcm", "logit", "nan_to_num", "round", "xlogy")
#: The same for methods composed of operators.
METHODS_AS_FUNCTIONS = (
    "addmv_",
    "clamp_max_",
    "clamp_min_",
    "deg2rad_",
    "is_signed",
    "ldexp_",
    "rad2deg_",
    "resize_as_",
    "sinc_",
)

#: Subpackages from other distributions.
SUBPACKAGES = {
    "autograd": "candelabra-autograd", "nn": "candelabra-nn", "optim": "candelabra-optim",
    "multiprocessing": "candelabra-multiprocessing", "utils": "candelabra-utils", "hub": "candelabra-utils",
    "distributions": "candelabra-distributions", "distributed": "candelabra-distributed",
    "compiler": "candelabra-compile", "export": "candelabra-compile", "fx": "candelabra-compile", "jit": "candelabra-compile",
    "onnx": "candelabra-compile",
    "torch": "candelabra-torch-compat", "array_api": "candelabra-array-api", "cuda": "candelabra-backend-cuda",
    "vision_ops": "candelabra-vision-ops", "legacy": "candelabra-legacy",
}  # fmt: skip
#: Distributions that have the operators of other projects' shared libraries, by the Python package
#: that such a library lies in. Their entry points in OPERATOR_LIBRARIES have the package's name.
REPLACED_LIBRARIES = {"torchvision": "candelabra-vision-ops"}
OPERATOR_LIBRARIES = "candelabra.operator_libraries"
#: The namespaces of these operators.
REPLACED_NAMESPACES = {"torchvision": "candelabra-vision-ops", "image": "candelabra-vision-ops"}
#: Subpackages that programs ask for questions without having installed them: the packages of this
#: distribution that are imported under their names then. They have STANDS_IN_FOR, a distribution.
STAND_INS = {"cuda": "without_cuda"}
#: Modules of this distribution that are imported when they are asked for.
LAZY_MODULES = (
    "accelerator",
    "communication",
    "amp",
    "cpu",
    "fft",
    "func",
    "fake_tensor",
    "hooks",
    "library",
    "overrides",
    "profiler",
    "python_dispatch",
    "pytree",
    "quasirandom",
    "random",
    "special",
    "safetensors",
    "signal",
    "serialization",
    "storage",
    "testing",
    "type_hints",
    "types",
)
LAZY_FUNCTIONS = {
    **dict.fromkeys(
        (
            "TypedStorage", "DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "ByteStorage", "CharStorage", "ShortStorage",
            "IntStorage", "LongStorage", "BoolStorage", "ComplexFloatStorage", "ComplexDoubleStorage",
        ),
        "storage",
    ),
    "save": "serialization", "load": "serialization", "vmap": "func",
    "GradScaler": "amp", "autocast": "amp", "clear_autocast_cache": "amp", "get_autocast_dtype": "amp", "is_autocast_cache_enabled": "amp",
    "is_autocast_enabled": "amp", "set_autocast_cache_enabled": "amp", "set_autocast_dtype": "amp", "set_autocast_enabled": "amp",
}  # fmt: skip
#: Functions of candelabra.nn.functional that PyTorch also has in the package.
NN_FUNCTIONS = frozenset({
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "affine_grid_generator", "avg_pool1d", "celu", "celu_", "constant_pad_nd",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "grid_sampler", "grid_sampler_2d",
    "grid_sampler_3d", "hardshrink", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "native_channel_shuffle",
    "pairwise_distance", "prelu", "rms_norm", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_",
})  # fmt: skip
#: Functions of candelabra.autograd that PyTorch also has in the package.
TAPE_FUNCTIONS = frozenset({"is_anomaly_check_nan_enabled", "is_anomaly_enabled"})
#: Functions of candelabra.nn.functional.native, which PyTorch has in the package with other
#: parameters than in nn.functional.
NATIVE_FUNCTIONS = frozenset({
    "alpha_dropout", "alpha_dropout_", "batch_norm", "batch_norm_update_stats", "bilinear", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "ctc_loss", "dropout_", "embedding", "embedding_bag", "embedding_renorm_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "group_norm", "gru", "gru_cell", "hinge_embedding_loss",
    "instance_norm", "kl_div", "layer_norm", "lstm", "lstm_cell", "margin_ranking_loss", "native_batch_norm", "native_dropout",
    "native_group_norm", "native_layer_norm", "norm_except_dim", "pdist", "poisson_nll_loss", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
    "rnn_tanh_cell", "segment_reduce", "triplet_margin_loss",
})  # fmt: skip


class OperatorNamespace:
    """The custom operators of one namespace: ``candelabra.ops.mylib``."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        distribution = REPLACED_NAMESPACES.get(self.__name__)
        if distribution is not None:
            module = distribution.replace("candelabra-", "candelabra.").replace("-", "_")
            advice = f"import {module} defines the operators of this namespace (pip install {distribution})"
        else:
            advice = f'candelabra.library.custom_op("{self.__name__}::{name}", ...) would define it'
        raise AttributeError(f"'OperatorNamespace' '{self.__name__}' object has no attribute '{name}': {advice}")

    def __repr__(self) -> str:
        return f"<operators of {self.__name__}: {', '.join(sorted(set(vars(self)) - {'__name__'})) or 'none'}>"


class Operators(SimpleNamespace):
    """All operators by name, and a namespace for each namespace of custom operators."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"candelabra.ops has no attribute {name!r}")
        if name == "aten":
            import importlib

            importlib.import_module("candelabra.library")
            return importlib.import_module("candelabra.library.aten").ATEN
        return OperatorNamespace(name)

    def load_library(self, path: Any) -> None:
        """Define the operators of a shared library.

        Parameters
        ----------
        path
            A library that `candelabra.utils.cpp_extension` built; or one of a package, such as
            torchvision, whose operators a distribution of Candelabra has. Its entry point in the
            group ``candelabra.operator_libraries`` has the name of the package, and its module is
            imported instead.

        Raises
        ------
        OSError
            If it cannot be loaded, such as a library that was built for PyTorch.
        """
        import importlib.metadata

        package = os.path.basename(os.path.dirname(os.path.abspath(path)))
        replaced = importlib.metadata.entry_points(group=OPERATOR_LIBRARIES, name=package)
        if replaced:
            for entry_point in replaced:
                entry_point.load()
            return
        distribution = REPLACED_LIBRARIES.get(package)
        try:
            if distribution is not None:
                raise ImportError(f"its operators are in {distribution}: pip install {distribution}")
            importlib.import_module("candelabra.utils").cpp_extension.load_library(path)
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            raise OSError(
                f"Could not load this library: {path}. Candelabra loads libraries that candelabra.utils.cpp_extension built, not "
                f"those for PyTorch ({error})"
            ) from error


ops: Any = Operators()


#: Methods that ``__torch_function__`` does not take over, as in PyTorch: Python's own protocols of
#: classes, and what makes a tensor of another class.
NOT_OVERRIDABLE = frozenset(
    {"__dir__", "__init_subclass__", "__class_getitem__", "__getattr__", "as_subclass", "new", "new_tensor"}
)
#: Functions whose calls ask no overrides: those that ask what an object is, as in PyTorch, and
#: einsum, which asks them itself.
PLAIN_FUNCTIONS = frozenset({"einsum", "is_storage", "is_tensor", "typename"})


def assemble(tensor: Any) -> dict[str, Any]:
    """Put the methods on Tensor and return the functions of the package."""
    functions: dict[str, Any] = {}
    for name, operator in OPERATORS.items():
        setattr(ops, name, operator)
        inplace = operator.inplace
        if inplace is not None:
            setattr(ops, inplace.name, inplace)
        if operator.result_type is not None:
            setattr(return_types, name, operator.result_type)
            return_types.print_as(operator.result_type, name, operator.result_type.__match_args__)
        _publish(operator, operator.tags, tensor, functions)
        if inplace is not None and not operator.tags & HIDDEN:
            setattr(tensor, inplace.name, inplace)
            if len(operator.parameters) == 1 or operator.name in FUNCTIONS_IN_PLACE:
                functions[inplace.name] = inplace
    # The names under which pickle finds functions and operators.
    for made in composite.FUNCTIONS.values():
        made.__module__ = "candelabra"
    for name, made in composite.FUNCTIONS.items():
        if name in BY_OPERATOR:
            made = OPERATORS[name]
        functions[name] = made if name in PLAIN_FUNCTIONS else overridable(name, made)
    for name, method in composite.METHODS.items():
        is_public = (name[0] != "_" or name[:2] == "__") and name not in NOT_OVERRIDABLE
        if name in BY_OPERATOR:
            method = OPERATORS[name]
        elif is_public:
            method = overridable(name, method, method=True)
        setattr(tensor, name, method)
    for name, attribute in composite.PROPERTIES.items():
        setattr(tensor, name, attribute if name[0] == "_" else overridable_property(attribute))
    for alias, name in composite.ALIASES.items():
        for suffix in ("", "_"):
            if name + suffix in functions:
                functions[alias + suffix] = functions[name + suffix]
            if hasattr(tensor, name + suffix):
                setattr(tensor, alias + suffix, tensor.__dict__[name + suffix])
    for name in METHODS_AS_FUNCTIONS:
        functions[name] = tensor.__dict__[name]
    tensor.__repr__ = overridable("__repr__", printing.tensor_text, method=True)
    tensor._repr_html_ = printing.tensor_html
    tensor.__array_priority__ = 1000
    _C.Operator.__signature__ = _SignatureAttribute()  # type: ignore[attr-defined]
    tensor.__ilshift__ = OPERATORS["bitwise_left_shift"].inplace
    tensor.__irshift__ = OPERATORS["bitwise_right_shift"].inplace
    functions.update(DTYPE_NAMES)
    return functions


class _SignatureAttribute:
    """``Operator.__signature__``, which `inspect.signature` asks for."""

    def __get__(self, operator: Any, owner: type) -> Signature | None:
        from .catalogue.signatures import signature  # imports inspect, which importing candelabra does not need

        return None if operator is None else signature(operator)


def _publish(operator: Any, tags: int, tensor: type, functions: dict[str, Any]) -> None:
    if tags & HIDDEN:
        return
    if not tags & METHOD_ONLY:
        functions[operator.name] = operator
    if not tags & FUNCTION_ONLY:
        setattr(tensor, operator.name, operator)


#: Functions of candelabra.utils that the package has as well.
UTILS_FUNCTIONS = frozenset({"summary"})


def missing_attribute(name: str) -> Any:
    """Import what is imported on first use only; the package's ``__getattr__``.

    Threads may ask for it at once: a module that another thread imports is waited for.
    """
    import importlib

    if name in SUBPACKAGES:
        try:
            return importlib.import_module(f"candelabra.{name}")
        except MissingPackageError as error:
            raise AttributeError(str(error), name=name, obj=sys.modules["candelabra"]) from error
    if name in LAZY_MODULES:
        return importlib.import_module(f"candelabra.{name}")
    if name in LAZY_FUNCTIONS:
        return getattr(importlib.import_module(f"candelabra.{LAZY_FUNCTIONS[name]}"), name)
    if name in NN_FUNCTIONS:
        return getattr(missing_attribute("nn").functional, name)
    if name in NATIVE_FUNCTIONS:
        return getattr(missing_attribute("nn").functional.native, name)
    if name in UTILS_FUNCTIONS:
        return getattr(missing_attribute("utils"), name)
    if name == "compile":
        return missing_attribute("compiler").compile
    if name == "default_generator":
        return _C.default_generator(_C.get_default_device())
    if name in TAPE_FUNCTIONS:
        return getattr(missing_attribute("autograd"), name)
    from .absent import REASONS

    why = f": {REASONS[name]}" if name in REASONS else ""
    raise AttributeError(
        f"module 'candelabra' has no attribute '{name}'{why}", name=name, obj=sys.modules["candelabra"]
    )


class MissingPackageError(ModuleNotFoundError):
    """A subpackage of Candelabra is asked for whose distribution is not installed.

    Its `name` is not set: with it, ``from candelabra import nn`` would drop the message for one of
    its own. `subpackage` has it.
    """

    def __init__(self, subpackage: str) -> None:
        super().__init__(f"candelabra.{subpackage} is not installed: pip install {SUBPACKAGES[subpackage]}")
        self.subpackage = subpackage


def _stand_in(name: str, folder: str) -> ModuleSpec:
    # Finders hold the global import lock. One that imported something could wait for a thread that
    # waits for this lock.
    place = os.path.join(os.path.dirname(__file__), folder)
    file = os.path.join(place, "__init__.py")
    spec = ModuleSpec(name, SourceFileLoader(name, file), origin=file, is_package=True)
    spec.submodule_search_locations = [place]
    spec.has_location = True
    return spec


def _only_reserves_its_place(package: ModuleType | None) -> bool:
    return getattr(package, "__all__", None) == [] or hasattr(package, "STANDS_IN_FOR")


def _refuse(package: object, name: str) -> None:
    try:
        getattr(package, name)
    except AttributeError as error:
        raise ModuleNotFoundError(str(error)) from None


class MissingSubpackage:
    """Tells what to install when a subpackage of another distribution is imported and not there, or
    finds the package that stands in for it.

    Stands last in ``sys.meta_path``: it is asked only where nothing else finds the module.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Raise where `name` is imported and is a subpackage that a distribution would bring."""
        parent, _, child = name.partition(".")
        subpackage, _, rest = child.partition(".")
        if parent != "candelabra" or subpackage not in SUBPACKAGES:
            return None
        if child in STAND_INS:
            return _stand_in(name, STAND_INS[child])
        package = sys.modules.get(f"candelabra.{subpackage}")
        # The __getattr__ of one that only reserves its place says what is missing.
        if rest and not _only_reserves_its_place(package):
            return None
        # An import is told; importlib.util.find_spec, which only asks whether there is one, gets
        # its None.
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and "importlib._bootstrap" in frame.f_code.co_filename:
            if frame.f_code.co_name == "_find_and_load_unlocked":
                if not rest:
                    raise MissingPackageError(child)
                _refuse(package, rest)
            frame = frame.f_back
        return None


if not any(finder is MissingSubpackage for finder in sys.meta_path):
    sys.meta_path.append(MissingSubpackage)


def directory(namespace: dict[str, Any]) -> Callable[[], list[str]]:
    """Return the package's ``__dir__``, including names that are imported on first use."""

    def names() -> list[str]:
        return sorted({*namespace, *SUBPACKAGES, *LAZY_MODULES, *LAZY_FUNCTIONS, "compile", "default_generator"})

    return names
