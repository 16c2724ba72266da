"""Put tesseract with English, Japanese and Korean, and a font that has all three, into
.venv/tesseract, for the tests; nothing is installed system-wide.

bin/tesseract  starts it with the libraries and data that lie beside it; put bin on the PATH
cjk.ttc        the font
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.debian import copy_libraries, unpacked

HOME = Path(sys.prefix) / "tesseract"
PACKAGES = ("tesseract-ocr", "tesseract-ocr-jpn", "tesseract-ocr-kor", "fonts-wqy-microhei")
# exec: whoever kills what was started kills tesseract.
START = """\
#!/bin/sh
LD_LIBRARY_PATH='{home}/lib' TESSDATA_PREFIX='{home}/tessdata' exec '{home}/lib/tesseract' "$@"
"""


def main() -> None:
    start = HOME / "bin" / "tesseract"
    if start.exists():
        return
    with unpacked("tesseract", *PACKAGES) as root:
        shutil.rmtree(HOME, ignore_errors=True)
        (HOME / "lib").mkdir(parents=True)
        copy_libraries(root, HOME / "lib")
        shutil.copy2(root / "usr/bin/tesseract", HOME / "lib" / "tesseract")
        (data,) = root.glob("usr/share/tesseract-ocr/*/tessdata")
        shutil.copytree(data, HOME / "tessdata")
        (font,) = root.glob("usr/share/fonts/truetype/wqy/*.ttc")
        shutil.copy2(font, HOME / "cjk.ttc")
    start.parent.mkdir()
    start.write_text(START.format(home=HOME))
    start.chmod(0o755)


if __name__ == "__main__":
    main()
