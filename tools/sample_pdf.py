"""Makes examples/documents/turbine.pdf, which is kept: `python -m tools.sample_pdf`."""

from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

FILE = Path(__file__).parents[1] / "examples" / "documents" / "turbine.pdf"
TITLE = "Manual of the small turbine"
PAGES = {
    "Starting": (
        "Fill the penstock slowly before the guide vanes are opened, or air is",
        "trapped and the pipe knocks. The pressure gauge must stand still for a minute.",
    ),
    "Running": (
        "The bearings are greased every 400 hours. A bearing warmer than 70 degrees",
        "is a reason to stop; a bearing that sings is a reason to stop at once.",
    ),
    "Spare parts": (
        "Seals and shear pins are in the red cabinet. Order more from Rowan Pike,",
        "rowan.pike@example.com, telephone +1 (555) 010-4242, card 4111 1111 1111 1111.",
    ),
}


def main() -> None:
    canvas = Canvas(str(FILE), invariant=1)
    canvas.setTitle(TITLE)
    for heading, lines in PAGES.items():
        canvas.bookmarkPage(heading)
        canvas.addOutlineEntry(heading, heading)
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(72, 760, heading)
        canvas.setFont("Helvetica", 12)
        for row, line in enumerate(lines):
            canvas.drawString(72, 730 - 18 * row, line)
        canvas.showPage()
    canvas.save()


if __name__ == "__main__":
    main()
