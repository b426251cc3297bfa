"""ignite: a trainer with events, metrics, a schedule, early stopping and checkpoints."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from harness import run
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, LinearCyclicalScheduler
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage


def main() -> dict[str, Any]:
    x = torch.randn(64, 6)
    data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(net, optimizer, loss_of)
    evaluator = create_supervised_evaluator(
        net, {"accuracy": Accuracy(), "loss": Loss(loss_of), "confusion": ConfusionMatrix(2)}
    )
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
    trainer.add_event_handler(Events.ITERATION_STARTED, LinearCyclicalScheduler(optimizer, "lr", 0.01, 0.2, 6))
    losses = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine: Any) -> None:
        evaluator.run(loader)
        losses.append([engine.state.metrics["loss"], evaluator.state.metrics["loss"]])

    evaluator.add_event_handler(
        Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
    )
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint({"net": net, "optimizer": optimizer}, DiskSaver(folder, create_dir=False), n_saved=1)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, kept)
        trainer.run(loader, max_epochs=3)
        Checkpoint.load_objects({"net": net, "optimizer": optimizer}, torch.load(kept.last_checkpoint))
    return {
        "losses": losses,
        "accuracy": evaluator.state.metrics["accuracy"],
        "confusion": evaluator.state.metrics["confusion"],
    }


if __name__ == "__main__":
    run(main)
