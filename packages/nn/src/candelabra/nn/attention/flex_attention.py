"""Compute attention with scores and masks that functions of one's own define.

`flex_attention` computes the whole matrix of scores with the operators of the installed backend, so
that any differentiable function can change them. Source: Dong et al., 2024.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import candelabra
from candelabra import _C, Tensor
from candelabra import accelerator as _accelerator

from ..functional import pad
from .block_mask import (
    DEFAULT_BLOCK,
    WHOLE_BLOCK,
    BlockMask,
    MaskMod,
    from_ordered,
    noop_mask,
    sliced_mask_mod,
    to_ordered,
)

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

#: PyTorch's switch to run functions eagerly, as they always run here.
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False


class FlexKernelOptions(TypedDict, total=False):
    """Name the options of PyTorch's Triton kernels; they are accepted and have no effect."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: str


class AuxRequest(NamedTuple):
    """Say which further results `flex_attention` returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Hold the further results; None for those that were not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _over_indices(function: Callable[..., Tensor], scores: bool) -> Callable[..., Tensor]:
    """Return the function of scalars as one of the whole batch, heads, queries and keys."""
    from candelabra.func import vmap  # type: ignore[attr-defined, unused-ignore]

    prefix = (0,) if scores else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, in_dims=(*prefix, *dims))
    return function


def _indices(batch: int, heads: int, queries: int, keys: int, device: Any) -> list[Tensor]:
    return [candelabra.arange(count, device=device) for count in (batch, heads, queries, keys)]


def _takes_scores(function: Any) -> bool:
    """Return whether a function changes scores, and is not a mask."""
    if hasattr(function, "__code__") or not callable(function):
        signature = inspect.signature(function)
    else:
        signature = inspect.signature(function.__call__)
    count = sum(
        parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in signature.parameters.values()
    )
    if count not in (4, 5):
        raise AssertionError(f"expected a function of 4 indices, or of a score and 4 indices, but got one of {count}")
    return count == 5


def _device(device: Any) -> Any:
    return (_accelerator.current_accelerator() or "cpu") if device is None else device


def create_mask(
    mod_fn: ScoreMod | MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the boolean mask (B, H, Q_LEN, KV_LEN) of a function.

    Parameters
    ----------
    mod_fn
        A function of batch, head, query and key that returns whether the key is seen; or a function
        of a score and these, which returns minus infinity for keys that are not seen.
    B, H, Q_LEN, KV_LEN
        The sizes. None stands for 1.
    device
        Default: the accelerator, if there is one.

    Examples
    --------
    >>> from candelabra.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 3, device="cpu")
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    device = _device(device)
    indices = _indices(*sizes, device)
    if _takes_scores(mod_fn):
        scores = _over_indices(mod_fn, True)(candelabra.zeros(*sizes, device=device), *indices)
        return ~candelabra.isneginf(scores)
    return _over_indices(mod_fn, False)(*indices)


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the blocks of the mask that a function of batch, head, query and key defines.

    Parameters
    ----------
    mask_mod
        The function; it returns whether the query sees the key.
    B, H, Q_LEN, KV_LEN, device
        As in `create_mask`.
    BLOCK_SIZE
        The number of queries and of keys in a block.
    separate_full_blocks
        Whether blocks without masked pairs are listed apart.
    compute_dq_write_order, dq_kv_order
        For PyTorch's deterministic FLASH kernels; not supported.

    Raises
    ------
    AssertionError
        If `mask_mod` is not a function of four indices.
    NotImplementedError
        For `compute_dq_write_order`.

    Examples
    --------
    See `BlockMask`.
    """
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask(): there are no kernels here that need compute_dq_write_order")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    batch, heads, rows, columns = padded.shape
    blocks = padded.view(batch, heads, rows // size[0], size[0], columns // size[1], size[1])
    seen = blocks.sum(dim=(3, 5))
    full = (seen == size[0] * size[1]) if separate_full_blocks else None
    partial = seen > 0 if full is None else (seen > 0) & ~full
    full_counts, full_places = (None, None) if full is None else to_ordered(full)
    return BlockMask.from_kv_blocks(
        *to_ordered(partial),
        full_kv_num_blocks=full_counts,
        full_kv_indices=full_places,
        BLOCK_SIZE=size,  # type: ignore[arg-type]
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the function of the union of masks.

    Raises
    ------
    RuntimeError
        If an argument is not callable.
    """
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=candelabra.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Return the function of the intersection of masks.

    Raises
    ------
    RuntimeError
        If an argument is not callable.

    Examples
    --------
    >>> from candelabra.nn.attention.flex_attention import and_masks, create_mask
    >>> window = and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv < 2)
    >>> create_mask(window, 1, 1, 3, 3, device="cpu")[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=candelabra.int32)
    """
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=candelabra.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return attention with scores that `score_mod` changes and a mask of `block_mask`.

    Parameters
    ----------
    query, key, value
        (B, Hq, L, E), (B, Hkv, S, E) and (B, Hkv, S, Ev).
    score_mod
        A function of a score and the numbers of the batch, head, query and key: scalars, over which
        it is vectorized.
    block_mask
        The mask. Its function is applied to every pair of a query and a key.
    scale
        Default: ``1 / sqrt(E)``.
    enable_gqa
        Whether several query heads may share a head of keys and values.
    return_lse
        Deprecated: whether to also return the log-sum-exp of the scores.
    kernel_options
        Accepted for compatibility.
    return_aux
        Which further results to return.

    Returns
    -------
    Tensor
        (B, Hq, L, Ev); with `return_lse`, also (B, Hq, L); with `return_aux`, also an `AuxOutput`.
        Rows of queries that see no key are zero.

    Raises
    ------
    ValueError
        If sizes or the number of heads do not fit.
    RuntimeError
        If dtypes or devices differ, or the mask is a part of another.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.attention.flex_attention import flex_attention
    >>> x = candelabra.ones(1, 2, 3, 4)
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - (q - kv).abs()).shape
    candelabra.Size([1, 2, 3, 4])
    """
    _check_inputs(query, key, value, enable_gqa, block_mask)
    if block_mask is not None:
        _check_mask(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        _C.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
        )
    scores, value = _scores(query, key, value, score_mod, block_mask, scale)
    # Rows without a key would be NaN.
    seen = (scores != -math.inf).any(-1, keepdim=True)
    weights = candelabra.where(seen, candelabra.where(seen, scores, 0.0).softmax(-1), 0.0)
    out = weights.to(query.dtype) @ value
    if return_aux is None and not return_lse:
        return out
    lse = candelabra.where(seen.squeeze(-1), candelabra.where(seen, scores, 0.0).logsumexp(-1), -math.inf)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)


def _scores(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: BlockMask | None, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Return the scores (B, Hq, L, S), and the values with as many heads as the queries."""
    batch, heads = query.shape[:2]
    group = heads // key.shape[1]
    if group > 1:
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    if key.shape[0] != batch:
        key, value = (x.expand(batch, *x.shape[1:]) for x in (key, value))
    working = candelabra.float64 if query.dtype is candelabra.float64 else candelabra.float32
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.to(working) @ key.to(working).transpose(-2, -1)) * factor
    indices = _indices(batch, heads, query.shape[-2], key.shape[-2], query.device)
    if score_mod is not None:
        scores = _over_indices(score_mod, True)(scores, *indices).to(working)
    if block_mask is not None:
        scores = candelabra.where(_seen(block_mask, indices), scores, -math.inf)
    return scores, value


