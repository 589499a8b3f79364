"""Documents that a reader of PDF files can read."""

from collections.abc import Iterator, Sequence

_HEAD = b"%PDF-1.4\n"


def pdf_of_pages(pages: Sequence[str]) -> bytes:
    """Return a PDF whose pages have these texts, line by line."""
    content = _HEAD
    offsets: list[int] = []
    for number, body in enumerate(_objects(pages), start=1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(content)
    content += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
    for offset in offsets:
        content += b"%010d 00000 n \n" % offset
    content += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(offsets) + 1)
    return content + b"startxref\n%d\n%%%%EOF\n" % table


def _objects(pages: Sequence[str]) -> Iterator[bytes]:
    """Yield catalog, list of pages, font, then each page with its text."""
    first = 4
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(pages)))
    yield b"<< /Type /Catalog /Pages 2 0 R >>"
    yield f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    yield b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    for index, page in enumerate(pages):
        text = first + 2 * index + 1
        yield (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {text} 0 R >>"
        ).encode()
        yield _stream(page)


def _stream(page: str) -> bytes:
    """Return the lines of a page, one below the other."""
    lines = [f"({line}) Tj 0 -14 Td" for line in page.splitlines()]
    drawn = " ".join(["BT /F1 11 Tf 50 800 Td", *lines, "ET"]).encode()
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn)
