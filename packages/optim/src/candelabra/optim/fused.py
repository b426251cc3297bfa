"""Base classes of the optimizers that have a fused operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from candelabra import _C, Tensor, enable_grad, ops

from .plain import PlainOptimizer
from .stepping import SteppedOptimizer, as_real, recording


class FusedOptimizer(SteppedOptimizer):
    """An optimizer with a fused operator, and a plain path for devices without a kernel.

    Parameters are stepped in buckets. A bucket holds the parameters of one group with one device
    and one dtype. The option `fused` of a group selects the path: True the operator, by its
    decomposition where the device has no kernel; False the plain path; and None the operator if
    there is a kernel. A ``differentiable`` group always takes the plain path, which is recorded by
    autograd.
    """

    #: Name of the operator in candelabra.ops.
    _operator_name: str

    #: Options of a group that a compiled step reads anew in each call. Without any, steps are not
    #: compiled.
    _live_options: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._operator = getattr(ops, self._operator_name)
        self._plans: dict[int, _Plan] = {}
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._operator = getattr(ops, self._operator_name)
        self._plans = {}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient.

        Parameters
        ----------
        closure
            Called first. It computes the loss and the gradients, and returns the loss.

        Returns
        -------
        Any
            The value that `closure` returned, or None without a closure.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = group["params"]
            grads = [grad for parameter in params if (grad := parameter.grad) is not None]
            plan = self._plans.get(id(params))
            # Fast path: the parameters have not changed since the last step, they form one bucket
            # with a kernel, and all have a gradient.
            if (
                plan is not None
                and plan.fused
                and plan.count == len(grads)
                and plan.unchanged(params)
                and self._may_fuse(group)
            ):
                try:
                    self._step_fused(group, params, grads)
                except RuntimeError:
                    # The operator checks its arguments before it writes. Raise only if the plan
                    # still fits: parameters may have moved to another device.
                    if plan.fits(params):
                        raise
                else:
                    continue
            if grads:
                self._step_buckets(group, params)
        return loss

    def _step_buckets(self, group: dict[str, Any], params: list[Tensor]) -> None:
        plan = self._plans.get(id(params))
        if plan is None or not plan.fits(params):
            plan = self._plans[id(params)] = _Plan(params, self._operator)
        if group.get("fused") and any(bucket[0].is_meta for _, bucket in plan.buckets):
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices, but one is on the device meta"
            )
        for kernel, bucket in plan.buckets:
            active = [parameter for parameter in bucket if parameter.grad is not None]
            grads = [parameter.grad for parameter in active]
            if not active:
                continue
            if (kernel or (group.get("fused") and active[0].is_floating_point())) and self._may_fuse(group):
                self._step_fused(group, active, grads)
            else:
                _C.refuse_recording(f"{type(self).__name__} steps without its fused operator")
                with recording(group):
                    if group.get("differentiable"):
                        self._fresh_states(active)
                    self._step_plain(group, *_as_real(active, grads))

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Step one bucket with the fused operator."""
        raise NotImplementedError(f"{type(self).__name__} defines no _step_fused()")

    def _step_plain(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], owners: list[Tensor]
    ) -> None:
        """Step one bucket with ordinary operators.

        `owners` are the parameters that own the states. They differ from `params` for complex
        parameters, which are stepped as real views.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no _step_plain()")

    def _may_fuse(self, group: dict[str, Any]) -> bool:
        fused = group.get("fused")
        if group.get("differentiable"):
            return False
        return fused if fused is not None else group.get("foreach") is not False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if group.get("fused"):
            for parameter in group["params"]:
                if not parameter.is_floating_point():
                    raise RuntimeError(
                        "`fused=True` requires all the params to be floating point Tensors of supported devices, but one is of "
                        f"{parameter.dtype} on {parameter.device}; "
                        "leave `fused` out to take the plain path"
                    )

    def _by_step(
        self, params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> list[tuple[int, list[Tensor], list[Tensor], list[dict[str, Any]]]]:
        """Group parameters whose states have equal numbers, with the step count after this step."""
        counts = [state["step"] for state in states]
        more = [[state[name] for state in states] for name in self._numbers if name != "step"]
        numbers = list(zip(counts, *more, strict=True)) if more else counts
        first = numbers[0]
        if numbers.count(first) == len(numbers):
            return [(counts[0] + 1, params, grads, states)]
        result = []
        for same in dict.fromkeys(numbers):
            places = [place for place, number in enumerate(numbers) if number == same]
            step = counts[places[0]] + 1
            result.append((step, [params[i] for i in places], [grads[i] for i in places], [states[i] for i in places]))
        return result


class FusedPlainOptimizer(FusedOptimizer, PlainOptimizer):
    """An optimizer with a fused operator whose plain path is that of `PlainOptimizer`.

    The operator takes the parameters, the gradients, the state tensors named in `_kept`, and the
    numbers that `_options` returns.
    """

    #: Names of the state tensors, in the order of the operator's list arguments.
    _kept: tuple[str, ...]

    def _options(self, group: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...]:
        """Return the operator's scalar arguments, from a state before and after the step."""
        raise NotImplementedError(f"{type(self).__name__} defines no _options()")

    _live_options = ("lr", "betas", "eps", "weight_decay", "initial_lr")

    def _after(self, group: dict[str, Any], state: Any) -> dict[str, Any]:
        """Return the numbers of a state after the next step."""
        return {"step": state["step"] + 1}

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> list[dict[str, Any]]:
        every = self.state
        states = [every[parameter] for parameter in params]
        if not all(states):
            for parameter, state in zip(params, states, strict=True):
                if not state:
                    state.update(self._new_state(group, parameter.detach()))
        return states

    def _step_fused(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        for _, bucket, bucket_grads, states in self._by_step(params, grads, self._states(group, params)):
            after = self._after(group, states[0])
            kept = ([state[name] for state in states] for name in self._kept)
            self._operator(bucket, bucket_grads, *kept, *self._options(group, states[0], after))
            if _C.is_recording():
                _C.record_live(partial(self._replay, group, states))
            for state in states:
                state.update(after)

    def _replay(self, group: dict[str, Any], states: list[dict[str, Any]]) -> tuple[Any, ...]:
        """Advance the states as a step does, and return the operator's numbers."""
        check_equal_steps(states)
        after = self._after(group, states[0])
        options = self._options(group, states[0], after)
        for state in states:
            state.update(after)
        return options

    def _step_plain(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], owners: list[Tensor]
    ) -> None:
        for owner in owners:
            self._step_one(group, owner)


