"""Documents in the form that the API reads, with their types."""

import base64

from openai_responses.items import Item

PDF_TYPE = "application/pdf"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENT_TYPES = {
    "pdf": PDF_TYPE,
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "odt": "application/vnd.oasis.opendocument.text",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rtf": "application/rtf",
    "tsv": "text/tab-separated-values",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "xml": "text/xml",
}
_PLAIN_TEXT = (
    "c cc cpp cs css go h hpp ini java js jsx kt log lua php pl py r rb rs sh sql swift "
    "tex toml ts tsx txt vb yaml yml"
)


def document_type(name: str, declared: str) -> str:
    """Return the media type of a document that the API reads; else nothing.

    The name comes first: what a browser declares differs from system to system.
    """
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PLAIN_TEXT.split():
        return "text/plain"
    kind = declared.partition(";")[0].strip().lower()
    is_read = kind in _DOCUMENT_TYPES.values() or kind.startswith("text/")
    return _DOCUMENT_TYPES.get(suffix) or (kind if is_read else "")


def document_part(name: str, kind: str, content: bytes) -> Item:
    """Return a document as a part of a content."""
    url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": url}
