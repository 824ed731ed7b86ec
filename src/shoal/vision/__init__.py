"""Networks for images: pretraining, views, encoders and training on CPU or GPU.

Needs the extra ``shoal[vision]`` (torch, pillow). Images are uint8 arrays of shape
(n, height, width, 3); a network sees ``(x / 255 - 0.5) / 0.25`` as NCHW.
"""
