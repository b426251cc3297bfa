"""Names of ``torch.compiler``, ``jit``, ``export`` and ``onnx`` that candelabra-compile has not."""
