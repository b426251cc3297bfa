"""Run the inputs of an entry of PyTorch's module database through both libraries."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from comparison import Difference, compare, is_nan_or_zero, tensors
from translate import DEVICE, NotTranslatable, back, doubled, dtype_of
from translate_modules import ModuleTranslator, own_class

import candelabra
import candelabra.autograd

DTYPES = (torch.float64, torch.float32)


@dataclass
class Record:
    """The results of one module."""

    name: str
    samples: int = 0
    errors: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def differ(self, kind: str, text: str) -> None:
        """Record a difference; the first forty are kept."""
        self.kinds[kind] += 1
        if len(self.differences) < 40:
            self.differences.append(f"{kind}: {text}")

    def joined(self, other: Record) -> Record:
        """Merge two records."""
        return Record(
            self.name,
            self.samples + other.samples,
            self.errors + other.errors,
            self.checks + other.checks,
            [*self.differences, *other.differences],
            self.kinds + other.kinds,
        )


def run_module(entry: Any, dtypes: tuple[torch.dtype, ...] = DTYPES) -> Record:
    """Compare an entry."""
    record = Record(entry.name)
    try:
        ours = own_class(entry.module_cls)
    except NotTranslatable as missing:
        record.differ("missing", str(missing))
        return record
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in dtypes:
            if dtype not in entry.supported_dtypes("cpu"):
                continue
            for training in (True, False):
                torch.manual_seed(0)
                inputs = entry.module_inputs_func(
                    entry, device="cpu", dtype=dtype, requires_grad=True, training=training
                )
                for number, sample in enumerate(inputs):
                    if sample.forward_input is None:
                        continue
                    mode = "train" if training else "eval"
                    label = f"{str(dtype).removeprefix('torch.')} {mode} input {number} {sample.desc}".rstrip()
                    record.samples += 1
                    try:
                        Comparison(record, entry, ours, sample, dtype, training, label).run()
                    except NotTranslatable as missing:
                        record.differ("not translatable", f"{label}: {missing}")
                    except Difference as difference:
                        record.differ("value", f"{label}: {difference}")
            if entry.module_error_inputs_func is not None:
                run_errors(record, entry, ours, dtype)
    return record


class Comparison:
    """A module that is created, loaded and called in both libraries."""

    def __init__(
        self, record: Record, entry: Any, ours: Any, sample: Any, dtype: torch.dtype, training: bool, label: str
    ) -> None:  # fmt: skip
        self.record, self.entry, self.sample, self.label = record, entry, sample, label
        self.dtype = dtype
        arguments = sample.constructor_input
        torch.manual_seed(1)
        made = entry.module_cls(*copy.deepcopy(arguments.args), **copy.deepcopy(arguments.kwargs))
        self.theirs = made.to(dtype).train(training)
        self.ours: Any = None
        self.make = ours
        self.training = training

    def fail(self, kind: str, text: str) -> None:
        """Record a difference."""
        self.record.differ(kind, f"{self.label}: {text}")

    def run(self) -> None:
        """Run all comparisons, in order of dependency."""
        arguments = self.sample.constructor_input
        translate = ModuleTranslator()
        try:
            made = self.make(
                *(translate(a) for a in arguments.args), **{k: translate(v) for k, v in arguments.kwargs.items()}
            )
        except NotTranslatable:
            raise
        except Exception as error:
            self.fail("raises", f"the constructor: {brief(error)}")
            return
        self.ours = made.to(dtype_of(self.dtype)).train(self.training)
        if self.entry.is_lazy:
            self.call_lazily()
        self.compare_structure()
        self.compare_state("state dict", load=True)
        random = self.draws_at_random()
        self.compare_calls(values=not random)
        if not random:
            self.compare_state("state after the call", load=False)
        self.compare_copies(values=not random)

    def forward_arguments(self, convert: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return new arguments of a call."""
        given = self.sample.forward_input
        args, kwargs = leaves_of(given.args), leaves_of(given.kwargs)
        return (args, kwargs) if convert is None else (convert(args), convert(kwargs))

    def call_lazily(self) -> None:
        """Make the first call of a lazy module, which determines its parameters' shapes."""
        lazy_keys = list(self.theirs.state_dict())
        if lazy_keys != list(self.ours.state_dict()):
            self.fail("state dict", f"keys before the first call {list(self.ours.state_dict())}, PyTorch {lazy_keys}")
        args, kwargs = self.forward_arguments()
        self.theirs(*args, **kwargs)
        translate = ModuleTranslator()
        self.ours(*(translate(a) for a in args), **{k: translate(v) for k, v in kwargs.items()})
        if type(self.ours).__name__ != type(self.theirs).__name__:
            self.fail("structure", f"became a {type(self.ours).__name__}, PyTorch a {type(self.theirs).__name__}")

    def compare_structure(self) -> None:
        """Compare the repr, and the names of parameters, buffers and modules."""
        text, own_text = repr(self.theirs), repr(self.ours)
        if "function" not in text and "torch" not in text and text != own_text:
            self.fail("repr", f"{own_text!r}, PyTorch {text!r}")
        for kind in ("named_parameters", "named_buffers", "named_modules"):
            names, own_names = ([name for name, _ in getattr(module, kind)()] for module in (self.theirs, self.ours))
            if names != own_names:
                self.fail("structure", f"{kind} {own_names}, PyTorch {names}")
        for (name, parameter), own in zip(self.theirs.named_parameters(), self.ours.parameters(), strict=True):
            if parameter.requires_grad != own.requires_grad:
                self.fail("structure", f"{name}.requires_grad is {own.requires_grad}")
        self.record.checks["structure"] += 1

    def compare_state(self, what: str, load: bool) -> None:
        """Compare the state dicts by key; with `load`, PyTorch's file loaded by Candelabra's module
        and back.
        """
        state, own_state = self.theirs.state_dict(), self.ours.state_dict()
        if list(state) != list(own_state):
            raise Difference(f"{what}: keys {list(own_state)}, PyTorch {list(state)}")
        for key, value in state.items():
            compare(value, own_state[key], lambda: None, not load, f"{what} {key}", None if load else (1e-5, 1e-5))
        if not load:
            return
        file = io.BytesIO()
        torch.save(state, file)
        result = self.ours.load_state_dict(candelabra.load(file))
        if result.missing_keys or result.unexpected_keys:
            self.fail(what, f"loading PyTorch's: {result}")
        # PyTorch's own module is filled with zeros first, so that later comparisons use these
        # values.
        file = io.BytesIO()
        candelabra.save(self.ours.state_dict(), file, format="pytorch")
        file.seek(0)
        kept = torch.load(file, map_location="cpu")  # PyTorch does not have the device
        with torch.no_grad():
            for value in state.values():
                value.zero_()
        answer = self.theirs.load_state_dict(kept)
        if answer.missing_keys or answer.unexpected_keys:
            self.fail(what, f"loading Candelabra's: {answer}")
        self.record.checks["state dict both ways"] += 1

    def draws_at_random(self) -> bool:
        """Return whether two calls with different seeds differ."""
        results = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            args, kwargs = self.forward_arguments()
            results.append(copy.deepcopy(self.theirs)(*args, **kwargs))
        return any(not torch.equal(a, b) for a, b in zip(tensors(results[0]), tensors(results[1]), strict=True))

    def compare_calls(self, values: bool) -> None:
        """Compare outputs, and the gradients of all inputs and parameters."""

        def call(double: bool) -> tuple[Any, list[Any], list[Any]]:
            args, kwargs = self.forward_arguments(doubled if double else None)
            module = copy.deepcopy(before).double() if double else self.theirs
            torch.manual_seed(3)
            output = module(*args, **kwargs)
            inputs = [tensor for tensor in tensors([args, kwargs]) if tensor.requires_grad]
            wanted = [*inputs, *(parameter for parameter in module.parameters() if parameter.requires_grad)]
            outputs = [tensor for tensor in tensors(output) if tensor.requires_grad]
            torch.manual_seed(4)
            weights = [torch.randn(tensor.shape, dtype=torch.float32).to(tensor.dtype) for tensor in outputs]
            gradients = torch.autograd.grad(outputs, wanted, weights, allow_unused=True) if outputs and wanted else ()
            return output, weights, list(gradients)

        before = copy.deepcopy(self.theirs)
        output, weights, gradients = call(False)
        translate = ModuleTranslator(requires_grad=True)
        args, kwargs = self.forward_arguments()
        own_args = tuple(translate(argument) for argument in args)
        own_kwargs = {key: translate(value) for key, value in kwargs.items()}
        try:
            own_output = self.ours(*own_args, **own_kwargs)
        except Exception as error:
            self.fail("raises", brief(error))
            return
        compare(output, batch_sizes_moved(own_output), lambda: call(True)[0], values)
        self.record.checks["output"] += 1
        own_outputs = [tensor for tensor in tensors(own_output) if tensor.requires_grad]
        inputs = [tensor for tensor in tensors([own_args, own_kwargs]) if tensor.requires_grad]
        wanted = [*inputs, *(parameter for parameter in self.ours.parameters() if parameter.requires_grad)]
        if len(own_outputs) != len(weights):
            self.fail("gradient", f"{len(own_outputs)} outputs require gradients, in PyTorch {len(weights)}")
            return
        if not own_outputs or not wanted:
            return
        own_gradients = candelabra.autograd.grad(
            own_outputs, wanted, [ModuleTranslator()(weight) for weight in weights], allow_unused=True
        )
        self.record.checks["gradients"] += 1
        for index, (left, right) in enumerate(zip(gradients, own_gradients, strict=True)):
            if left is None or right is None:
                present = back(right) if left is None and right is not None else left
                if present is not None and not is_nan_or_zero(present):
                    self.fail("gradient", f"gradient {index} is there in one library only")
            elif values:
                compare(left, right, lambda index=index: call(True)[2][index], True, f"gradient {index}")

    def compare_copies(self, values: bool) -> None:
        """Check that a deep copy, a pickled copy and a converted one compute the same."""
        translate = ModuleTranslator()
        args, kwargs = self.forward_arguments()
        own_args, own_kwargs = (
            tuple(translate(a) for a in args),
            {key: translate(value) for key, value in kwargs.items()},
        )
        with candelabra.no_grad():
            expected = copy.deepcopy(self.ours)(*own_args, **own_kwargs)
            copied = pickle.load(io.BytesIO(pickle.dumps(self.ours)))
            if list(copied.state_dict()) != list(self.ours.state_dict()):
                self.fail("pickle", "the pickled copy has other keys")
            again = copied(*own_args, **own_kwargs)
        if values:
            for left, right in zip(tensors(expected), tensors(again), strict=True):
                if not candelabra.equal(left, right) and not bool(left.isnan().any()):
                    self.fail("pickle", "the pickled copy computes something else")
        half = copy.deepcopy(self.ours).half()
        if any(p.is_floating_point() and p.dtype != candelabra.float16 for p in half.parameters()):
            self.fail("conversion", "half() left a parameter in another dtype")
        self.record.checks["copies"] += 1


