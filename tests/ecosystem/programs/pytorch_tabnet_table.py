"""pytorch-tabnet: a classifier and a regressor of tables, stored, loaded and explained."""

from __future__ import annotations

import tempfile
import warnings
from typing import Any

import numpy
from harness import run
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

warnings.filterwarnings("ignore")


def main() -> dict[str, Any]:
    generator = numpy.random.default_rng(0)
    x = generator.normal(size=(128, 6)).astype(numpy.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(numpy.int64)
    options: dict[str, Any] = {"n_d": 4, "n_a": 4, "n_steps": 2, "verbose": 0, "seed": 0, "device_name": "cpu"}
    classifier = TabNetClassifier(**options)
    classifier.fit(x, y, eval_set=[(x, y)], max_epochs=2, batch_size=64, virtual_batch_size=32, eval_metric=["logloss"])
    with tempfile.TemporaryDirectory() as folder:
        path = classifier.save_model(f"{folder}/net")
        loaded = TabNetClassifier()
        loaded.load_model(path)
    told, masks = loaded.explain(x[:8])
    regressor = TabNetRegressor(**options)
    regressor.fit(x, x[:, :1] * 2, max_epochs=2, batch_size=64, virtual_batch_size=32)
    return {
        "losses": classifier.history["loss"], "probabilities": loaded.predict_proba(x[:4]), "importance": classifier.feature_importances_,
        "told": told.sum(), "masks": len(masks), "regression": regressor.history["loss"],
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
