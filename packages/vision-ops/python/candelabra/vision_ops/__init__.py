"""torchvision's operators: ``candelabra.ops.torchvision`` and ``candelabra.ops.image``.

Importing this package defines them. ``torchvision`` itself finds them when it runs on
:mod:`candelabra.torch`: the package is imported in place of its compiled libraries.

>>> import candelabra
>>> from candelabra import vision_ops
>>> boxes = candelabra.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])
>>> vision_ops.nms(boxes, candelabra.tensor([0.5, 0.9, 0.1]), 0.5)
tensor([1, 2])
"""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-vision-ops", __version__, "candelabra-tensor-core>=0.1,<0.2", "candelabra-autograd>=0.1,<0.2")

from candelabra import ops

from . import autocasting, definitions, gradients, images

definitions.define()
gradients.register()
autocasting.register()
images.define()

_torchvision, _image = ops.torchvision, ops.image

nms = _torchvision.nms
box_iou_rotated = _torchvision.box_iou_rotated
roi_align = _torchvision.roi_align
roi_pool = _torchvision.roi_pool
ps_roi_align = _torchvision.ps_roi_align
ps_roi_pool = _torchvision.ps_roi_pool
deform_conv2d = _torchvision.deform_conv2d

read_file = _image.read_file
write_file = _image.write_file
decode_image = _image.decode_image
decode_jpeg = _image.decode_jpeg
decode_png = _image.decode_png
decode_gif = _image.decode_gif
decode_webp = _image.decode_webp
encode_jpeg = _image.encode_jpeg
encode_png = _image.encode_png

__all__ = [
    "box_iou_rotated", "decode_gif", "decode_image", "decode_jpeg", "decode_png", "decode_webp", "deform_conv2d", "encode_jpeg",
    "encode_png", "nms", "ps_roi_align", "ps_roi_pool", "read_file", "roi_align", "roi_pool", "write_file",
]  # fmt: skip
