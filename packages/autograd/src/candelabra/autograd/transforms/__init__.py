"""How functions are transformed: levels of tensors that stand for others (see :mod:`.levels`)."""
