"""The digits of ``digits.py`` once more, trained by `candelabra.utils.Trainer`.

It evaluates after each epoch, keeps the last and the best checkpoint, writes a table and draws
curves. Interrupt it with Ctrl-C or ``kill -9`` and start it again with ``--resume``: it goes on and
ends with the weights that it would have had.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from digits import DigitNet, load

import candelabra
from candelabra import nn, optim
from candelabra.utils import Trainer
from candelabra.utils.data import DataLoader, TensorDataset
from candelabra.utils.trainer import Checkpoints, CSVLog, Curves, EarlyStopping, accuracy, seed_everything


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("output") / "trainer")
    options = parser.parse_args()

    seed_everything(0)
    train_x, train_y, test_x, test_y = load("cpu")
    training = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
    testing = DataLoader(TensorDataset(test_x, test_y), batch_size=256)

    model = DigitNet()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=options.epochs * len(training))
    trainer = Trainer(
        model, optimizer, nn.functional.cross_entropy,
        scheduler=schedule, schedule_by="step", metrics=[accuracy], precision=options.precision, clip_norm=5.0,
        device=options.device,
        checkpoints=Checkpoints(options.output, keep_last=1, keep_best=1, monitor="eval_accuracy", mode="max"),
        callbacks=[
            CSVLog(options.output / "log.csv"),
            Curves(options.output / "curves.png"),
            EarlyStopping("eval_accuracy", patience=10, mode="max"),
        ],
    )  # fmt: skip
    trainer.fit(training, testing, epochs=options.epochs, resume=options.resume)
    if trainer.stopped is not None:
        print(f"stopped ({trainer.stopped}) after step {trainer.progress.step}")
    if trainer.stopped in ("SIGINT", "SIGTERM"):
        return

    best = trainer.checkpoints.best()
    model.load_state_dict(candelabra.load(best)["model"])
    score = trainer.evaluate(testing)["eval_accuracy"]
    print(
        f"test accuracy {score:.2%} with the weights of {best.name}; {trainer.progress.epoch} epochs, {trainer.progress.step} steps"
    )


if __name__ == "__main__":
    main()