def check_equal_steps(states: list[dict[str, Any]]) -> None:
    """Raise if states that were stepped by one kernel have different step counts.

    Raises
    ------
    RuntimeError
        If the counts differ, because a program changed them.
    """
    step = states[0]["step"]
    if any(state["step"] != step for state in states):
        raise RuntimeError(
            "the step counts of an optimizer's states have been changed since the step was compiled; call "
            "candelabra.compiler.reset()"
        )


class _Plan:
    """The partition of one group's parameters into buckets, kept across steps while it is valid."""

    __slots__ = ("buckets", "count", "devices", "dtypes", "fused", "params")

    def __init__(self, params: list[Tensor], operator: Any) -> None:
        self.params = params
        self.count = len(params)
        self.dtypes = [parameter.dtype for parameter in params]
        self.devices = [parameter.device for parameter in params]
        kinds: dict[Any, list[Tensor]] = {}
        for parameter in params:
            kinds.setdefault((str(parameter.device), parameter.dtype), []).append(parameter)
        self.buckets = [(has_kernel(operator, bucket[0]), bucket) for bucket in kinds.values()]
        # True if all parameters form one bucket and that bucket has a kernel.
        self.fused = len(self.buckets) == 1 and self.buckets[0][0]

    def unchanged(self, params: list[Tensor]) -> bool:
        """Return whether `params` is the same list with the same dtypes."""
        return (
            self.params is params
            and self.count == len(params)
            and self.dtypes == [parameter.dtype for parameter in params]
        )

    def fits(self, params: list[Tensor]) -> bool:
        """Return whether `params` is the same list with the same dtypes and devices."""
        return self.unchanged(params) and self.devices == [parameter.device for parameter in params]


def has_kernel(operator: Any, parameter: Tensor) -> bool:
    """Return whether the parameter is floating point and its device has a kernel for `operator`."""
    return bool(parameter.is_floating_point() and operator.has_kernel(parameter.device))


def _as_real(params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    if not params[0].is_complex():
        return params, grads, params
    # As in PyTorch, the real and imaginary parts are stepped as two real numbers.
    return [as_real(p) for p in params], [as_real(g) for g in grads], params
