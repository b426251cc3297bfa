"""Record the results of torchvision: ``python record.py`` where PyTorch and torchvision are."""

from __future__ import annotations

import json
from pathlib import Path

import recorded_cases
import torch
import torchvision

if __name__ == "__main__":
    made = {"torchvision": torchvision.__version__, "results": recorded_cases.run(torch)}
    text = json.dumps(made, indent=1)
    Path(__file__).with_name("torchvision_results.json").write_text(text + "\n")
