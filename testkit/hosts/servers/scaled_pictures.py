"""Prints what the pipe makes of too large pictures, with the libraries of the host.

A JSON list: a corner of a transparent drawing, the size of a photo that lies on its side.
"""

import base64
import io
import json
from importlib import import_module
from typing import Any

from owui_manifold.prepare.files import scale_image

pillow: Any = import_module("PIL.Image")
ORIENTATION = 0x0112
LYING = 6


def scaled(picture: Any, kind: str, **options: Any) -> Any:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    encoded = base64.b64encode(file.getvalue()).decode()
    return pillow.open(io.BytesIO(scale_image(encoded)))


drawing = pillow.new("RGBA", (8, 8), (0, 0, 0, 0))
orientation = pillow.Exif()
orientation[ORIENTATION] = LYING
photo = scaled(pillow.new("RGB", (16, 8)), "JPEG", exif=orientation)
print(json.dumps([scaled(drawing, "PNG").getpixel((0, 0)), photo.size]))
