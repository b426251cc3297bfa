"""Save and load state dicts: the parameters and buffers of a module by path."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from candelabra import _C, Tensor, no_grad

from ...parameter import Parameter, is_lazy
from .hooks import RemovableHandle

if TYPE_CHECKING:
    from ..module import Module

EXTRA_STATE = "_extra_state"


def _warn_of_no_op(key: str) -> None:
    _C.warn(
        f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op. "
        "(Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the module instead "
        "of copying them in place?)",
    )


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Hold the keys that `load_state_dict` did not find and those it did not expect."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


#: PyTorch's repr shows this class name.
IncompatibleKeys = _IncompatibleKeys


class StateDict:
    """Implement the methods of `Module` that create and load state dicts."""

    _version: int = 1
    _swaps: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    # ---- saving

    def get_extra_state(self) -> Any:
        """Return additional state for the state dict.

        A module that defines this method must also define `set_extra_state`.
        """
        raise RuntimeError(
            f"{type(self).__name__} has no extra state; a module that has some defines both get_extra_state() and set_extra_state()"
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(
            f"{type(self).__name__} was given extra state by load_state_dict but defines no set_extra_state() to take it"
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add the state of this module, without its submodules, to `destination`."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return the parameters and persistent buffers of this module and its submodules, by path.

        The tensors share memory with the module. Unless `keep_vars` is set, they are detached.

        Examples
        --------
        >>> from candelabra import nn
        >>> list(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).state_dict())
        ['0.weight', '0.bias']
        """
        if args:  # the legacy positional form
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after this module is saved.

        The hook may modify the state dict in place.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return self._register_state_dict_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module is saved."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    # ---- loading

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = (
            (lambda *arguments: hook(self, *arguments)) if with_module else hook
        )
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before loading.

        The call is ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``.
        """
        handle = RemovableHandle(self._load_state_dict_pre_hooks)

        def with_module(*arguments: Any) -> Any:
            return hook(self, *arguments)

        self._load_state_dict_pre_hooks[handle.id] = with_module
        return handle

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading.

        The hook may modify the two lists of keys in place.
        """
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def _take(self, name: str, mine: Tensor, given: Tensor, assign: bool) -> None:
        """Load one tensor: copy its values, or take it itself."""
        if self._swaps and isinstance(mine, Parameter):
            with no_grad():
                new = given.detach() if assign else mine.copy_(given).detach()
            mine._swap(Parameter(new, mine.requires_grad))
        elif not assign:
            with no_grad():
                mine.copy_(given)
        elif isinstance(mine, Parameter) and not isinstance(given, Parameter):
            setattr(self, name, Parameter(given, requires_grad=mine.requires_grad))
        else:
            setattr(self, name, given)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the state of this module, without its submodules, and collect the errors."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        kept = {name: buffer for name, buffer in self._buffers.items() if name not in self._non_persistent_buffers_set}
        own = {**self._parameters, **kept}
        for name, mine in own.items():
            if mine is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected candelabra.Tensor or Tensor-like object from checkpoint but '
                    f"received {type(given)}"
                )
                continue
            if is_lazy(mine):
                continue  # the lazy module's load hook has already materialized it if possible
            if mine.ndim == 0 and given.ndim == 1 and given.shape[0] == 1:
                given = given[0]  # old checkpoints store scalars as vectors of one element
            if given.shape != mine.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current model is "
                    f"{mine.shape}."
                )
                continue
            if mine.is_meta and not given.is_meta and not assign:
                _warn_of_no_op(key)
            try:
                self._take(name, mine, given, assign)
            except Exception as error:
                action = "swapping" if assign else "copying"
                error_msgs.append(
                    f'While {action} the parameter named "{key}", whose dimensions in the model are {mine.shape} and whose dimensions in '
                    f"the checkpoint are {given.shape}, an exception occurred : {error.args}."
                )

        extra_key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, *rest = key[len(prefix) :].split(".", 1)
                    # A key with more components belongs to a submodule, which checks it itself.
                    if (name not in self._modules) if rest else (name not in own):
                        unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors of `state_dict` into this module and its submodules.

        Parameters
        ----------
        state_dict
            Tensors by path, as returned by `state_dict`.
        strict
            Whether missing or unexpected keys are an error.
        assign
            Whether to replace the module's tensors by the given ones, including dtype and device,
            instead of copying the values.

        Returns
        -------
        IncompatibleKeys
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            If any key or shape does not match. The message lists all problems by key.

        Examples
        --------
        >>> from candelabra import nn
        >>> nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        entries = OrderedDict(state_dict)

        def load(module: Any, below: dict[str, Any], prefix: str) -> None:
            local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(below, prefix, local_metadata, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = f"{prefix}{name}."
                    load(
                        child,
                        {key: value for key, value in below.items() if key.startswith(child_prefix)},
                        child_prefix,
                    )
            incompatible = IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise RuntimeError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                        "incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, entries, "")
        if strict:
            if unexpected:
                errors.insert(
                    0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in unexpected))
                )
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in missing)))
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            )
        return IncompatibleKeys(missing, unexpected)
