"""Options of all functions of this folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StateDictOptions:
    """How states are taken and set.

    Attributes
    ----------
    full_state_dict : bool
        Take whole tensors instead of sharded ones, or expect them.
    cpu_offload : bool
        Take the tensors to host memory. With `full_state_dict`, only rank 0 gets them, and the
        others an empty dict.
    ignore_frozen_params : bool
        Leave out parameters that require no gradient.
    keep_submodule_prefixes : bool
        Whether the names of `submodules` have their prefix.
    strict : bool
        Whether names may neither be missing nor unknown.
    broadcast_from_rank0 : bool
        Only rank 0 has the state that is set; needs `full_state_dict`.
    flatten_optimizer_state_dict : bool
        Take the state of optimizers as a flat dict.
    dsd_fqn_modifiers : str
        Has no effect.

    Examples
    --------
    >>> from candelabra.distributed.checkpoint.state_dict import StateDictOptions
    >>> StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
