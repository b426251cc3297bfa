"""fastai: a Learner fits one cycle with metrics, is exported and loaded, and predicts."""

from __future__ import annotations

import tempfile
from typing import Any

import pandas
import torch
from fastai.basics import DataLoaders, Learner, load_learner
from fastai.data.core import DataLoader
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner
from harness import run


def main() -> dict[str, Any]:
    x = torch.randn(96, 6)
    y = (x.sum(1) > 0).long()
    pairs = list(zip(x, y, strict=True))
    loaders = DataLoaders(DataLoader(pairs[:64], bs=16), DataLoader(pairs[64:], bs=16), device=torch.device("cpu"))
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(loaders, net, loss_func=CrossEntropyLossFlat(), metrics=accuracy, path=folder)
        with learner.no_bar(), learner.no_logging():
            learner.fit_one_cycle(2, 0.01)
            first = learner.validate()
        learner.save("learner")
        torch.nn.init.zeros_(net[0].weight)
        with learner.no_bar():
            second = learner.load("learner").validate()
    table = pandas.DataFrame({"number": range(64), "word": ["a", "b"] * 32, "label": ["yes", "no"] * 32})
    tabular = TabularDataLoaders.from_df(
        table, procs=[Categorify, FillMissing, Normalize], cat_names=["word"], cont_names=["number"], y_names="label",
        valid_idx=list(range(48, 64)), bs=16, device="cpu",
    )  # fmt: skip
    model = tabular_learner(tabular, layers=[8], metrics=accuracy)
    with model.no_bar(), model.no_logging(), tempfile.TemporaryDirectory() as folder:
        model.fit(1, 0.01)
        told = model.validate()
        model.export(f"{folder}/learner.pkl")
        loaded = load_learner(f"{folder}/learner.pkl")
        with loaded.no_bar(), loaded.no_logging():
            predicted = loaded.get_preds(dl=loaded.dls.test_dl(table.iloc[:3]))[0]
    return {"first": list(first), "second": list(second), "tabular": list(told), "predicted": predicted}


if __name__ == "__main__":
    run(main)
