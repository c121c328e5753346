"""Where things are, and that nobody else may read them."""

import os
import pwd
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config import paths
from culture.lib.files import open_private, private_directory
from culture.protocol.names import valid_short_name


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everything_moves_with_culture_home(home: Path) -> None:
    for path in (
        paths.server_file(),
        paths.agents_file(),
        paths.data_dir("s"),
        paths.pid_file("s"),
        paths.log_file("s"),
    ):
        assert path.is_relative_to(home)


@pytest.mark.requirement("K01")
def test_without_culture_home_it_is_in_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """K01"""
    monkeypatch.delenv("CULTURE_HOME")
    assert paths.agents_file() == Path.home() / ".culture" / "agents.yaml"
    assert paths.server_file() == Path.home() / ".culture" / "culture.yaml"


def test_folders_and_files_are_for_their_owner_alone(home: Path) -> None:
    """Each folder on the way too, whatever the umask."""
    before = os.umask(0)
    try:
        os.close(open_private(paths.log_file("spark"), os.O_WRONLY))
    finally:
        os.umask(before)
    assert mode(home) == mode(home / "log") == 0o700
    assert mode(paths.log_file("spark")) == 0o600


def test_a_symlink_in_place_of_a_file_is_refused(home: Path, tmp_path: Path) -> None:
    private_directory(home / "run")
    paths.pid_file("spark").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(paths.pid_file("spark"), os.O_WRONLY)
    assert not (tmp_path / "elsewhere").exists()


def _default_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make this the home folder of the user who runs the tests."""
    monkeypatch.delenv("CULTURE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(folder))
    entry = pwd.getpwuid(os.geteuid())
    usual = pwd.struct_passwd((*entry[:5], str(folder), entry[6]))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: usual)


@pytest.mark.requirement("H01")
def test_the_socket_of_an_agent_is_in_a_folder_of_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 19, as 0020 amends it."""
    monkeypatch.setattr(paths, "_SHARED", Path("/tmp"))
    _default_home(monkeypatch, Path("/homes/ori"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert paths.agent_socket("spark-culture") == Path("/run/user/1000/culture-spark-culture.sock")
    assert paths.socket_alias("spark-culture") == Path("/run/user/1000/culture-spark-culture.sock")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert paths.agent_socket("spark-culture") == Path("/homes/ori/.culture/run/culture-spark-culture.sock")
    assert paths.socket_alias("spark-culture") == Path("/tmp/culture-spark-culture.sock")


def test_two_homes_of_one_user_have_two_sockets_for_one_nick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under one XDG_RUNTIME_DIR, without one, and where both homes are too long."""
    _default_home(monkeypatch, Path("/homes/ori"))
    for runtime in ("/run/user/1000", "", "/" + "r" * 100):
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        found = []
        for home in ("/homes/ori/.culture", "/homes/ori/work", "/homes/ori/" + "x" * 90, "/homes/ori/" + "y" * 90):
            monkeypatch.setenv("CULTURE_HOME", home)
            found.append(paths.agent_socket("spark-culture"))
        assert len(set(found)) == 4
        assert max(len(str(path)) for path in found) < 104
    assert [path.parent for path in found[2:]] == [Path(f"/tmp/culture-{os.geteuid()}")] * 2


def test_a_home_has_one_socket_whichever_way_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    names = set()
    for name in ("real", "link"):
        monkeypatch.setenv("CULTURE_HOME", str(tmp_path / name))
        names.add(paths.agent_socket("spark-culture"))
    assert len(names) == 1


def test_a_socket_s_path_that_the_kernel_would_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than the 103 bytes"):
        paths.agent_socket("spark-" + "x" * 90)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("spark", "spark"),
        ("Spark.local", "spark"),
        ("dgx-spark-01.example", "dgxspark01"),
        ("a-very-long-host-name", "averylonghos"),
        ("42", "culture"),
        ("é", "culture"),
        ("", "culture"),
    ],
)
def test_the_default_name_comes_from_the_host(host: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert paths.default_server_name() == name


@given(st.text())
def test_any_host_gives_a_name_that_fits(host: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: host)
        assert valid_short_name(paths.default_server_name())
