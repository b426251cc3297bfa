"""Functions made of operators, compared with NumPy: each case is the call and what NumPy says."""

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

_rng = np.random.default_rng(3)
A = _rng.standard_normal((3, 4))
B = _rng.standard_normal((4, 5))
V = _rng.standard_normal(4)
W = _rng.standard_normal(3)
T3 = _rng.standard_normal((2, 3, 4))
U3 = _rng.standard_normal((2, 4, 5))
I = _rng.integers(-5, 6, (3, 4))
N = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, -6.0]])
Z = _rng.standard_normal((2, 3)) + 1j * _rng.standard_normal((2, 3))
S = np.sort(_rng.standard_normal(6))
a, b, v, w, t3, u3, i, n, z, s = (c.tensor(x) for x in (A, B, V, W, T3, U3, I, N, Z, S))

CASES = [
    # creation
    ("c.tensor([[1, 2], [3, 4]])", "np.array([[1, 2], [3, 4]])"),
    ("c.zeros(2, 3)", "np.zeros((2, 3), np.float32)"),
    ("c.ones((2,), dtype=c.int64)", "np.ones(2, np.int64)"),
    ("c.full((2, 2), 7)", "np.full((2, 2), 7)"),
    ("c.full((2,), True)", "np.full(2, True)"),
    ("c.full((2,), 1j)", "np.full(2, 1j, np.complex64)"),
    ("c.full_like(i, 3)", "np.full_like(I, 3)"),
    ("c.eye(3, 2)", "np.eye(3, 2, dtype=np.float32)"),
    ("c.arange(2, 11, 3)", "np.arange(2, 11, 3)"),
    ("c.arange(end=4)", "np.arange(4)"),
    ("c.arange(1, end=4)", "np.arange(1, 4)"),
    ("c.arange(0, 1, 0.25, dtype=c.float64)", "np.arange(0, 1, 0.25)"),
    ("c.arange(5, 0, -2)", "np.arange(5, 0, -2)"),
    ("c.range(1, 4)", "np.arange(1, 5, dtype=np.float32)"),
    ("c.linspace(-1, 1, 7, dtype=c.float64)", "np.linspace(-1, 1, 7)"),
    ("c.logspace(0, 3, 4, base=2, dtype=c.float64)", "np.logspace(0, 3, 4, base=2)"),
    ("c.as_tensor(A)", "A"),
    ("c.asarray(bytearray(b'abc'))", "np.frombuffer(b'abc', np.uint8)"),
    ("c.frombuffer(bytearray(b'abcdefgh'), dtype=c.int16, offset=2, count=2)", "np.frombuffer(b'abcdefgh', np.int16, 2, 2)"),
    ("a.new_zeros(2)", "np.zeros(2)"),
    ("i.new_full((2,), 3)", "np.full(2, 3)"),
    ("c.tril_indices(3, 4, 1)", "np.stack(np.tril_indices(3, 1, 4))"),
    ("c.triu_indices(3, 4, -1)", "np.stack(np.triu_indices(3, -1, 4))"),
    # elementwise
    ("c.true_divide(i, 2)", "(I / 2).astype(np.float32)"),
    ("c.rsub(a, 2)", "2 - A"),
    ("c.rsub(a, v, alpha=2)", "V - 2 * A"),
    ("c.clamp_min(a, 0)", "np.maximum(A, 0)"),
    ("c.clamp_max(a, v)", "np.minimum(A, V)"),
    ("c.clip(a, -0.5, 0.5)", "np.clip(A, -0.5, 0.5)"),
    ("c.logit(c.sigmoid(a))", "A"),
    ("c.sinc(a)", "np.sinc(A)"),
    ("c.deg2rad(a)", "np.deg2rad(A)"),
    ("c.rad2deg(a)", "np.rad2deg(A)"),
    ("c.float_power(i, 3)", "np.float_power(I, 3)"),
    ("c.conj(z)", "np.conj(Z)"),
    ("z.real", "Z.real"),
    ("z.imag", "Z.imag"),
    ("c.real(a)", "A"),
    ("c.isclose(a, a + 1e-9)", "np.isclose(A, A + 1e-9)"),
    ("c.isclose(n, n, equal_nan=True)", "np.isclose(N, N, equal_nan=True)"),
    ("c.isclose(i, i + 1)", "np.isclose(I, I + 1)"),
    ("c.isreal(z)", "np.isreal(Z)"),
    ("c.isin(i, c.tensor([1, 2]))", "np.isin(I, [1, 2])"),
    ("c.isin(i, 2, invert=True)", "np.isin(I, 2, invert=True)"),
    ("c.multiply(a, 2)", "A * 2"),
    ("c.absolute(a)", "np.abs(A)"),
    ("c.arctan2(a, v)", "np.arctan2(A, V)"),
    ("c.greater_equal(a, 0)", "A >= 0"),
    # reductions
    ("c.max(a)", "A.max()"),
    ("c.max(a, 1)[0]", "A.max(1)"),
    ("c.max(a, 1)[1]", "A.argmax(1)"),
    ("a.max(dim=0, keepdim=True).values", "A.max(0, keepdims=True)"),
    ("c.max(a, v)", "np.maximum(A, V)"),
    ("c.min(a, axis=0).indices", "A.argmin(0)"),
    ("c.min(a, other=v)", "np.minimum(A, V)"),
    ("c.aminmax(a, dim=1).max", "A.max(1)"),
    ("c.aminmax(a).min", "A.min()"),
    ("c.nansum(n, 0)", "np.nansum(N, 0)"),
    ("c.nanmean(n, 1, keepdim=True)", "np.nanmean(N, 1, keepdims=True)"),
    ("c.var(a, 1)", "A.var(1, ddof=1)"),
    ("c.var(a, 1, False)", "A.var(1)"),
    ("c.var(a, False)", "A.var()"),
    ("a.std(unbiased=False)", "A.std()"),
    ("a.std((0, 1), True)", "A.std(ddof=1)"),
    ("c.var(a, dim=0, correction=2)", "A.var(0, ddof=2)"),
    ("c.var_mean(a, 1, correction=0)[0]", "A.var(1)"),
    ("c.var_mean(a, False)[0]", "A.var()"),
    ("c.std_mean(a, [0], unbiased=True)[0]", "A.std(0, ddof=1)"),
    ("c.std_mean(a)[1]", "A.mean()"),
    ("c.count_nonzero(i)", "np.count_nonzero(I)"),
    ("c.count_nonzero(i, 0)", "np.count_nonzero(I, 0)"),
    ("c.median(w)", "np.median(W)"),
    ("c.median(t3, 1).values", "np.median(T3, 1)"),
    ("c.median(n, 1).values", "np.median(N, 1)"),
    ("c.nanmedian(n)", "np.sort(N[~np.isnan(N)])[1]"),
    ("c.kthvalue(a, 2, 0).values", "np.sort(A, 0)[1]"),
    ("c.kthvalue(a, 2, 0).indices", "np.argsort(A, 0)[1]"),
    ("c.quantile(a, c.tensor([0.1, 0.5, 0.9], dtype=c.float64), 1)", "np.quantile(A, [0.1, 0.5, 0.9], 1)"),
    ("c.quantile(a, 0.3)", "np.quantile(A, 0.3)"),
    ("c.quantile(a, 0.3, 0, True, interpolation='lower')", "np.quantile(A, 0.3, 0, keepdims=True, method='lower')"),
    ("c.quantile(a, 0.3, 0, interpolation='higher')", "np.quantile(A, 0.3, 0, method='higher')"),
    ("c.quantile(a, 0.3, 0, interpolation='midpoint')", "np.quantile(A, 0.3, 0, method='midpoint')"),
    ("c.norm(a)", "np.linalg.norm(A)"),
    ("c.norm(a, 1, 0)", "np.linalg.norm(A, 1, axis=0)"),
    ("c.norm(a, float('inf'))", "np.abs(A).max()"),
    ("c.norm(z)", "np.linalg.norm(Z)"),
    ("a.norm(dim=1, keepdim=True)", "np.linalg.norm(A, axis=1, keepdims=True)"),
    ("c.dist(a, a * 2)", "np.linalg.norm(A)"),
    ("c.linalg.vector_norm(a, 3)", "(np.abs(A) ** 3).sum() ** (1 / 3)"),
    ("c.linalg.matrix_norm(a)", "np.linalg.norm(A)"),
    ("c.linalg.matrix_norm(a, 1)", "np.linalg.norm(A, 1)"),
    ("c.linalg.matrix_norm(a, -float('inf'))", "np.linalg.norm(A, -np.inf)"),
    ("c.linalg.norm(v)", "np.linalg.norm(V)"),
    ("c.linalg.norm(t3, dim=(1, 2))", "np.linalg.norm(T3, axis=(1, 2))"),
    ("c.linalg.norm(a, 'fro')", "np.linalg.norm(A, 'fro')"),
    ("c.cov(a)", "np.cov(A)"),
    ("c.cov(v)", "np.cov(V)"),
    ("c.logsumexp(a, 1)", "np.log(np.exp(A).sum(1))"),
    ("c.logsumexp(a, (0, 1), True)", "np.log(np.exp(A).sum((0, 1), keepdims=True))"),
    ("c.logsumexp(c.tensor([float('-inf'), float('-inf')]), 0)", "np.float32(-np.inf)"),
    ("c.logcumsumexp(a, 1)", "np.log(np.exp(A).cumsum(1))"),
    # scans and sorting
    ("c.cummax(a, 1).values", "np.maximum.accumulate(A, 1)"),
    ("c.cummin(a, 0).values", "np.minimum.accumulate(A, 0)"),
    ("c.cummax(c.tensor([1, 3, 3, 2]), 0).indices", "np.array([0, 1, 2, 2])"),
    ("c.cummax(n, 1).values", "np.array([[1, np.nan, np.nan], [np.nan] * 3])"),
    ("c.diff(a)", "np.diff(A)"),
    ("c.diff(a, 2, 0)", "np.diff(A, 2, 0)"),
    ("c.diff(v, prepend=c.zeros(1, dtype=c.float64))", "np.diff(V, prepend=0)"),
    ("c.trapezoid(a)", "np.trapezoid(A) if hasattr(np, 'trapezoid') else np.trapz(A)"),
    ("c.trapezoid(a, v)", "(((A[:, 1:] + A[:, :-1]) / 2) * np.diff(V)).sum(1)"),
    ("c.argsort(a, 0)", "np.argsort(A, 0)"),
    ("c.argsort(a, descending=True)", "np.argsort(-A, -1)"),
    ("c.msort(a)", "np.sort(A, 0)"),
    ("c.mode(c.tensor([[1, 2, 2], [3, 3, 1]])).values", "np.array([2, 3])"),
    ("c.unique(i)", "np.unique(I)"),
    ("c.unique(i, return_inverse=True)[1]", "np.unique(I, return_inverse=True)[1].reshape(I.shape)"),
    ("c.unique(i, return_counts=True)[1]", "np.unique(I, return_counts=True)[1]"),
    ("c.unique_consecutive(c.tensor([1, 1, 2, 2, 1]), return_counts=True)[1]", "np.array([2, 2, 1])"),
    ("c.searchsorted(s, a)", "np.searchsorted(S, A)"),
    ("c.searchsorted(s, s, right=True)", "np.searchsorted(S, S, 'right')"),
    ("c.searchsorted(s, 0.0)", "np.searchsorted(S, 0.0)"),
    ("c.searchsorted(c.tensor([[1, 2], [3, 4]]), c.tensor([[2, 9, 0], [4, 3, 5]]))", "np.array([[1, 2, 0], [1, 0, 2]])"),
    ("c.bucketize(a, s, right=True)", "np.digitize(A, S)"),
    ("c.bincount(c.tensor([0, 3, 3]), minlength=6)", "np.bincount([0, 3, 3], minlength=6)"),
    ("c.bincount(c.tensor([0, 3, 3, 1]), weights=v)", "np.bincount([0, 3, 3, 1], V)"),
    # views
    ("a.T", "A.T"),
    ("t3.mT", "T3.swapaxes(1, 2)"),
    ("z.H", "Z.conj().T"),
    ("c.reshape(t3.transpose(0, 2), (6, -1))", "T3.swapaxes(0, 2).reshape(6, -1)"),
    ("t3.reshape(4, 6)", "T3.reshape(4, 6)"),
    ("t3.reshape(-1)", "T3.reshape(-1)"),
    ("c.flatten(t3, 1)", "T3.reshape(2, 12)"),
    ("c.flatten(c.tensor(1.5, dtype=c.float64))", "np.array([1.5])"),
    ("t3.ravel()", "T3.ravel()"),
    ("a.view(2, -1)", "A.reshape(2, -1)"),
    ("a.view(c.int64)", "A.view(np.int64)"),
    ("a.view_as(c.zeros(12))", "A.reshape(12)"),
    ("v.expand_as(a)", "np.broadcast_to(V, A.shape)"),
    ("c.swapaxes(t3, 0, 2)", "T3.swapaxes(0, 2)"),
    ("c.moveaxis(t3, (0, 1), (-1, 0))", "np.moveaxis(T3, (0, 1), (-1, 0))"),
    ("c.unbind(a, 1)[2]", "A[:, 2]"),
    ("c.split(a, 3, 1)[1]", "A[:, 3:]"),
    ("c.split(a, [1, 3], 1)[1]", "A[:, 1:]"),
    ("a.chunk(3, 1)[1]", "A[:, 2:4]"),
    ("c.tensor_split(a, 3, 1)[1]", "np.array_split(A, 3, 1)[1]"),
    ("c.tensor_split(a, (1, 3), 1)[2]", "np.split(A, (1, 3), 1)[2]"),
    ("c.hsplit(a, 2)[1]", "np.hsplit(A, 2)[1]"),
    ("c.vsplit(a, 3)[1]", "np.vsplit(A, 3)[1]"),
    ("c.dsplit(t3, 2)[0]", "np.dsplit(T3, 2)[0]"),
    ("c.broadcast_to(v, (3, 4))", "np.broadcast_to(V, (3, 4))"),
    ("c.broadcast_tensors(a, v)[1]", "np.broadcast_arrays(A, V)[1]"),
    ("c.meshgrid(v, w, indexing='xy')[0]", "np.meshgrid(V, W)[0]"),
    ("c.meshgrid(v, w)[1]", "np.meshgrid(V, W, indexing='ij')[1]"),
    ("c.atleast_2d(v)", "np.atleast_2d(V)"),
    ("c.atleast_3d(a)", "np.atleast_3d(A)"),
    ("c.diag(v)", "np.diag(V)"),
    ("c.diag(a, 1)", "np.diag(A, 1)"),
    ("c.diag(v, -2)", "np.diag(V, -2)"),
    ("c.diagflat(a, 1)", "np.diagflat(A, 1)"),
    ("c.diag_embed(a)", "np.stack([np.diag(row) for row in A])"),
    ("c.diag_embed(a, 1, 0, 2)", "np.stack([np.diag(row, 1) for row in A]).transpose(1, 0, 2)"),
    ("c.trace(a)", "np.trace(A)"),
    # joining
    ("c.stack([a, a + 1], 1)", "np.stack([A, A + 1], 1)"),
    ("c.stack([a, a + 1], -1)", "np.stack([A, A + 1], -1)"),
    ("c.hstack([a, a])", "np.hstack([A, A])"),
    ("c.vstack([v, v])", "np.vstack([V, V])"),
    ("c.dstack([a, a])", "np.dstack([A, A])"),
    ("c.column_stack([w, a])", "np.column_stack([W, A])"),
    ("a.repeat(2, 3)", "np.tile(A, (2, 3))"),
    ("v.repeat(2, 1, 3)", "np.tile(V, (2, 1, 3))"),
    ("c.tile(t3, (2,))", "np.tile(T3, 2)"),
    ("c.repeat_interleave(a, 2, 1)", "np.repeat(A, 2, 1)"),
    ("c.repeat_interleave(a, 3)", "np.repeat(A, 3)"),
    ("c.repeat_interleave(a, c.tensor([2, 0, 1]), 0)", "np.repeat(A, [2, 0, 1], 0)"),
    ("c.roll(a, 1, 0)", "np.roll(A, 1, 0)"),
    ("c.roll(a, (2, -1), (0, 1))", "np.roll(A, (2, -1), (0, 1))"),
    ("c.roll(a, 5)", "np.roll(A, 5)"),
    ("c.rot90(a)", "np.rot90(A)"),
    ("c.rot90(t3, 3, (1, 2))", "np.rot90(T3, 3, (1, 2))"),
    ("c.rot90(a, 2)", "np.rot90(A, 2)"),
    ("c.fliplr(a)", "np.fliplr(A)"),
    ("c.flipud(a)", "np.flipud(A)"),
    ("c.block_diag(a, v)", "np.block([[A, np.zeros((3, 4))], [np.zeros((1, 4)), V[None]]])"),
    ("c.cartesian_prod(v, w)", "np.stack([x.ravel() for x in np.meshgrid(V, W, indexing='ij')], 1)"),
    # products
    ("c.matmul(v, v)", "V @ V"),
    ("c.matmul(a, v)", "A @ V"),
    ("c.matmul(w, a)", "W @ A"),
    ("c.matmul(a, b)", "A @ B"),
    ("t3 @ v", "T3 @ V"),
    ("t3.transpose(0, 1) @ v", "T3.swapaxes(0, 1) @ V"),
    ("w @ t3", "W @ T3"),
    ("t3 @ b", "T3 @ B"),
    ("t3 @ u3", "T3 @ U3"),
    ("t3[:, None] @ u3", "T3[:, None] @ U3"),
    ("a @ u3", "A @ U3"),
    ("c.mv(a, v)", "A @ V"),
    ("c.outer(v, w)", "np.outer(V, W)"),
    ("c.inner(a, v)", "np.inner(A, V)"),
    ("c.inner(a, a)", "np.inner(A, A)"),
    ("c.vdot(z[0], z[1])", "np.vdot(Z[0], Z[1])"),
    ("c.tensordot(t3, u3, dims=([2, 0], [1, 0]))", "np.tensordot(T3, U3, ([2, 0], [1, 0]))"),
    ("c.tensordot(a, b, 1)", "np.tensordot(A, B, 1)"),
    ("c.tensordot(v, w, 0)", "np.tensordot(V, W, 0)"),
    ("c.addmv(w, a, v, beta=2, alpha=3)", "2 * W + 3 * (A @ V)"),
    ("c.addr(a, w, v, beta=0.5)", "0.5 * A + np.outer(W, V)"),
    ("c.addbmm(a @ b, t3, u3)", "A @ B + (T3 @ U3).sum(0)"),
    ("c.chain_matmul(a, b, b.T)", "A @ B @ B.T"),
    ("c.linalg.multi_dot([w, a, b])", "W @ A @ B"),
    ("c.matrix_power(t3 @ t3.mT, 5)", "np.linalg.matrix_power(T3 @ T3.swapaxes(1, 2), 5)"),
    ("c.matrix_power(a @ a.T, 0)", "np.eye(3)"),
    ("c.kron(a, v)", "np.kron(A, V)"),
    ("c.cdist(a, a * 2)", "np.linalg.norm(A[:, None] - 2 * A[None], axis=-1)"),
    ("c.cross(t3, t3 + 1, 1)", "np.cross(T3, T3 + 1, axis=1)"),
    ("c.cosine_similarity(a, a + 1)", "(A * (A + 1)).sum(1) / np.linalg.norm(A, axis=1) / np.linalg.norm(A + 1, axis=1)"),
    ("c.linalg.vecdot(a, a)", "(A * A).sum(1)"),
    # einsum
    ("c.einsum('ij,jk->ik', a, b)", "np.einsum('ij,jk->ik', A, B)"),
    ("c.einsum('ij,jk', a, b)", "A @ B"),
    ("c.einsum('bij,bjk->bik', t3, u3)", "T3 @ U3"),
    ("c.einsum('...ij,...jk->...ik', t3, u3)", "T3 @ U3"),
    ("c.einsum('...ij,jk->...ki', t3, b)", "(T3 @ B).swapaxes(-1, -2)"),
    ("c.einsum('ii->i', a @ a.T)", "np.diag(A @ A.T)"),
    ("c.einsum('ii', a @ a.T)", "np.trace(A @ A.T)"),
    ("c.einsum('iij->j', (t3 @ t3.mT)[:, :2])", "np.einsum('iij->j', (T3 @ T3.swapaxes(1, 2))[:, :2])"),
    ("c.einsum('i,j->ji', v, w)", "np.outer(W, V)"),
    ("c.einsum('ij->', a)", "A.sum()"),
    ("c.einsum('ij->ji', a)", "A.T"),
    ("c.einsum('ji', a)", "A.T"),
    ("c.einsum('ij,ij->i', a, a)", "(A * A).sum(1)"),
    ("c.einsum('i,ij,j->', w, a, v)", "W @ A @ V"),
    ("c.einsum('ij,kl->', a, b)", "A.sum() * B.sum()"),
    ("c.einsum('bij,j->bi', t3, v)", "T3 @ V"),
    ("c.einsum('bhid,bhjd->bhij', t3[None], t3[None] + 1)", "np.einsum('bhid,bhjd->bhij', T3[None], T3[None] + 1)"),
    ("c.einsum('...,...->...', a, v)", "A * V"),
    ("c.einsum('ij,jk->ik', a[:, :1], b)", "np.einsum('ij,jk->ik', np.broadcast_to(A[:, :1], (3, 4)), B)"),
    ("c.einsum('i...->...', t3)", "T3.sum(0)"),
    ("c.einsum(a, [0, 1], b, [1, 2], [0, 2])", "A @ B"),
    ("c.einsum(t3, [..., 0, 1], u3, [..., 1, 2])", "T3 @ U3"),
    ("c.einsum('ij,jk->ik', [a, b])", "A @ B"),
    # indexing
    ("c.take_along_dim(a, a.argsort(1), 1)", "np.sort(A, 1)"),
    ("c.take_along_dim(a, c.tensor([[0], [1], [2]]), 1)", "np.take_along_axis(A, np.array([[0], [1], [2]]), 1)"),
    ("c.take_along_dim(a, c.tensor([3, 7]))", "A.ravel()[[3, 7]]"),
    ("c.where(a > 0)[1]", "np.where(A > 0)[1]"),
    ("c.where(a > 0, a, 0)", "np.where(A > 0, A, 0)"),
    ("a.where(a > 0, v)", "np.where(A > 0, A, V)"),
    ("c.nonzero(i, as_tuple=True)[0]", "np.nonzero(I)[0]"),
    ("c.argwhere(i)", "np.argwhere(I)"),
    ("c.scatter(c.zeros(4, dtype=c.float64), 0, c.tensor([1, 1, 3]), w, reduce='add')", "np.bincount([1, 1, 3], W, 4)"),
    ("c.scatter_reduce(v, 0, c.tensor([1, 1, 3]), w, 'amax')",
     "np.array([V[0], max(V[1], W[0], W[1]), V[2], max(V[3], W[2])])"),
    ("c.scatter_reduce(v, 0, c.tensor([1, 1, 3]), w, 'prod', include_self=False)", "np.array([V[0], W[0] * W[1], V[2], W[2]])"),
    ("c.scatter_reduce(v, 0, c.tensor([1, 1, 3]), w, 'mean')",
     "np.array([V[0], (V[1] + W[0] + W[1]) / 3, V[2], (V[3] + W[2]) / 2])"),
    ("c.scatter_reduce(v, 0, c.tensor([1, 1, 3]), w, 'sum', include_self=False)", "np.array([V[0], W[0] + W[1], V[2], W[2]])"),
    ("c.select_scatter(a, v, 0, 1)", "np.stack([A[0], V, A[2]])"),
    ("c.slice_scatter(a, c.zeros(3, 2, dtype=c.float64), 1, 0, 4, 2)", "A * np.array([0, 1, 0, 1])"),
    ("c.diagonal_scatter(a, w)", "A - np.eye(3, 4) * A + np.eye(3, 4) * W[:, None]"),
    ("c.ops.embedding(a, c.tensor([[2, 0], [1, 1]]))", "A[[[2, 0], [1, 1]]]"),
    ("c.ops.embedding_backward(t3, c.tensor([[2, 0, 2], [1, 1, 0]]), 3, 1)",
     "np.stack([T3[0, 1] + T3[1, 2], np.zeros(4), T3[0, 0] + T3[0, 2]])"),
    # softmax
    ("c.softmax(a, 1)", "np.exp(A) / np.exp(A).sum(1, keepdims=True)"),
    ("c.softmax(i, 0, dtype=c.float64)", "np.exp(I) / np.exp(I).sum(0)"),
    ("c.log_softmax(a * 1000, 0)", "A * 1000 - (A * 1000).max(0) - np.log(np.exp(A * 1000 - (A * 1000).max(0)).sum(0))"),
    ("c.softmin(a, 1)", "np.exp(-A) / np.exp(-A).sum(1, keepdims=True)"),
]  # fmt: skip


