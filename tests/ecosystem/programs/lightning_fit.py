"""lightning: a Trainer fits, validates, stores a checkpoint and tests the loaded module."""

from __future__ import annotations

import logging
import tempfile
import warnings
from typing import Any

import lightning
import torch
from harness import run
from torch.nn import functional as F

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    """A classifier of two layers."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        loss = F.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val_loss", F.cross_entropy(self.layers(batch[0]), batch[1]))

    test_step = validation_step

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


def main() -> dict[str, Any]:
    lightning.seed_everything(0, verbose=False)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=3, accelerator="cpu", default_root_dir=folder, enable_progress_bar=False, logger=False,
            enable_model_summary=False, gradient_clip_val=0.5,
        )  # fmt: skip
        net = Net()
        trainer.fit(net, loader, loader)
        trainer.save_checkpoint(f"{folder}/net.ckpt")
        loaded = Net.load_from_checkpoint(f"{folder}/net.ckpt")
        tested = trainer.test(loaded, loader, verbose=False)
    return {
        "trained": trainer.callback_metrics["val_loss"],
        "tested": tested[0]["val_loss"],
        "steps": trainer.global_step,
    }


if __name__ == "__main__":
    run(main)
