"""Which pages are pictures, and what becomes of them on their way to who reads them."""

import io

import pytest
from PIL import Image

from penstock.documents.parse.limits import ParseLimits
from penstock.documents.parse.picture import picture as picture_of
from penstock.documents.parse.read import read
from penstock.errors import ParserError
from tests.support import documents, scans
from tests.support.scans import noise, picture, saved

LIMITS = ParseLimits(scans=10)
TEXT = "The sluice opens at dawn, a quarter turn at a time."


def reason(data: bytes, limits: ParseLimits = LIMITS) -> str:
    with pytest.raises(ParserError) as caught:
        read(data, limits)
    return caught.value.reason


def test_only_pages_without_text_are_scans() -> None:
    mixed = scans.pdf(TEXT, picture("a"), None, TEXT, picture("b"), "x")
    parsed = read(mixed, LIMITS)
    assert parsed.scans == (2, 5), "neither the empty page nor the short one"
    assert [page.number for page in parsed.pages] == [1, 2, 3, 4, 5, 6]
    assert parsed.text == f"{TEXT}\n\n{TEXT}\n\nx"


def test_a_number_or_a_name_at_the_foot_of_a_picture_is_no_text() -> None:
    assert read(scans.pdf(picture("a", size=(600, 800)), footer="17"), LIMITS).scans == (1,)
    assert read(scans.pdf(picture("a", size=(600, 800)), footer=TEXT), LIMITS).scans == ()
    small = scans.pdf(picture("a", size=(600, 80)), footer="17")
    assert read(small, LIMITS).scans == (), "a small picture is not the page"


def test_every_page_of_text_is_text() -> None:
    assert read(documents.pdf(), LIMITS).scans == ()


def test_what_was_read_takes_its_place_among_the_pages() -> None:
    data = scans.pdf(TEXT, picture("a"), picture("b"), TEXT, bookmarks=["One", "Two", "Three"])
    parsed = read(data, LIMITS, {2: "Then:\n\nTwo turns.", 3: ""})
    assert parsed.scans == ()
    assert parsed.text == f"{TEXT}\n\nThen:\n\nTwo turns.\n\n{TEXT}"
    pages = [parsed.text[page.start : page.end].strip() for page in parsed.pages]
    assert pages == [TEXT, "Then:\n\nTwo turns.", "", TEXT]
    assert [parsed.text[one.start :][:3] for one in parsed.headings] == ["The", "Two", "The"]


def test_a_document_of_blank_pictures_is_empty() -> None:
    with pytest.raises(ParserError, match="no text") as caught:
        read(scans.pdf(picture("")), LIMITS, {1: ""})
    assert caught.value.reason == "empty"


@pytest.mark.parametrize("how", ["PNG", "JPEG", "TIFF"])
def test_a_picture_in_a_file_is_a_scan_by_its_content(how: str) -> None:
    parsed = read(saved(picture("a"), how), LIMITS)
    assert (parsed.scans, parsed.mime) == ((1,), f"image/{how.lower()}")
    assert [page.number for page in parsed.pages] == [1]


def test_a_tiff_has_pages() -> None:
    data = saved(picture("a"), "TIFF", picture("b", size=(300, 200)))
    assert read(data, LIMITS).scans == (1, 2)
    assert picture_of(data, 2, LIMITS).image.size == (300, 200)


@pytest.mark.parametrize("data", [scans.pdf(picture("a")), saved(picture("a"), "PNG")])
def test_where_scans_are_not_read_that_is_what_is_said(data: bytes) -> None:
    with pytest.raises(ParserError, match="set `scans: ocr`") as caught:
        read(data, ParseLimits())
    assert caught.value.reason == "scanned"


def test_where_scans_are_not_read_pages_with_text_are() -> None:
    parsed = read(scans.pdf(TEXT, picture("a")), ParseLimits())
    assert (parsed.text.strip(), parsed.scans) == (TEXT, ())


def test_more_pictures_than_allowed_are_refused() -> None:
    limits = ParseLimits(scans=2)
    assert reason(scans.pdf(*[picture("a")] * 3), limits) == "oversized"
    frames = [picture("a")] * 2
    assert reason(saved(picture("a"), "TIFF", *frames), limits) == "oversized"


def test_more_pixels_than_allowed_are_refused_before_they_are_unpacked() -> None:
    bomb = saved(Image.new("1", (8_000, 8_000)), "PNG")
    assert len(bomb) < 20_000
    assert reason(bomb) == "bomb"
    second, limits = saved(picture("a"), "TIFF", noise(1_000)), ParseLimits(pixels=500_000)
    assert picture_of(second, 1, limits)
    with pytest.raises(ParserError, match="pixels"):
        picture_of(second, 2, limits)


def test_a_damaged_picture_is_corrupt() -> None:
    assert reason(b"\x89PNG\r\n\x1a\n" + bytes(100)) == "corrupt"


def test_a_page_is_drawn_with_300_dots_an_inch_and_a_huge_one_with_fewer() -> None:
    drawn = picture_of(scans.pdf(picture("a")), 1, LIMITS)
    assert (drawn.dpi, drawn.image.mode) == (300, "L")
    assert drawn.image.width == pytest.approx(595 * 300 / 72, abs=2)
    large = Image.new("1", (7_000, 7_000), 1)
    assert picture_of(saved(large, "PNG"), 1, LIMITS).image.size == (3_500, 3_500)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16"])
def test_ink_is_dark_and_paper_is_light_in_every_mode(mode: str) -> None:
    """Also where nothing was drawn at all, which is transparent."""
    how = "TIFF" if mode == "CMYK" else "PNG"
    if mode == "I;16":
        image = Image.new("I;16", (100, 100), 65_535)
        image.paste(0, (0, 0, 50, 100))
    else:
        image = Image.new("RGBA", (100, 100), (255, 255, 255, 0))
        image.paste((0, 0, 0, 255), (0, 0, 50, 100))
        if mode in ("LA", "RGBA"):
            image = image.convert(mode)
        else:
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image).convert("RGB").convert(mode)
    seen = picture_of(saved(image, how), 1, LIMITS).image
    assert seen.mode == "L"
    pixels = seen.tobytes()
    ink, paper = pixels[50 * 100 + 25], pixels[50 * 100 + 75]
    assert (ink < 40, paper > 215) == (True, True), (mode, ink, paper)


def test_a_photograph_held_sideways_is_turned() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    picture("a", size=(200, 100)).save(buffer, "JPEG", exif=exif)
    assert picture_of(buffer.getvalue(), 1, LIMITS).image.size == (100, 200)


def test_a_model_is_shown_a_small_png() -> None:
    png = picture_of(scans.pdf(picture("a")), 1, LIMITS).png()
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.mode, max(image.size)) == ("PNG", "L", 2_000)
