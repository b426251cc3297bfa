"""``torch.compiler``, ``torch.jit``, ``torch.export`` and ``torch.onnx``: names that candelabra-compile has not."""
