"""Under which name and type a file of a model is stored."""

import mimetypes
from itertools import product

import pytest

from owui_chat.file_names import image_name, shorten_name, stored_name

RUN_BY_BROWSERS = ("html", "xml", "svg", "javascript", "ecmascript", "css", "rfc822")
"""Parts of the types of pages, of what runs in them, and of stored pages."""
ACTIVE_ENDINGS = """
htm html xhtml xht shtml svg svgz xml xsl xslt rdf rss atom mht mhtml eml js mjs css swf
wsdl xpdl
"""
ENCODINGS = ("", ".gz", ".GZ", ".bz2", ".xz", ".Z", ".br", ".gz.bz2", ".csv.gz", ".tgz")
STEMS = ("report", "", ".", "a.png", "data:text/html,a", "a/b", "c:\\d", "r " * 300)


def test_no_name_is_one_that_a_browser_runs() -> None:
    """Whatever comes before and after the ending, by `mimetypes` as the host uses it.

    The host puts a folder and an id in front of the name.
    """
    endings = [*ACTIVE_ENDINGS.split(), *ACTIVE_ENDINGS.upper().split()]
    for stem, ending, encoding in product(STEMS, endings, ENCODINGS):
        for tail in ("", " ", ".", "\n", "/"):
            name = stored_name(f"{stem}.{ending}{encoding}{tail}")[0]
            for path in (name, f"/data/uploads/0a1b_{name}"):
                guessed = mimetypes.guess_type(path)[0] or ""
                assert not any(part in guessed for part in RUN_BY_BROWSERS), path


@pytest.mark.parametrize(
    ("given", "name", "media_type"),
    [
        ("people.csv", "people.csv", "text/csv"),
        ("CHART.PNG", "CHART.PNG", "image/png"),
        ("/mnt/data/report.pdf", "report.pdf", "application/pdf"),
        ("a.b.json", "a.b.json", "application/json"),
        ("table.csv.gz", "table.csv.gz", "application/gzip"),
        ("all.tar.xz", "all.tar.xz", "application/x-xz"),
        ("dump.gz", "dump.gz", "application/gzip"),
        ("report.html", "report.html.bin", "application/octet-stream"),
        ("report.html.gz", "report.html.gz.bin", "application/octet-stream"),
        ("report.htm.bz2", "report.htm.bz2.bin", "application/octet-stream"),
        ("report.HTML.xz", "report.HTML.xz.bin", "application/octet-stream"),
        (".html.gz", ".html.gz.bin", "application/octet-stream"),
        (".png", ".png.bin", "application/octet-stream"),
        ("plot.svg", "plot.svg.bin", "application/octet-stream"),
        ("Makefile", "Makefile.bin", "application/octet-stream"),
        ("a.html\\", "file.bin", "application/octet-stream"),
        ("", "file.bin", "application/octet-stream"),
        ("r\udce9sum\udce9.pdf", "r_sum_.pdf", "application/pdf"),
        ("a\0b.csv", "a_b.csv", "text/csv"),
        ("a\nb\u2028c.csv", "a_b_c.csv", "text/csv"),
        ("plan\u202egpj.zip", "plan_gpj.zip", "application/zip"),
        ("a.png\r", "a.png_.bin", "application/octet-stream"),
        ("報" * 100 + "告.csv", "報" * 64 + "告.csv", "text/csv"),
        ("報告\u3000二.pdf", "報告\u3000二.pdf", "application/pdf"),
        ("می\u200cخواهم.pdf", "می\u200cخواهم.pdf", "application/pdf"),
    ],
)
def test_name_keeps_an_ending_that_is_only_shown_or_downloaded(
    given: str, name: str, media_type: str
) -> None:
    assert stored_name(given) == (name, media_type)


INERT = """
avif bmp gif heic ico jpeg jpg png tif tiff webp flac m4a mp3 mp4 ogg wav webm
doc docx epub odp ods odt pdf ppt pptx rtf xls xlsx csv geojson ics ipynb json jsonl log
md py sql tex toml tsv txt yaml yml 7z arrow bin db feather h5 npy npz parquet pkl sqlite
stl tar tgz zip bz2 gz xz
"""


def test_file_that_a_browser_runs_nothing_of_keeps_its_ending() -> None:
    """Whoever downloads it opens it with a click."""
    given = [f"a.{ending}" for ending in INERT.split()]

    assert [stored_name(name)[0] for name in given] == given


@pytest.mark.parametrize(
    ("media_type", "name"),
    [
        ("image/png", "image.png"),
        ("image/jpeg", "image.jpg"),
        ("image/gif", "image.gif"),
        ("image/webp", "image.webp"),
        ("image/svg+xml", "image.bin"),
        ("image/../../a.html", "image.bin"),
    ],
)
def test_image_name_follows_its_media_type(media_type: str, name: str) -> None:
    """Its type comes from the server, and may be SVG."""
    assert stored_name(image_name(media_type))[0] == name


def test_long_name_keeps_its_begin_and_its_ending() -> None:
    """So that a picture with a name of 36 kB is still a picture."""
    name = "a" * 100 + "b" * 36_000 + ".png"

    short = shorten_name(name)

    assert len(short) == 200
    assert short.startswith("a" * 100)
    assert short.endswith("b.png")
    assert stored_name(name)[1] == "image/png"
    assert shorten_name("a" * 200) == "a" * 200


@pytest.mark.parametrize("length", [200, 201, 300])
def test_name_has_two_hundred_characters_at_most(length: int) -> None:
    """File systems refuse one that is a little longer, too."""
    name = "a" * (length - 4) + ".png"
    assert len(shorten_name(name)) == len(stored_name(name)[0]) == 200
