"""A server's data folder belongs to one living server."""

import os
from pathlib import Path

import pytest

from culture.server.errors import StartError
from culture.server.lock import DataLock


@pytest.mark.fault("B14")
def test_a_data_folder_has_one_server(tmp_path: Path) -> None:
    """B14"""
    first, second = DataLock(tmp_path / "data"), DataLock(tmp_path / "data")
    first.acquire()
    with pytest.raises(StartError, match=rf"in use by another server \(pid {os.getpid()}\)"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_a_data_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot use the data folder"):
        DataLock(tmp_path / "file" / "data").acquire()