def batch_sizes_moved(value: Any) -> Any:
    """Return an output with the batch sizes of packed sequences, which are on the CPU, on the
    device.
    """
    if isinstance(value, candelabra.nn.utils.rnn.PackedSequence):
        if value.batch_sizes.device.type != "cpu":
            raise Difference(f"batch_sizes on {value.batch_sizes.device}")
        return value._replace(batch_sizes=value.batch_sizes.to(DEVICE))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(batch_sizes_moved, value))
    return value


def leaves_of(value: Any) -> Any:
    """Return the same arguments with new tensors, as leaves if they require gradients."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return torch.nn.utils.rnn.PackedSequence(leaves_of(value.data), *value[1:])
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(leaves_of(item) for item in value)
    if isinstance(value, dict):
        return {key: leaves_of(item) for key, item in value.items()}
    return value


def run_errors(record: Record, entry: Any, ours: Any, dtype: torch.dtype) -> None:
    """Check that errors have PyTorch's type and message."""
    import re

    for training in (True, False):
        for number, error in enumerate(
            entry.module_error_inputs_func(entry, device="cpu", dtype=dtype, requires_grad=False, training=training)
        ):
            record.errors += 1
            translate = ModuleTranslator()
            given = error.module_error_input
            label = f"error input {number}"
            try:
                module = ours(
                    *(translate(a) for a in given.constructor_input.args),
                    **{key: translate(value) for key, value in given.constructor_input.kwargs.items()},
                )
                if given.forward_input is not None:
                    module(
                        *(translate(a) for a in given.forward_input.args),
                        **{key: translate(value) for key, value in given.forward_input.kwargs.items()},
                    )
            except NotTranslatable:
                record.checks["not translatable"] += 1
            except Exception as raised:
                if not isinstance(raised, error.error_type):
                    record.differ("error", f"{label}: {brief(raised)}, PyTorch raises {error.error_type.__name__}")
                elif not re.search(error.error_regex.replace("torch", "candelabra"), str(raised)) and not re.search(
                    error.error_regex, str(raised)
                ):
                    record.differ("message", f"{label}: {str(raised)!r}, PyTorch {error.error_regex!r}")
            else:
                record.differ(
                    "error",
                    f"{label}: nothing is raised, PyTorch raises {error.error_type.__name__}: {error.error_regex}",
                )


def brief(error: BaseException) -> str:
    """Return the type and the first line of an exception."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
