"""Function transforms, implemented as functorch layers of wrapped tensors (see
:mod:`..functorch_layers`).
"""
