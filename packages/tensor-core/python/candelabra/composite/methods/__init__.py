"""Methods and attributes of Tensor that are no operators."""
