"""diffusers: a UNet learns to denoise, is stored, and a pipeline samples with DDIM."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from diffusers import DDIMPipeline, DDIMScheduler, DDPMScheduler, UNet2DModel
from harness import run


def main() -> dict[str, Any]:
    model = UNet2DModel(
        sample_size=16, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    noising = DDPMScheduler(num_train_timesteps=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        images, noise = torch.randn(4, 1, 16, 16), torch.randn(4, 1, 16, 16)
        steps = torch.randint(0, 100, (4,))
        loss = torch.nn.functional.mse_loss(model(noising.add_noise(images, noise, steps), steps).sample, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        DDIMPipeline(unet=model, scheduler=DDIMScheduler(num_train_timesteps=100)).save_pretrained(folder)
        pipeline = DDIMPipeline.from_pretrained(folder)
    pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator().manual_seed(0)
    sampled = pipeline(batch_size=1, num_inference_steps=5, generator=generator, output_type="np").images
    return {"losses": losses, "sampled": [float(sampled.mean()), float(sampled.std())]}


if __name__ == "__main__":
    run(main)
