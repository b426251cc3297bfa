"""The names that PyTorch's files use for Candelabra's classes and functions, in both directions."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Modules whose names PyTorch keeps elsewhere. A name ending in a dot stands for its submodules;
#: they keep their own names if PyTorch's ends in a dot too.
_MODULES = {
    "candelabra.amp.autocasting": "torch.amp.autocast_mode",
    "candelabra.amp.functions": "torch.amp.autocast_mode",
    "candelabra.autograd.anomaly": "torch.autograd.anomaly_mode",
    "candelabra.autograd.checkpoint": "torch.utils.checkpoint",
    "candelabra.autograd.func.": "torch.func",
    "candelabra.autograd.transforms.": "torch.func",
    "candelabra.autograd.walks": "torch.autograd",
    "candelabra.composite.": "torch",
    "candelabra.defaults": "torch",
    "candelabra.distributions.combined.": "torch.distributions.",
    "candelabra.distributions.continuous.": "torch.distributions.",
    "candelabra.distributions.discrete.": "torch.distributions.",
    "candelabra.distributions.gammas.": "torch.distributions.",
    "candelabra.distributions.multivariate.": "torch.distributions.",
    "candelabra.distributions.transforms.": "torch.distributions.transforms",
    "candelabra.fft.": "torch.fft",
    "candelabra.grad_mode": "torch.autograd.grad_mode",
    "candelabra.linalg.": "torch.linalg",
    "candelabra.nn.functional.": "torch.nn.functional",
    "candelabra.nn.modules.containers": "torch.nn.modules.container",
    "candelabra.nn.modules.convolution": "torch.nn.modules.conv",
    "candelabra.nn.modules.embedding": "torch.nn.modules.sparse",
    "candelabra.nn.modules.multihead_attention": "torch.nn.modules.activation",
    "candelabra.numeric_info": "torch",
    "candelabra.optim.adafactor": "torch.optim",
    "candelabra.optim.lr_scheduler.": "torch.optim.lr_scheduler",
    "candelabra.optim.muon": "torch.optim",
    "candelabra.settings": "torch",
    "candelabra.utils.data.collate": "torch.utils.data._utils.collate",
}
#: Names that PyTorch keeps elsewhere than the rest of their module.
_NAMES = {
    ("candelabra", "Storage"): ("torch.storage", "UntypedStorage"),
    ("candelabra", "Generator"): ("torch._C", "Generator"),
    ("candelabra.nn.modules.pixelshuffle", "ChannelShuffle"): ("torch.nn.modules.channelshuffle", "ChannelShuffle"),
    ("candelabra.nn.modules.multihead_attention", "NonDynamicallyQuantizableLinear"): (
        "torch.nn.modules.linear",
        "NonDynamicallyQuantizableLinear",
    ),
}
#: Where PyTorch's functions in C++ are.
_BUILTINS = {
    "torch._C._fft": "torch.fft",
    "torch._C._linalg": "torch.linalg",
    "torch._C._nn": "torch.nn.functional",
    "torch._C._special": "torch.special",
}
_OWN_NAMES = {theirs: own for own, theirs in _NAMES.items()}


def in_pytorch(module: str, name: str) -> tuple[str, str]:
    """Return the module and the name under which PyTorch's files have a class or a function.

    Examples
    --------
    >>> from candelabra.serialization.pytorch_names import in_pytorch
    >>> in_pytorch("candelabra.nn.modules.convolution", "Conv2d")
    ('torch.nn.modules.conv', 'Conv2d')
    >>> in_pytorch("candelabra.distributions.continuous.normal", "Normal")
    ('torch.distributions.normal', 'Normal')
    >>> in_pytorch("fractions", "Fraction")
    ('fractions', 'Fraction')
    """
    if module != "candelabra" and not module.startswith("candelabra."):
        return module, name
    if (module, name) in _NAMES:
        return _NAMES[module, name]
    if module in ("candelabra.nn.modules.normalization", "candelabra.nn.modules.lazy_layers"):
        module = f"candelabra.nn.modules.{_layer_file(name, module)}"
    if module in _MODULES:
        return _MODULES[module], name
    for prefix, replacement in _MODULES.items():
        if prefix.endswith(".") and module.startswith(prefix):
            return replacement + module.removeprefix(prefix) if replacement.endswith(".") else replacement, name
    return f"torch{module.removeprefix('candelabra')}", name


def _layer_file(name: str, module: str) -> str:
    """Return PyTorch's file of a normalization or of a lazy layer."""
    for part, file in (("Batch", "batchnorm"), ("Instance", "instancenorm"), ("Conv", "conv"), ("Linear", "linear")):
        if part in name:
            return file
    return module.rpartition(".")[2]


def in_candelabra(module: str, name: str) -> Any:
    """Return Candelabra's object of a name in PyTorch.

    It is looked up in the module of the same name, in the packages around it, because PyTorch
    divides some of them into other files, and then in folders that PyTorch does not have.

    Raises
    ------
    AttributeError
        If there is no such object.

    Examples
    --------
    >>> from candelabra.serialization.pytorch_names import in_candelabra
    >>> in_candelabra("torch.functional", "einsum")
    <function einsum ...>
    """
    if (module, name) in _OWN_NAMES:
        module, name = _OWN_NAMES[module, name]
    if module in _BUILTINS:
        # PyTorch's functions in C++ have the name of their package before their own.
        module, name = _BUILTINS[module], name.removeprefix(f"{module.removeprefix('torch._C._')}_")
    place = f"candelabra{module.removeprefix('torch').removeprefix('candelabra')}"
    places = []
    while place:
        places.append(place)
        place = place.rpartition(".")[0]
    places += [
        own + module.removeprefix(theirs)
        for own, theirs in _MODULES.items()
        if theirs.endswith(".") and module.startswith(theirs)
    ]
    for place in places:
        try:
            found = importlib.import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    raise AttributeError(
        f"Can't get attribute {name!r} on <module {module!r}>: the file names {module}.{name}, which Candelabra does not have"
    )


def names_in_files(thing: Any) -> list[str]:
    """Return the full names by which files may refer to a class or a function."""
    module, name = thing.__module__, thing.__qualname__
    own, theirs = f"{module}.{name}", ".".join(in_pytorch(module, name))
    return [own] if own == theirs else [own, theirs]
