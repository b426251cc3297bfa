"""Run the samples and error inputs of an entry of PyTorch's operator database through both
libraries.
"""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from comparison import Difference, aliases, compare, fields, is_nan_or_zero, tensors
from scope import TIED_GRADIENTS, TIES, drops_at_random, values_are_compared
from translate import DEVICE, NotTranslatable, Translator, back, doubled, function, lookup, settle

import candelabra
import candelabra.autograd

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool)

#: The number of samples that are also run with ``out=``, which is slow.
OUT_SAMPLES = 6


@dataclass
class Record:
    """The results of one entry."""

    name: str
    variant: str = ""
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


def resolve(entry: Any) -> Any:
    """Return Candelabra's function for an entry: found by its name, or rewritten if it is a
    function of PyTorch's tests.
    """
    try:
        if (getattr(entry.op, "__module__", None) or "").startswith("torch.testing") and hasattr(entry.op, "__code__"):
            return function(entry.op)
        found = lookup(entry.name) or lookup(f"Tensor.{entry.name}")
        if isinstance(found, candelabra.dtype):
            found = lookup(f"Tensor.{entry.name}")  # the name of a cast is also that of a dtype
        return found if found is not None else function(entry.op)
    except NotTranslatable:
        return None


def run_entry(entry: Any, dtypes: tuple[torch.dtype, ...] = DTYPES, most: int = 0) -> Record:
    """Compare an entry, with at most `most` samples per dtype (0: all)."""
    record = Record(entry.name, entry.variant_test_name)
    ours = resolve(entry)
    if ours is None:
        record.differ("missing", f"there is no candelabra.{entry.name}")
        return record
    for alias in entry.aliases:
        if lookup(alias.name) is None and lookup(f"Tensor.{alias.name}") is None:
            record.differ("missing", f"there is no candelabra.{alias.name}, another name of {entry.name}")
    before = calls_on_the_cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        supported = entry.supported_dtypes("cpu")
        differentiable = entry.supported_backward_dtypes("cpu") if entry.supports_autograd else set()
        for dtype in dtypes:
            if dtype in supported:
                run_samples(record, entry, ours, dtype, dtype in differentiable, most)
        if entry.error_inputs_func is not None:
            run_errors(record, entry, ours)
    fallen = calls_on_the_cpu() - before
    if fallen:
        record.checks["CPU fallback"] += fallen
    return record


def calls_on_the_cpu() -> int:
    """Return how many calls of the device the CPU fallback has computed."""
    return sum(candelabra.backends.fallback_calls(candelabra.device(DEVICE).type).values())


