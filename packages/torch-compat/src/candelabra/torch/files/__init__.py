"""``torch.save`` and ``torch.load``: any object that can be pickled, in PyTorch's own files.

`candelabra.save` and `candelabra.load` never store or run code. A program that calls
``torch.save(model)`` or ``torch.load(weights_only=False)`` asked for it.
"""
