"""Data and weights for the programs in test_programs.py and test_programs_networks.py."""

from __future__ import annotations

import numpy as np

import candelabra as torch


def blobs(n=120, classes=3, dim=2, seed=0):
    r = np.random.RandomState(seed)
    centers = r.randn(classes, dim) * 3
    y = r.randint(0, classes, n)
    x = centers[y] + r.randn(n, dim) * 0.6
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


def fixed_init(model, seed=1):
    r = np.random.RandomState(seed)
    with torch.no_grad():
        for _name, p in model.named_parameters():
            p.copy_(torch.from_numpy(r.randn(*p.shape).astype("float32") * 0.3))
