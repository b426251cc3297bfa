"""Compare compiled modules with the same modules as written, bit for bit."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from comparison import tensors
from module_runner import Record, brief
from translate import NotTranslatable, dtype_of
from translate_modules import ModuleTranslator, own_class

import candelabra
import candelabra.autograd

#: One ordinary call, two that are recorded and two replays.
CALLS = 5


def run_compiled(entry: Any) -> Record:
    """Run an entry's inputs through a module as written and through a compiled copy."""
    record = Record(entry.name)
    try:
        ours = own_class(entry.module_cls)
    except NotTranslatable as missing:
        record.differ("missing", str(missing))
        return record
    dtype = torch.float32 if torch.float32 in entry.supported_dtypes("cpu") else torch.float64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training in (True, False):
            inputs = entry.module_inputs_func(entry, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for number, sample in enumerate(inputs):
                if sample.forward_input is None:
                    continue
                label = f"{'train' if training else 'eval'} input {number} {sample.desc}".rstrip()
                try:
                    compare_sample(record, ours, sample, dtype, training, label)
                except NotTranslatable:
                    record.checks["not translatable"] += 1
    return record


def compare_sample(record: Record, ours: Any, sample: Any, dtype: Any, training: bool, label: str) -> None:
    """Compare the calls with one input, with and without gradients."""
    translate = ModuleTranslator()
    given = sample.constructor_input
    candelabra.manual_seed(1)
    plain = ours(*(translate(a) for a in given.args), **{k: translate(v) for k, v in given.kwargs.items()})
    plain = plain.to(dtype_of(dtype)).train(training)
    results = call(plain, sample, True, 0)  # the first call of a lazy module
    if isinstance(results, str):
        return
    record.samples += 1
    for with_gradients in (True, False):
        expected_module, module = copy.deepcopy(plain), copy.deepcopy(plain)
        compiled = candelabra.compile(module)
        for number in range(CALLS):
            expected = call(expected_module, sample, with_gradients, number)
            found = call(compiled, sample, with_gradients, number)
            if isinstance(expected, str) or isinstance(found, str):
                if expected != found:
                    record.differ("raises", f"{label}, call {number}: {found}, as written {expected}")
                continue
            states = [list(one.state_dict().values()) for one in (expected_module, module)]
            if not all(map(identical, [expected, states[0]], [found, states[1]])):
                record.differ("value", f"{label}, call {number}, {'with' if with_gradients else 'without'} gradients")
                return
        made = compiled._compiled_call.compiled
        record.checks["replayed" if made.forwards.programs or made.replayer.programs else "as written"] += 1


def call(module: Any, sample: Any, with_gradients: bool, seed: int) -> list[Any] | str:
    """Return the results of a call and the gradients of its inputs and of the parameters, or the
    exception in words.
    """
    translate = ModuleTranslator(requires_grad=with_gradients)
    given = sample.forward_input
    args = tuple(translate(argument) for argument in given.args)
    kwargs = {key: translate(value) for key, value in given.kwargs.items()}
    candelabra.manual_seed(seed)
    try:
        with candelabra.set_grad_enabled(with_gradients):
            output = module(*args, **kwargs)
        outputs = [tensor for tensor in tensors(output) if tensor.requires_grad]
        inputs = [tensor for tensor in tensors([args, kwargs]) if tensor.requires_grad]
        wanted = [*inputs, *(parameter for parameter in module.parameters() if parameter.requires_grad)]
        gradients: tuple[Any, ...] = ()
        if outputs and wanted:
            weights = [candelabra.ones_like(tensor) for tensor in outputs]
            gradients = candelabra.autograd.grad(outputs, wanted, weights, allow_unused=True)
    except Exception as error:
        return brief(error)
    return [*tensors(output), *gradients]


def identical(a: list[Any], b: list[Any]) -> bool:
    """Return whether two lists of tensors are the same bits, but for the bits of NaN."""
    return len(a) == len(b) and all(map(_is_one, a, b))


def _is_one(a: Any, b: Any) -> bool:
    if not isinstance(a, candelabra.Tensor) or not isinstance(b, candelabra.Tensor):
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(candelabra.allclose(a, b, 0, 0, equal_nan=True))
