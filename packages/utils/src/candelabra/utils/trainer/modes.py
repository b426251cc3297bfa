"""Modes that last for a block."""

from __future__ import annotations

from typing import Any

import candelabra


class evaluating:
    """Evaluation mode, without recording; each module gets its own mode back."""

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
    """Operators that are not deterministic are refused, where that is wanted."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        self._before = candelabra.are_deterministic_algorithms_enabled()
        if self._wanted:
            candelabra.use_deterministic_algorithms(True)

    def __exit__(self, *error: Any) -> None:
        candelabra.use_deterministic_algorithms(self._before)
