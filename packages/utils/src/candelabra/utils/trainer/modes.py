"""Context managers for modes."""

from __future__ import annotations

from typing import Any

import candelabra


class evaluating:
    """Evaluation mode without gradient recording; restores the mode of each module at the end."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._no_grad = candelabra.no_grad()

    def __enter__(self) -> None:
        self._training = [(module, module.training) for module in self._model.modules()]
        self._model.eval()
        self._no_grad.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._no_grad.__exit__(*error)
        for module, training in self._training:
            module.training = training


class deterministic_algorithms:
    """If `wanted`, make nondeterministic operators raise an error."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        self._before = candelabra.are_deterministic_algorithms_enabled()
        if self._wanted:
            candelabra.use_deterministic_algorithms(True)

    def __exit__(self, *error: Any) -> None:
        candelabra.use_deterministic_algorithms(self._before)
