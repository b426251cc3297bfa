"""Represent masks of attention by blocks: which blocks of keys each block of queries attends to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

#: The default size of a block, and the size that stands for "one block of everything".
DEFAULT_BLOCK, WHOLE_BLOCK = 128, 1 << 30


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return true for every pair of a query and a key."""
    return batch.new_ones((), dtype=candelabra.bool)


def sliced_mask_mod(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Raise RuntimeError: the indices of a part of a mask are not those of the whole."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def from_ordered(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    """Return which blocks (..., rows, columns) the first `counts` of the `indices` name, as
    int32.
    """
    valid = candelabra.arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    # Entries beyond the count have no meaning; they go to a column that is cut off.
    places = candelabra.where(valid, indices, columns).long()
    dense = candelabra.zeros(*indices.shape[:-1], columns + 1, dtype=candelabra.int32, device=indices.device)
    return dense.scatter(-1, places, 1)[..., :columns].contiguous()


def to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of blocks in each row, and the columns, the used ones first."""
    dense = dense.to(candelabra.int32)
    columns = candelabra.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(candelabra.int32), columns.to(candelabra.int32).contiguous()


def _transposed(counts: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return to_ordered(from_ordered(counts, indices, indices.shape[-1]).transpose(-2, -1))


class BlockMask:
    """Represent a mask of attention by blocks.

    Create it with `create_block_mask`, or with `from_kv_blocks`.

    Parameters
    ----------
    seq_lengths
        The number of queries and of keys.
    kv_num_blocks, kv_indices
        (B, H, rows) and (B, H, rows, columns): for each block of queries, the number of blocks of
        keys that the mask allows in part, and their numbers, which come first.
    full_kv_num_blocks, full_kv_indices
        The same for blocks that the mask allows as a whole.
    q_num_blocks, q_indices, full_q_num_blocks, full_q_indices
        The same for each block of keys.
    BLOCK_SIZE
        The number of queries and of keys in a block.
    mask_mod
        The function of batch, head, query and key that the mask was made of.
    dq_write_order, dq_write_order_full, dq_kv_order, dq_kv_order_spt
        Kept for kernels that use them; those of the backends do not.

    Raises
    ------
    RuntimeError
        If `kv_indices` has fewer than two dimensions.
    AssertionError
        If only one of a pair is given.

    Examples
    --------
    >>> from candelabra.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 256, 256, device="cpu")
    >>> mask.shape, mask.sparsity()
    ((1, 1, 256, 256), 25.0)
    """

    _TENSOR_ATTRS = [
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks",
        "full_q_indices", "dq_write_order", "dq_write_order_full", "dq_kv_order",
    ]  # fmt: skip
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_kv_order_spt"]

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK, DEFAULT_BLOCK),
        mask_mod: MaskMod = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        _check_pairs(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """Return a mask whose blocks of keys are given; those of queries follow from them.

        The parameters are those of the class. By default, every block is complete.
        """
        _check_pairs(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        counts = places = full_counts = full_places = None
        if compute_q_blocks:
            counts, places = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full_counts, full_places = _transposed(full_kv_num_blocks, full_kv_indices)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        if dq_kv_order is not None and not isinstance(dq_kv_order, bool | Tensor):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            counts,
            places,
            full_counts,
            full_places,
            size,
            noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return the attributes as a tuple; with `flatten`, the two lengths and sizes one by
        one.
        """
        tensors = (getattr(self, name) for name in self._TENSOR_ATTRS)
        lengths, size = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *tensors, self.dq_kv_order_spt, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch, the heads, the number of queries and that of keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of pairs of a query and a key."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of the mask in blocks that are not computed."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return which blocks are computed: (..., rows, columns), of int32."""
        dense = from_ordered(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        return dense | from_ordered(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def to(self, device: Any) -> BlockMask:
        """Return the mask on a device."""
        tensors = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        moved: dict[str, Any] = {name: None if x is None else x.to(device) for name, x in tensors.items()}
        context = {name: getattr(self, name) for name in self._CONTEXT_ATTRS}
        return BlockMask(**moved, **context)

    def __getitem__(self, index: Any) -> BlockMask:
        self._refuse_order("Slicing")
        given = index if isinstance(index, tuple) else (index,)
        padded = (*given, *[slice(None)] * 3)[:3]
        # A number keeps its dimension.
        parts = tuple(
            slice(part % size, part % size + 1) if isinstance(part, int) and -size <= part < size else part
            for part, size in zip(padded, self.kv_num_blocks.shape[:3], strict=False)
        )
        full = self.full_kv_num_blocks is not None and self.full_kv_indices is not None
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[parts],
            self.kv_indices[parts],
            self.full_kv_num_blocks[parts] if full else None,  # type: ignore[index]
            self.full_kv_indices[parts] if full else None,  # type: ignore[index]
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=sliced_mask_mod,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
            dq_kv_order=self.dq_kv_order_spt,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Return the mask of the first queries and keys."""
        self._refuse_order("Adjusting")
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def cropped(counts: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
            if counts is None or indices is None:
                return None, None
            return to_ordered(from_ordered(counts, indices, indices.shape[-1])[..., :rows, :columns])

        counts, indices = cropped(self.kv_num_blocks, self.kv_indices)
        return BlockMask.from_kv_blocks(
            counts,  # type: ignore[arg-type]
            indices,  # type: ignore[arg-type]
            *cropped(self.full_kv_num_blocks, self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
            dq_kv_order=self.dq_kv_order_spt,
        )

    def _refuse_order(self, what: str) -> None:
        if self.dq_kv_order is not None:
            raise NotImplementedError(
                f"{what} BlockMask with tensor dq_kv_order is not supported yet. Construct a new BlockMask with matching "
                "precomputed dq_write_order metadata."
            )

    # ---- text

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a drawing: dark where all blocks are computed, grey where some are.

        Parameters
        ----------
        grid_size
            The largest number of rows and columns; -1 draws every block.
        limit
            How many pairs of a batch and a head are drawn.
        """
        dense = self.to_dense()
        *leading, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        most = (rows, columns) if grid_size == -1 else most
        row_step, column_step = (max(1, -(-count // limit)) for count, limit in zip((rows, columns), most, strict=True))
        drawn = []
        for number, place in enumerate(itertools.product(*map(range, leading))):
            if number == limit:
                drawn.append("...\nTo print out more, set BlockMask.to_string(limit=N)")
                drawn.append("You can also index (BlockMask[batch, head]) to choose a specific batch or head")
                break
            lines = []
            for row in range(0, rows, row_step):
                parts = [
                    float(dense[place][row : row + row_step, column : column + column_step].float().mean())
                    for column in range(0, columns, column_step)
                ]
                lines.append("".join(2 * ("█" if part == 1 else " " if part == 0 else "░") for part in parts))
            drawn.append("\n".join([str(place), *lines, ""]))
        return "\n".join(drawn)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        shapes = []
        for name in self._TENSOR_ATTRS[:8]:
            tensor = getattr(self, name)
            shapes.append(f"    {name}={None if tensor is None else tensor.shape},\n")
        return (
            f"BlockMask(\n{''.join(shapes)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )


def _check_pairs(counts: Any, indices: Any, full_counts: Any, full_indices: Any) -> None:
    if counts is None or indices is None:
        raise AssertionError("kv_num_blocks and kv_indices must be provided")
    if indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    if (full_counts is None) != (full_indices is None):
        raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
