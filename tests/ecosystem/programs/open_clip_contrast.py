"""open_clip: a small CLIP learns pairs of images and texts by the contrastive loss."""

from __future__ import annotations

from typing import Any

import torch
from harness import run
from open_clip.loss import ClipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg


def main() -> dict[str, Any]:
    model = CLIP(
        embed_dim=16, vision_cfg=CLIPVisionCfg(layers=2, width=32, head_width=16, patch_size=8, image_size=32),
        text_cfg=CLIPTextCfg(context_length=12, vocab_size=64, width=32, heads=2, layers=2), output_dict=True,
    )  # fmt: skip
    images, texts = torch.randn(4, 3, 32, 32), torch.randint(1, 64, (4, 12))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        loss = ClipLoss()(**model(images, texts))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        similar = model.encode_image(images, normalize=True) @ model.encode_text(texts, normalize=True).T
    return {"losses": losses, "similar": similar}


if __name__ == "__main__":
    run(main)
