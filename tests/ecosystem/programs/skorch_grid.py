"""skorch: a network as a scikit-learn estimator, in a pipeline, a grid search and a file."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import torch
from harness import run
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, LRScheduler


class Net(torch.nn.Module):
    """Two layers."""

    def __init__(self, width: int = 8, outputs: int = 2) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Linear(width, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def main() -> dict[str, Any]:
    x, y = make_classification(120, 6, random_state=0)
    x, y = x.astype(numpy.float32), y.astype(numpy.int64)
    net = NeuralNetClassifier(
        Net, criterion=torch.nn.CrossEntropyLoss, max_epochs=4, lr=0.1, batch_size=16, verbose=0,
        callbacks=[EarlyStopping(patience=3), LRScheduler(policy="StepLR", step_size=2)],
    )  # fmt: skip
    pipeline = make_pipeline(StandardScaler(), net).fit(x, y)
    losses = net.history[:, "train_loss"]
    loaded = pickle.loads(pickle.dumps(net))
    search = GridSearchCV(net, {"module__width": [4, 8]}, cv=2, scoring="accuracy").fit(x, y)
    regressor = NeuralNetRegressor(Net, module__outputs=1, max_epochs=2, lr=0.01, verbose=0).fit(
        x, y[:, None].astype(numpy.float32)
    )
    return {
        "losses": losses, "probabilities": pipeline.predict_proba(x[:3]), "again": loaded.predict(x[:5]),
        "search": search.best_score_, "regressed": regressor.predict(x[:3]),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
