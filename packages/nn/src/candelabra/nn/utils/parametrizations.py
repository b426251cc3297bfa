"""Provide parametrizations: orthogonal, spectral norm and weight norm."""

from __future__ import annotations

from enum import Enum
from typing import Any

import candelabra
from candelabra import Tensor, no_grad

from .. import functional as F
from ..modules.convolution import _Transposed
from ..modules.module import Module
from . import parametrize


class _OrthMaps(Enum):
    """Enumerate the maps to orthogonal matrices."""

    matrix_exp = 1
    cayley = 2
    householder = 3


def _with_positive_diagonal(a: Tensor) -> Tensor:
    """Return the factor Q of the QR decomposition of a tall matrix.

    The diagonal of R is positive.
    """
    packed, tau = candelabra.geqrf(a)
    q = candelabra.linalg.householder_product(packed, tau)
    return q * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.shape[-2:]
    eye = candelabra.eye(columns, dtype=q.dtype, device=q.device)
    return bool(candelabra.allclose(q.mH @ q, eye, atol=10.0 * rows * candelabra.finfo(q.dtype).eps))


class _Orthogonal(Module):
    """Map any matrix to an orthogonal one: ``base @ map(X)``. Wide matrices are transposed."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.shape[-2] < X.shape[-1]
        if transposed:
            X = X.mT
        rows, columns = X.shape[-2:]
        if self.orthogonal_map == _OrthMaps.householder:
            below = X.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            # The diagonal stores signs, which are not trained.
            signs = X.diagonal(dim1=-2, dim2=-1).detach().trunc().unsqueeze(-2)
            Q = candelabra.linalg.householder_product(below, tau) * signs
        else:
            lower = X.tril()
            if rows != columns:
                filler = lower.new_zeros((rows, rows - columns)).expand(*lower.shape[:-2], -1, -1)
                lower = candelabra.cat([lower, filler], -1)
            skew = lower - lower.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                Q = candelabra.linalg.matrix_exp(skew)
            else:
                eye = candelabra.eye(rows, dtype=skew.dtype, device=skew.device)
                Q = candelabra.linalg.solve(eye - skew / 2, eye + skew / 2)
            Q = Q[..., :columns]
        base = self.__dict__.get("base")
        if base is not None:
            Q = base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        with no_grad():
            transposed = Q.shape[-2] < Q.shape[-1]
            tall = Q.mT if transposed else Q
            rows, columns = tall.shape[-2:]
            if "base" not in self._buffers:
                if self.orthogonal_map != _OrthMaps.householder:
                    raise NotImplementedError(
                        "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                        "use_trivialization=False."
                    )
                packed, tau = candelabra.geqrf(tall)
                # Store signs in the diagonal so that the diagonal of R counts as positive. LAPACK
                # sets tau to exactly 0 if there is no reflection.
                diagonal = packed.diagonal(dim1=-2, dim2=-1)
                signs = candelabra.where(tau == 0.0, -diagonal.sign(), diagonal.sign())
                packed = packed.clone()
                packed.diagonal(dim1=-2, dim2=-1).copy_(signs)
                return packed.mT if transposed else packed
            if rows == columns:
                base = tall.clone() if _is_orthogonal(tall) else _with_positive_diagonal(tall)
            else:
                # Complete the basis with random columns, which the decomposition makes orthogonal.
                more = tall.new_empty((*tall.shape[:-2], rows, rows - columns)).normal_()
                base = _with_positive_diagonal(candelabra.cat([tall, more], -1))
            self.base = base
            # The start that the map takes to the identity. Reflections along unit vectors negate
            # the diagonal, and the signs of -1 restore it.
            start = candelabra.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a weight orthogonal (unitary if complex).

    The rows or the columns are orthonormal, whichever are fewer.

    Parameters
    ----------
    module, name
        The weight. Dimensions before the last two are batch dimensions.
    orthogonal_map
        ``"matrix_exp"``: the exponential of a skew-symmetric matrix; ``"cayley"``: ``(I - A/2)^-1
        (I + A/2)``; ``"householder"``: a product of reflections. Default: the exponential for
        square and complex weights, reflections otherwise.
    use_trivialization
        Whether the map starts at the current weight (Lezcano-Casado, 2019), rather than at the
        identity.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(4, 2))
    >>> bool(candelabra.allclose(layer.weight @ layer.weight.t(), candelabra.eye(2), atol=1e-5))
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    orth = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, orth, unsafe=True)


class _WeightNorm(Module):
    """Compute a weight from its norms (original0) and its direction (original1)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / F.native.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return F.native.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Reparametrize a weight by norm and direction: ``g * v / |v|``.

    There is one norm per index of `dim`, or a single norm if `dim` is None.

    Source: Salimans and Kingma, 2016. It also loads state dicts of the older
    `nn.utils.weight_norm`.

    Examples
    --------
    >>> from candelabra import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
    (candelabra.Size([40, 1]), candelabra.Size([40, 20]))
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def load_older(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        older = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in older):
            for number, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(load_older)
    return module


class _SpectralNorm(Module):
    """Divide a weight by its largest singular value.

    In training, each read updates the estimate by power iteration.
    """

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        dims = weight.ndim
        if not -dims <= dim < dims:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{dims}, {dims - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight).detach()
            for side, length in zip(("_u", "_v"), matrix.shape, strict=True):
                start = matrix.new_empty(length).normal_(0, 1)
                self.register_buffer(side, F.normalize(start, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        # Update in place, so that replicas that share these vectors and loaded state stay
        # consistent.
        with no_grad():
            for _ in range(iterations):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        # Clone, because the next call changes the vectors and backward may still need these.
        u, v = self._u.clone(), self._v.clone()
        return weight / candelabra.vdot(u, matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1.

    The weight is viewed as a matrix whose rows are dimension `dim`.

    In training, each read runs `n_power_iterations` steps of the power iteration. `dim` defaults to
    1 for transposed convolutions and to 0 otherwise. Source: Miyato et al., 2018.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4), n_power_iterations=50)
    >>> round(float(candelabra.linalg.matrix_norm(layer.weight, 2)), 4)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, _Transposed) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
