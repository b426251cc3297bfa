"""Training loop, and its parts, each of which can be used separately."""

from .callbacks import HOOKS, Callback, EarlyStopping
from .checkpoints import Checkpoints
from .gradients import clip_gradients
from .learning_rate import LearningRates, find_learning_rate
from .logs import CSVLog, Curves, ProgressBar, TensorBoard, WandB
from .metrics import Mean, accuracy
from .place import Place
from .placement import choose_device, to_device
from .precision import Precision
from .progress import Progress
from .randomness import kept_generators, random_states, seed_everything, set_random_states
from .trainer import Trainer

__all__ = [
    "HOOKS", "CSVLog", "Callback", "Checkpoints", "Curves", "EarlyStopping", "LearningRates", "Mean", "Place", "Precision",
    "Progress", "ProgressBar", "TensorBoard", "Trainer", "WandB", "accuracy", "choose_device", "clip_gradients", "find_learning_rate",
    "kept_generators", "random_states", "seed_everything", "set_random_states", "to_device",
]  # fmt: skip
