"""Renders pages as images: PDF pages by PDFium, image files by Pillow.

All are grey: what reads them needs no colour, and a third of the memory is enough.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.pdf_file import open_pdf
from penstock.documents.parse.sniff import is_pdf
from penstock.errors import ConfigError, ParserError

if TYPE_CHECKING:
    from PIL import Image

_FORMATS = ("PNG", "JPEG", "TIFF")
_DPI = 300
"""The resolution tesseract was made for; half of it is worse, and twice is no better."""
_MOST_PIXELS = 20_000_000
"""Larger images are scaled down. A4 at 300 dpi has 8.7 million."""
_MODEL_SIDE = 2_000
"""Pixels of the longer side for a model. Most models scale down to that themselves."""
_DPI_RANGE = range(70, 2401)
"""Resolutions that tesseract accepts."""


class Picture(NamedTuple):
    image: Image.Image
    dpi: int | None

    def pgm(self) -> bytes:
        return self._saved(self.image, "PPM")

    def png(self) -> bytes:
        """Encode an image as PNG, for a model."""
        small = self.image.copy()
        small.thumbnail((_MODEL_SIDE, _MODEL_SIDE))
        return self._saved(small, "PNG")

    @staticmethod
    def _saved(image: Image.Image, how: str) -> bytes:
        buffer = io.BytesIO()
        image.save(buffer, how)
        return buffer.getvalue()


def count_pictures(data: bytes, limits: ParseLimits) -> int:
    """Count the pages of an image file: TIFF may have many."""
    with _open(data, limits) as image:
        return getattr(image, "n_frames", 1) if image.format == "TIFF" else 1


def picture(data: bytes, number: int, limits: ParseLimits) -> Picture:
    """Render page `number`, from 1."""
    return _drawn(data, number) if is_pdf(data) else _opened(data, number, limits)


def _drawn(data: bytes, number: int) -> Picture:
    _pillow()
    with open_pdf(data) as document:
        page = document[number - 1]
        width, height = page.get_size()
        inches = max(1e-6, width * height / 72**2)
        dpi = min(_DPI, (_MOST_PIXELS / inches) ** 0.5)
        image = page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L")
        page.close()
    return Picture(image, int(dpi) if int(dpi) in _DPI_RANGE else None)


def _opened(data: bytes, number: int, limits: ParseLimits) -> Picture:
    from PIL import ImageOps

    with _open(data, limits) as image:
        image.seek(number - 1)
        _refuse_large(image, limits)  # each page has a size of its own
        said = image.info.get("dpi", (0, 0))[0]
        grey = _grey(ImageOps.exif_transpose(image))
    shrunk = 1
    while grey.width * grey.height > _MOST_PIXELS * shrunk**2:
        shrunk += 1
    dpi = round(said / shrunk)
    return Picture(grey.reduce(shrunk), dpi if dpi in _DPI_RANGE else None)


def _grey(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits, of which the upper ones are what is seen
        return image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if image.has_transparency_data:  # nothing, on paper, is white
        seen = image.convert("RGBA")
        paper = Image.new("RGBA", seen.size, "white")
        return Image.alpha_composite(paper, seen).convert("L")
    return image.convert("L")


def _open(data: bytes, limits: ParseLimits) -> Image.Image:
    """Open an image, reading only its header."""
    _pillow()
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # ours is the limit
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except UnidentifiedImageError as error:
        raise ParserError("not a whole picture", "corrupt") from error
    _refuse_large(image, limits)
    return image


def _refuse_large(image: Image.Image, limits: ParseLimits) -> None:
    if image.width * image.height > limits.pixels:
        raise ParserError(f"a picture of more than {limits.pixels} pixels", "bomb")


def _pillow() -> None:
    try:
        import PIL.Image  # noqa: F401 (heavy, and only pictures need it)
    except ImportError as error:
        raise ConfigError("pictures need the extra: pip install 'penstock[scans]'") from error
