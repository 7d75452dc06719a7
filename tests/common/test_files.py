"""A file is whole at all times: the old one or the new one, whatever stops the writing."""

import threading

import pytest

from bayes_sparse.common.files import write_whole
from tests.support import assert_one_sentence, no_room, refused

OLD, NEW = b"before" * 10, b"after" * 10_000


def test_folders_are_made_and_words_are_written(tmp_path):
    write_whole(tmp_path / "deep" / "page.html", "é")
    assert (tmp_path / "deep" / "page.html").read_bytes() == "é".encode()
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_without_room_what_was_there_is_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with no_room():
        refused(lambda: write_whole(path, NEW), "50,000 bytes", "file", "before is there still", kind=OSError)
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="cannot be written") as error:
        write_whole(tmp_path, NEW)
    assert_one_sentence(str(error.value))


def test_many_writers_leave_one_whole_file(tmp_path):
    path, contents = tmp_path / "file", [bytes([i]) * 100_000 for i in range(8)]
    writers = [threading.Thread(target=write_whole, args=(path, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
