"""What is remembered of files that were uploaded for code."""

from owui_manifold.call.uploads import UploadKey, UploadMemory

MOST = 5_000


def key(number: int) -> UploadKey:
    """A file of a chat."""
    ids = ("account", "user-1", "chat-1", f"file-{number}")
    return UploadKey(*ids, path="a.csv", size=1, name="a.csv")


def test_of_too_many_files_the_oldest_upload_is_forgotten() -> None:
    """One that was uploaded again is the newest, and takes no second place."""
    memory = UploadMemory()
    for number in range(MOST):
        memory.add(key(number), f"id-{number}")
    memory.add(key(0), "id-new")
    assert memory.find(key(1)) == "id-1"
    memory.add(key(MOST), "id-last")

    assert memory.find(key(0)) == "id-new"
    assert memory.find(key(1)) == ""
    assert memory.find(key(2)) == "id-2"
