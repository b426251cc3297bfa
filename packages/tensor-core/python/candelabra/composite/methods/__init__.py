"""Methods and attributes of Tensor that are not operators."""
