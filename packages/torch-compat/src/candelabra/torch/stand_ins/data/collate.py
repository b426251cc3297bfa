"""``torch.utils.data._utils.collate``: texts of PyTorch's module."""

from __future__ import annotations

import re

__all__ = ["default_collate_err_msg_format", "np_str_obj_array_pattern"]

#: NumPy's dtypes that no tensor has.
np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