def run_samples(record: Record, entry: Any, ours: Any, dtype: torch.dtype, differentiable: bool, most: int) -> None:
    """Run the samples of one dtype."""
    torch.manual_seed(0)
    try:
        samples = list(entry.sample_inputs("cpu", dtype, requires_grad=differentiable))
    except Exception as error:  # The database cannot create samples of this dtype.
        record.checks[f"no samples ({type(error).__name__})"] += 1
        return
    numbers = range(len(samples)) if not most else sorted({place * len(samples) // most for place in range(most)})
    for position, number in enumerate(numbers):
        sample = samples[number]
        label = f"{str(dtype).removeprefix('torch.')} sample {number} {describe(sample)}"
        try:
            run_sample(record, entry, ours, dtype, sample, position, label)
        except NotTranslatable:
            record.checks["not translatable"] += 1
        except Difference as difference:
            record.differ("value", f"{label}: {difference}")


def detached(value: Any) -> Any:
    """Return the same arguments without gradients and with the same strides."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(detached(item) for item in value)
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return value


def fresh(value: Any) -> Any:
    """Return copies of tensors with their strides, for calls that write."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(fresh(item) for item in value)
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def run_sample(record: Record, entry: Any, ours: Any, dtype: torch.dtype, sample: Any, number: int, label: str) -> None:
    """Compare one sample: the function, its gradient, the method, the in-place variant and
    ``out=``.
    """
    values = values_are_compared(entry.name) and not drops_at_random(entry.name, sample)
    arguments = [sample.input, *sample.args]
    # In-place entries without a function write to their input: PyTorch gets a copy.
    writes = entry.name.endswith("_") and not entry.name.endswith("__")
    prepare = fresh if writes else detached
    their_arguments, their_keywords = prepare(arguments), prepare(sample.kwargs)
    translate = Translator()
    own_arguments, own_keywords = translate(prepare(arguments)), translate(prepare(sample.kwargs))
    try:
        torch.manual_seed(0)
        theirs = entry.op(*their_arguments, **their_keywords)
    except Exception:
        # PyTorch itself rejects this sample in this dtype.
        record.checks["refused by PyTorch"] += 1
        return
    record.samples += 1
    try:
        result = ours(*own_arguments, **own_keywords)
    except NotTranslatable:
        raise
    except Exception as error:
        record.differ("raises", f"{label}: {brief(error)}")
        return

    process = sample.output_process_fn_grad
    own_process = function(process)
    settled = settle_ties(entry.name, sample, theirs, result)

    def reference() -> Any:
        torch.manual_seed(0)
        return process(entry.op(*doubled(prepare(arguments)), **doubled(prepare(sample.kwargs))))

    tolerance = entry_tolerance(entry, dtype)
    compare(process(theirs), own_process(settled), reference, values, tolerance=tolerance)
    record.checks["function"] += 1
    compare_sharing(
        record,
        label,
        theirs,
        result,
        tensors([their_arguments, their_keywords]),
        tensors([own_arguments, own_keywords]),
    )
    if dtype in (torch.float64, torch.float32, torch.bfloat16, torch.complex64) and any(
        tensor.requires_grad for tensor in tensors([arguments, sample.kwargs])
    ):
        # The gradient of equal elements goes to the selected one.
        run_gradient(
            record,
            entry,
            ours,
            sample,
            values and settled is result and not (entry.name in TIED_GRADIENTS and dtype is torch.bfloat16),
            label,
            tolerance,
        )
    run_method(record, entry, sample, theirs, values, label, reference, tolerance)
    run_inplace(record, entry, sample, values, label, tolerance)
    if entry.supports_out and number < OUT_SAMPLES:
        run_out(record, entry, ours, sample, values, label, tolerance)


def settle_ties(name: str, sample: Any, theirs: Any, ours: Any) -> Any:
    """Return our result with PyTorch's indices where both select equal elements."""
    if name not in TIES:
        return ours
    indices, own_indices = (theirs, ours) if isinstance(theirs, torch.Tensor) else (theirs[-1], ours[-1])
    if sample.kwargs.get("stable") or indices.dtype != torch.int64 or tuple(indices.shape) != tuple(own_indices.shape):
        return ours
    position = TIES[name]
    dim = sample.kwargs.get("dim", sample.args[position] if len(sample.args) > position else -1)
    source, chosen = sample.input.detach(), back(own_indices)
    if not isinstance(dim, int) or (
        chosen.numel() and not 0 <= int(chosen.min()) <= int(chosen.max()) < max(source.shape or [1])
    ):
        return ours
    if chosen.ndim == source.ndim - 1:
        chosen, indices = chosen.unsqueeze(dim), indices.unsqueeze(dim)
    if chosen.ndim != source.ndim:
        return ours
    if torch.equal(chosen, indices):
        return ours
    picked, wanted = source.gather(dim, chosen), source.gather(dim, indices)
    if not torch.equal(picked.nan_to_num(), wanted.nan_to_num()):
        return ours
    if isinstance(theirs, torch.Tensor):
        return Translator()(theirs)
    settled = (*ours[:-1], Translator()(theirs[-1]))
    # Operators return struct sequences, composites named tuples.
    return type(ours)(settled) if hasattr(ours, "n_fields") else type(ours)(*settled) if fields(ours) else settled


def entry_tolerance(entry: Any, dtype: torch.dtype) -> tuple[float, float] | None:
    """Return the largest tolerance that PyTorch's own tests of this entry use for this dtype."""
    found = []
    for decorator in entry.decorators:
        for override in getattr(decorator, "decorators", [decorator]):
            tolerance = (
                getattr(override, "args", {}).get(dtype) if isinstance(getattr(override, "args", None), dict) else None
            )
            if tolerance is not None:
                found.append((tolerance.rtol, tolerance.atol))
    return (max(item[0] for item in found), max(item[1] for item in found)) if found else None


def compare_sharing(
    record: Record, label: str, theirs: Any, ours: Any, their_tensors: list[Any], own_tensors: list[Any]
) -> None:
    """Compare which argument each result shares memory with, and the strides of views."""
    their_sharing = aliases(theirs, their_tensors, lambda tensor: tensor.untyped_storage().data_ptr())
    own_sharing = aliases(ours, own_tensors, lambda tensor: tensor.untyped_storage().data_ptr())
    for index, (left, right) in enumerate(zip(tensors(theirs), tensors(ours), strict=True)):
        if left.numel() == 0:
            continue
        if left.is_conj() or left.is_neg():
            # Conjugation is lazy in PyTorch and eager here.
            continue
        if (their_sharing[index] < 0) != (own_sharing[index] < 0):
            wanted = "a copy" if their_sharing[index] < 0 else "a view"
            record.differ("view or copy", f"{label}: result {index} is not {wanted}")
        elif their_sharing[index] >= 0 and steps(left) != steps(right):
            record.differ(
                "view or copy", f"{label}: strides of the view {tuple(right.stride())}, PyTorch {tuple(left.stride())}"
            )


def steps(tensor: Any) -> list[int]:
    """Return the strides of dimensions with more than one element."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1]


def leaves(value: Any) -> list[Any]:
    """Return the tensors that require gradients."""
    return [tensor for tensor in tensors(value) if tensor.requires_grad]


def new_leaves(value: Any) -> Any:
    """Return the same arguments with new leaves: the database creates some as views under
    no_grad.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().requires_grad_() if value.requires_grad else value
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(new_leaves(item) for item in value)
    if isinstance(value, dict):
        return {key: new_leaves(item) for key, item in value.items()}
    return value


def run_gradient(record: Record, entry: Any, ours: Any, sample: Any, values: bool, label: str, tolerance: Any) -> None:
    """Compare the gradients of a random weighting of all outputs."""
    process = sample.output_process_fn_grad

    def differentiate(double: bool) -> tuple[Any, Any, Any]:
        convert = doubled if double else new_leaves
        arguments, keywords = convert([sample.input, *sample.args]), convert(sample.kwargs)
        inputs = leaves([arguments, keywords])
        torch.manual_seed(0)
        outputs = leaves(process(entry.op(*arguments, **keywords)))
        torch.manual_seed(1)
        weights = [torch.randn(output.shape, dtype=output.dtype) for output in reference_outputs or outputs]
        weights = convert(weights)
        return outputs, weights, torch.autograd.grad(outputs, inputs, weights, allow_unused=True)

    reference_outputs: list[Any] = []
    try:
        outputs, weights, theirs = differentiate(False)
        reference_outputs = [output.detach() for output in outputs]
    except Exception:
        # PyTorch cannot differentiate this sample.
        return
    if not outputs:
        return
    translate = Translator(requires_grad=True)
    own_arguments, own_keywords = translate([sample.input, *sample.args]), translate(sample.kwargs)
    inputs = leaves([own_arguments, own_keywords])
    try:
        own_outputs = leaves(function(process)(ours(*own_arguments, **own_keywords)))
        if len(own_outputs) != len(outputs):
            record.differ(
                "gradient", f"{label}: {len(own_outputs)} outputs require gradients, in PyTorch {len(outputs)}"
            )
            return
        result = candelabra.autograd.grad(own_outputs, inputs, translate(weights), allow_unused=True)
    except NotTranslatable:
        raise
    except Exception as error:
        record.differ("gradient", f"{label}: {brief(error)}")
        return
    record.checks["gradient"] += 1
    if not values:
        return
    for index, (left, right) in enumerate(zip(theirs, result, strict=True)):
        if left is None or right is None:
            present = back(right) if left is None and right is not None else left
            if present is not None and not is_nan_or_zero(present):
                record.differ(
                    "gradient",
                    f"{label}: no gradient of input {index}"
                    if right is None
                    else f"{label}: a gradient of input {index}",
                )
            continue
        try:
            compare(
                left, right, lambda index=index: differentiate(True)[2][index], True, f"gradient {index}", tolerance
            )
        except Difference as difference:
            record.differ("gradient", f"{label}: {difference}")


def run_method(
    record: Record, entry: Any, sample: Any, theirs: Any, values: bool, label: str, reference: Any, tolerance: Any
) -> None:
    """Check that the method of the same name gives the same result."""
    if entry.method_variant is None or not isinstance(sample.input, torch.Tensor):
        return
    compare_variant(record, "method", entry.method_variant, sample, theirs, values, label, reference, tolerance)


def compare_variant(
    record: Record,
    kind: str,
    source: Any,
    sample: Any,
    theirs: Any,
    values: bool,
    label: str,
    reference: Any,
    tolerance: Any,
) -> None:
    """Compare another way to call the same operator with PyTorch's result `theirs`."""
    try:
        variant = function(source)
    except NotTranslatable as missing:
        record.differ("missing", f"{missing} ({kind})")
        return
    translate = Translator()
    prepare = detached if kind == "method" else fresh
    arguments, keywords = translate(prepare([sample.input, *sample.args])), translate(prepare(sample.kwargs))
    try:
        result = variant(*arguments, **keywords)
    except NotTranslatable:
        raise
    except Exception as error:
        record.differ(kind, f"{label}: {brief(error)}")
        return
    record.checks[kind] += 1
    process, name = sample.output_process_fn_grad, record.name
    try:
        compare(
            process(theirs),
            function(process)(settle_ties(name, sample, theirs, result)),
            reference,
            values,
            tolerance=tolerance,
        )
    except Difference as difference:
        record.differ(kind, f"{label}: {difference}")


def run_inplace(record: Record, entry: Any, sample: Any, values: bool, label: str, tolerance: Any) -> None:
    """Check the in-place method, if PyTorch supports the sample: the same result, written to the
    input.
    """
    if entry.inplace_variant is None or sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
        return

    def reference() -> Any:
        torch.manual_seed(0)
        return entry.inplace_variant(*doubled(fresh([sample.input, *sample.args])), **doubled(fresh(sample.kwargs)))

    try:
        torch.manual_seed(0)
        theirs = entry.inplace_variant(*fresh([sample.input, *sample.args]), **fresh(sample.kwargs))
    except Exception:
        # The sample does not fit in place (broadcast, promotion); the error inputs test the
        # exception.
        return
    compare_variant(record, "in place", entry.inplace_variant, sample, theirs, values, label, reference, tolerance)


def run_out(record: Record, entry: Any, ours: Any, sample: Any, values: bool, label: str, tolerance: Any) -> None:
    """Check that ``out=`` receives the result and is returned."""
    arguments, keywords = detached([sample.input, *sample.args]), detached(sample.kwargs)

    def theirs_into() -> Any:
        torch.manual_seed(0)
        plain = entry.op(*arguments, **keywords)
        out = (
            torch.empty_like(plain)
            if isinstance(plain, torch.Tensor)
            else tuple(torch.empty_like(item) for item in plain)
        )
        torch.manual_seed(0)
        returned = entry.op(*arguments, **keywords, out=out)
        return out if returned is None else returned

    def reference() -> Any:
        torch.manual_seed(0)
        return entry.op(*doubled(arguments), **doubled(keywords))

    try:
        theirs = theirs_into()
    except Exception:
        # PyTorch does not accept `out=` for this sample.
        return
    translate = Translator()
    own_arguments, own_keywords = translate(arguments), translate(keywords)
    translate_out = Translator()
    out = translate_out(torch.zeros_like(theirs)) if isinstance(theirs, torch.Tensor) else tuple(
        translate_out(torch.zeros_like(item)) for item in theirs
    )  # fmt: skip
    try:
        result = ours(*own_arguments, **own_keywords, out=out)
    except Exception as error:
        record.differ("out=", f"{label}: {brief(error)}")
        return
    record.checks["out="] += 1
    process = sample.output_process_fn_grad
    own_process = function(process)
    try:
        compare(
            process(theirs),
            own_process(settle_ties(entry.name, sample, theirs, out if result is None else result)),
            lambda: process(reference()),
            values,
            "out=",
            tolerance,
        )
    except Difference as difference:
        record.differ("out=", f"{label}: {difference}")
    for given, returned in zip(tensors(out), tensors(result), strict=False):
        if given is not returned and given.data_ptr() != returned.data_ptr():
            record.differ("out=", f"{label}: what is returned is not what was given")


def run_errors(record: Record, entry: Any, ours: Any) -> None:
    """Check that each error input raises an exception of PyTorch's type."""
    torch.manual_seed(0)
    try:
        cases = list(entry.error_inputs("cpu"))
    except Exception as error:
        record.checks[f"no error inputs ({type(error).__name__})"] += 1
        return
    for number, case in enumerate(cases):
        sample = case.sample_input
        label = f"error input {number} {describe(sample)}"
        try:
            entry.op(*fresh([sample.input, *sample.args]), **fresh(sample.kwargs))
        except Exception as error:
            wanted = error
        else:
            # PyTorch 2.13 does not reject it on the CPU.
            continue
        try:
            translate = Translator()
            arguments, keywords = translate([sample.input, *sample.args]), translate(sample.kwargs)
        except (NotTranslatable, RuntimeError):
            record.checks["not translatable"] += 1
            continue
        record.errors += 1
        try:
            ours(*arguments, **keywords)
            settle()
        except Exception as error:
            if not same_kind(error, wanted):
                record.differ("error", f"{label}: {brief(error)}, PyTorch {brief(wanted)}")
        else:
            record.differ("error", f"{label}: nothing raised, PyTorch {brief(wanted)}")


def same_kind(ours: Exception, theirs: Exception) -> bool:
    """Return whether code that catches PyTorch's exception catches ours: by name for PyTorch's own
    classes.
    """
    names = {kind.__name__ for kind in type(ours).__mro__}
    return type(theirs).__name__ in names


def brief(error: BaseException) -> str:
    """Format an exception on one line."""
    text = " ".join(str(error).split())
    if not text:
        text = traceback.format_exception_only(error)[-1].strip()
    return f"{type(error).__name__}: {text[:160]}"


def describe(sample: Any) -> str:
    """Describe a sample's arguments briefly."""

    def short(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            plain = "" if value.is_contiguous() else f" strides {tuple(value.stride())}"
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{plain}"
        if isinstance(value, (tuple, list)):
            return "(" + ", ".join(short(item) for item in value) + ")"
        return repr(value)[:60]

    parts = [
        short(sample.input),
        *(short(item) for item in sample.args),
        *(f"{key}={short(item)}" for key, item in sample.kwargs.items()),
    ]
    return f"({', '.join(parts)[:240]})"
