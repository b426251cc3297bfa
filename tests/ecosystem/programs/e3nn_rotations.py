"""e3nn: tensor products and spherical harmonics are equivariant, and learn."""

from __future__ import annotations

from typing import Any

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate
from harness import run


def main() -> dict[str, Any]:
    inputs, outputs = o3.Irreps("8x0e + 4x1o"), o3.Irreps("4x0e + 2x1o")
    vectors = torch.randn(10, 3)
    harmonics = o3.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True, normalization="component")
    product = o3.FullyConnectedTensorProduct(inputs, "0e + 1o + 2e", outputs, shared_weights=False)
    weights = FullyConnectedNet([4, 16, product.weight_numel], torch.nn.functional.silu)
    features, lengths = inputs.randn(10, -1), torch.rand(10, 4)
    made = product(features, harmonics, weights(lengths))
    made.square().mean().backward()
    rotation = o3.rand_matrix()
    turned = o3.spherical_harmonics("0e + 1o + 2e", vectors @ rotation.T, normalize=True, normalization="component")
    moved = product(features @ inputs.D_from_matrix(rotation).T, turned, weights(lengths))
    gap = (moved - made @ outputs.D_from_matrix(rotation).T).abs().max()
    gate = Gate("4x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")
    gated = gate(gate.irreps_in.randn(3, -1))
    return {
        "made": made.std(),
        "equivariant": bool(gap < 1e-4),
        "gated": gated.sum(),
        "gradient": next(weights.parameters()).grad.norm(),
    }


if __name__ == "__main__":
    run(main)