@pytest.mark.parametrize("call,expected", CASES, ids=[call for call, _ in CASES])
def test_like_numpy(call, expected):
    made, wanted = eval(call), np.asarray(eval(expected))
    assert isinstance(made, c.Tensor)
    assert tuple(made.shape) == wanted.shape
    got = made.numpy()
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6 if wanted.dtype.itemsize < 8 else 1e-11, atol=1e-12)


def test_views_share_memory():
    x = c.zeros(2, 3, 4)
    for view in (
        x.T,
        x.reshape(6, 4),
        x.flatten(),
        x.mT,
        x.ravel(),
        *x.unbind(),
        *x.split(2, 2),
        *x.chunk(2, 1),
        x.swapaxes(0, 1),
    ):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    y = c.tensor([1 + 2j])
    y.real = 5
    y.imag[0] = 6
    assert y.item() == 5 + 6j


def test_reshape_copies_only_where_it_must():
    x = c.zeros(2, 3).T
    assert x.reshape(3, 2, 1).data_ptr() == x.data_ptr()
    assert x.reshape(6).data_ptr() != x.data_ptr()


def test_to_returns_the_tensor_itself():
    x = c.ones(2)
    assert x.to(c.float32) is x and x.to("cpu") is x and x.float() is x and x.to(x) is x
    assert x.to(c.float32, copy=True) is not x
    assert x.to("cpu", c.float64).dtype is c.float64
    assert x.to(dtype=c.int64, device="cpu").dtype is c.int64
    assert x.to(float).dtype is c.float64 and x.to(int).dtype is c.int64
    assert x.type_as(c.ones(1, dtype=c.int8)).dtype is c.int8
    assert x.type(c.float64).type() == "candelabra.DoubleTensor"
    assert x.type("candelabra.IntTensor").dtype is c.int32


def test_conversions():
    x = c.tensor([0.0, 1.7])
    for name, dtype in {
        "bool": c.bool, "byte": c.uint8, "char": c.int8, "short": c.int16, "int": c.int32, "long": c.int64, "half": c.float16,
        "bfloat16": c.bfloat16, "float": c.float32, "double": c.float64, "cfloat": c.complex64, "cdouble": c.complex128,
    }.items():  # fmt: skip
        assert getattr(x, name)().dtype is dtype


def test_max_has_named_results():
    result = c.tensor([[1, 5], [7, 2]]).max(1)
    assert result.values.tolist() == [5, 7] and result.indices.tolist() == [1, 0]
    assert type(result) is c.return_types.max
    assert repr(result) == "candelabra.return_types.max(\nvalues=tensor([5, 7]),\nindices=tensor([1, 0]))"


def test_out():
    out = c.empty(3, dtype=c.float64)
    assert c.matmul(a, v, out=out) is out
    np.testing.assert_allclose(out.numpy(), A @ V)
    zeros = c.ones(2, 3)
    assert c.zeros(2, 3, out=zeros) is zeros and zeros.sum().item() == 0
    with pytest.raises(RuntimeError, match="dtype"):
        c.zeros(2, dtype=c.int64, out=c.empty(2))


ERRORS = [
    ("c.reshape(a, (5, -1))", RuntimeError, r"shape '\[5, -1\]' is invalid for input of size 12"),
    ("a.T.reshape(5, 2)", RuntimeError, r"shape '\[5, 2\]' is invalid for input of size 12"),
    ("a.T.reshape(-1, -1)", RuntimeError, "only one dimension can be inferred"),
    ("c.matmul(c.tensor(1.0), v)", RuntimeError, "at least 1D"),
    ("c.matmul(t3, u3.mT)", RuntimeError, r"matmul\(\).*\[2, 3, 4\] and \[2, 5, 4\]"),
    ("t3 @ c.ones(3, 4, 2, dtype=c.float64)", RuntimeError, r"matmul\(\): the batch dimensions \[2\] and \[3\]"),
    ("~a", TypeError, "only implemented on integer and Boolean-type tensors"),
    ("c.einsum('ij,jk->ik', a)", RuntimeError, "fewer operands|more operands"),
    ("c.einsum('ij->ik', a)", RuntimeError, "output subscript k does not appear"),
    ("c.einsum('ij,jk->ik', a, a)", RuntimeError, "subscript j has size"),
    ("c.einsum('ijk->i', a)", RuntimeError, "number of subscripts"),
    ("c.einsum('ii->i', a)", RuntimeError, "repeated"),
    ("c.split(a, [1, 2], 1)", RuntimeError, "sum exactly to 4"),
    ("c.chunk(a, 0)", RuntimeError, "greater than 0"),
    ("c.unbind(a, 5)", IndexError, "Dimension out of range"),
    ("c.stack([a, v])", RuntimeError, "equal size"),
    ("c.stack([])", RuntimeError, "non-empty"),
    ("c.max(c.zeros(0))", RuntimeError, "numel\\(\\) == 0"),
    ("c.max(a, foo=1)", TypeError, "unexpected keyword argument 'foo'"),
    ("c.arange()", TypeError, "'end'"),
    ("c.arange(1, 2, 3, 4)", TypeError, "positional"),
    ("c.arange(0, 5, -1)", RuntimeError, "step"),
    ("c.zeros(2, layout=3)", NotImplementedError, "strided"),
    ("c.zeros(-1)", RuntimeError, "negative"),
    ("c.from_file('/nowhere', size=2, pin_memory=True)", RuntimeError, "cannot be pinned"),
    ("a.to(3.5)", TypeError, "dtype, a device or a Tensor"),
    ("c.quantile(a, 1.5)", RuntimeError, r"\[0, 1\]"),
    ("c.isclose(a, i)", RuntimeError, "did not match"),
    ("v.real.imag", RuntimeError, "non-complex"),
    ("t3.H", RuntimeError, "matrices"),
    ("v.mT", RuntimeError, "Got 1-D tensor"),
    ("c.softmax(i, 0)", NotImplementedError, "softmax"),
    ("c.scatter(v, 0, c.tensor([0]), w[:1], reduce='mul')", RuntimeError, "add or multiply"),
    ("c.broadcast_shapes((2,), (3,))", RuntimeError, "broadcast"),
    ("c.finfo(c.int64)", TypeError, "floating point"),
    ("c.iinfo(c.float32)", TypeError, "integer"),
    ("c.no_such_function", AttributeError, "no attribute 'no_such_function'"),
]  # fmt: skip


@pytest.mark.parametrize("call,kind,message", ERRORS, ids=[call for call, *_ in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        eval(call)


def test_finfo_and_iinfo_like_numpy():
    for dtype, like in {c.float16: np.float16, c.float32: np.float32, c.float64: np.float64}.items():
        ours, theirs = c.finfo(dtype), np.finfo(like)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.tiny) == tuple(
            float(x) if k else x for k, x in enumerate((theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.tiny))
        )
        assert ours.resolution == pytest.approx(float(theirs.resolution), rel=1e-3)
    for dtype in (c.uint8, c.int8, c.int16, c.int32, c.int64):
        theirs = np.iinfo(dtype.name)
        assert (c.iinfo(dtype).max, c.iinfo(dtype).min) == (theirs.max, theirs.min)


def test_default_device_as_a_context():
    with c.device("cpu"):
        assert c.zeros(1).device == c.device("cpu")
    assert c.get_default_device() == c.device("cpu")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_small_integers_in_functions_made_of_operators(dtype: str) -> None:
    kind = getattr(c, dtype)
    ones = c.ones(2, 300, dtype=kind)
    # Sums of integers are int64, but where the operator that they are part of has a dtype of
    # its own.
    assert c.einsum("ij->i", ones).tolist() == [300, 300]
    assert c.einsum("ij,k->k", ones, ones[0]).dtype is c.int64
    assert c.einsum("ij,j->i", ones, ones[0]).dtype is kind
    assert c.tensordot(ones[:, :1], c.ones(2, 3, 3, dtype=kind), dims=([0, 1], [0, 1])).dtype is kind
    matrices = c.ones(2, 3, 3, dtype=kind)
    assert c.addbmm(matrices[0], matrices, matrices).tolist() == [[7] * 3] * 3
    assert c.addbmm(matrices[0], matrices, matrices).dtype is kind
    assert [p.tolist() for p in c.unravel_index(c.tensor([7], dtype=kind), (4, 1000))] == [[0], [7]]
    assert c.unravel_index(c.tensor(7, dtype=kind), (4, 5))[0].dtype is c.int64
    assert c.nansum(ones, out=c.empty(0, dtype=c.int64)).item() == 600
    assert c.trapezoid(c.tensor([1, 3, 4], dtype=kind)).item() == 5.5
    # Counted before they are cut down to integers, in all but int64.
    assert c.arange(0, 1, 0.25, dtype=kind).tolist() == [0, 0, 0, 0]
    assert c.arange(1.0, 5.1, 2.0, dtype=kind).tolist() == [1, 3, 5]
    assert c.arange(1.0, 5.1, 2.0, dtype=c.int64).tolist() == [1, 3]