def _seen(block_mask: BlockMask, indices: list[Tensor]) -> Tensor:
    """Return which pairs the mask allows: its function decides in partial blocks only."""
    rows, columns = (places // size for places, size in zip(indices[2:], block_mask.BLOCK_SIZE, strict=True))

    def spread(counts: Tensor, blocks: Tensor) -> Tensor:
        dense = from_ordered(counts, blocks, blocks.shape[-1]).bool()
        return dense.index_select(-2, rows).index_select(-1, columns)

    seen = spread(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.mask_mod is not noop_mask:
        seen = seen & _over_indices(block_mask.mask_mod, False)(*indices)
    if block_mask.full_kv_num_blocks is not None and block_mask.full_kv_indices is not None:
        seen = seen | spread(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return seen


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, block_mask: BlockMask | None) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if not query.device == key.device == value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and E={key.shape[-1]}."
        )
    heads, key_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != key_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={key_heads}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % key_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key_heads}."
        )
    if query.shape[0] != key.shape[0]:
        if block_mask is None:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask=None, "
                f"Bq={query.shape[0]}, and Bkv={key.shape[0]}."
            )
        if key.shape[0] != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={query.shape[0]} and Bkv={key.shape[0]}")


def _check_mask(query: Tensor, key: Tensor, block_mask: BlockMask) -> None:
    if block_mask.mask_mod is sliced_mask_mod:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            f"Expect q/k/v and block_mask to be on the same device but got {query.device} and {block_mask.kv_num_blocks.device}."
        )
    if query.shape[0] != key.shape[0] and block_mask.kv_num_blocks.shape[0] != query.shape[0]:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the same batch size, but got "
            f"Bq={query.shape[0]}, Bkv={key.shape[0]}, B_block_mask={block_mask.kv_num_blocks.shape[0]}."
        )
    lengths, expected = (query.shape[-2], key.shape[-2]), block_mask.shape[-2:]
    if block_mask.BLOCK_SIZE == (WHOLE_BLOCK, WHOLE_BLOCK) or lengths == expected:
        return
    advice = (
        "As the block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
        if lengths[0] > expected[0] or lengths[1] > expected[1]
        else "As the block mask was created for a larger length than you're using it for, you can either 1. create a new block mask with the "
        "correct length, or 2. 'adjust' the existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len). This "
        "essentially 'crops' the block mask to the upper left corner, which does not work for all mask_mods!"
    )
    raise ValueError(
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and kv_len={lengths[1]}. {advice}"
    )


__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip
