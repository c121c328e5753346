"""A backup comes back byte for byte, and nothing else does."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culture.server.backup import manifest as manifests
from culture.server.backup import tarball
from culture.server.backup.manifest import BackupFile, BadBackup, Manifest

parts = st.text(st.characters(exclude_characters="/", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=60).filter(
    lambda part: part not in (".", "..")
)
names = st.lists(parts, min_size=1, max_size=4).map(lambda found: "/".join(["data", *found]))


def packed(contents: dict[str, bytes], folder: Path) -> bytes:
    """A backup with these files."""
    for name, data in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    out = io.BytesIO()
    tarball.pack(out, manifest(contents), folder, 0.0, lambda number: None)
    return out.getvalue()


def manifest(contents: dict[str, bytes]) -> Manifest:
    files = tuple(BackupFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in contents.items())
    return Manifest("spark", "2026-03-19T10:00:00Z", "1.0", files)


def unpacked(data: bytes) -> dict[str, bytes]:
    _, members = tarball.opened(io.BytesIO(data))
    return {member.name: b"".join(member.chunks) for member in members}


def forged(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar file with whatever somebody put into it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def listed(name: str, data: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(manifests.NAME), manifests.dump(manifest({name: data}))


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(names, st.binary(max_size=3000), max_size=5))
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]) -> None:
    every = set(contents)
    if any(other.startswith(f"{name}/") for name in every for other in every):
        return
    if any(len(part.encode()) > 255 for name in every for part in name.split("/")):
        return
    assert unpacked(packed(contents, tmp_path_factory.mktemp("files"))) == contents


def test_a_long_name_and_a_large_file_come_out(tmp_path: Path) -> None:
    name = f"data/{'ä' * 100}/{'x' * 200}"
    contents = {name: bytes(3_000_001), "culture.yaml": b"name: spark\n"}
    assert unpacked(packed(contents, tmp_path)) == contents


def test_any_tar_can_list_it(tmp_path: Path) -> None:
    data = packed({"data/a": b"1", "accounts.json": b"{}"}, tmp_path)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["manifest.json", "data/a", "accounts.json"]
        assert {member.mode for member in tar} == {0o600}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "data/../../evil",
        "/etc/passwd",
        "data//x",
        "data/./x",
        "data",
        "data/",
        "",
        "evil",
        "tls/a/b",
        "data/new\nline",
        "data/nul\0",
        f"data/{'x' * 256}",
        "accounts.json/x",
        "manifest.json",
    ],
)
def test_a_name_that_does_not_belong_is_refused(name: str) -> None:
    with pytest.raises(BadBackup):
        unpacked(forged([listed(name), (tarfile.TarInfo(name or "x"), b"x")]))


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
        tarfile.CONTTYPE,
        tarfile.XHDTYPE,
        b"?",
    ],
)
def test_what_is_not_a_plain_file_is_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("data/x")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(BadBackup):
        unpacked(forged([listed("data/x"), (info, b"x")]))


def test_what_the_manifest_does_not_name_is_refused() -> None:
    with pytest.raises(BadBackup, match="more in it"):
        unpacked(forged([listed("data/x"), (tarfile.TarInfo("data/x"), b"x"), (tarfile.TarInfo("data/y"), b"y")]))


def test_a_file_that_is_missing_is_told() -> None:
    with pytest.raises(BadBackup, match="missing"):
        unpacked(forged([listed("data/x")]))


def test_a_file_that_is_not_the_one_of_the_manifest_is_refused() -> None:
    with pytest.raises(BadBackup, match="damaged"):
        unpacked(forged([listed("data/x", b"x"), (tarfile.TarInfo("data/x"), b"y")]))


def test_a_file_cannot_be_there_twice_nor_be_a_folder_too() -> None:
    twice = manifest({"data/x": b"x"})
    for names in (("data/x", "data/x"), ("data/x", "data/x/y")):
        files = tuple(twice.files[0]._replace(name=name) for name in names)
        with pytest.raises(BadBackup):
            manifests.parse(manifests.dump(twice._replace(files=files)))


@pytest.mark.parametrize("at", range(0, 100, 7))
def test_a_flipped_bit_or_a_cut_is_found(tmp_path: Path, at: int) -> None:
    data = bytearray(packed({"data/a": bytes(range(256)) * 40, "data/b": b"other"}, tmp_path))
    place = 10 + at * (len(data) - 11) // 100
    with pytest.raises(BadBackup):
        unpacked(bytes(data[:place]))
    data[place] ^= 0x10
    try:
        found = unpacked(bytes(data))
    except BadBackup:
        return
    assert found == {"data/a": bytes(range(256)) * 40, "data/b": b"other"}


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", gzip.compress(b""), gzip.compress(b"hello" * 1000), gzip.compress(bytes(1024))],
    ids=["nothing", "text", "packed nothing", "packed text", "packed zeros"],
)
def test_what_is_no_backup_is_refused(data: bytes) -> None:
    with pytest.raises(BadBackup):
        unpacked(data)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_claims_to_be_huge_takes_no_memory(kind: bytes) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, 1 << 40
    with pytest.raises(BadBackup):
        unpacked(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))


def test_a_manifest_that_claims_to_be_huge_takes_no_memory() -> None:
    info = tarfile.TarInfo(manifests.NAME)
    info.size = 1 << 40
    with pytest.raises(BadBackup):
        unpacked(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)))


def test_zeros_without_an_end_behind_it_are_refused(tmp_path: Path) -> None:
    data = packed({"data/a": b"1"}, tmp_path)
    with pytest.raises(BadBackup, match="behind its end"):
        unpacked(data + gzip.compress(bytes(1 << 20)))


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{}",
        b"\xff",
        b'{"format": 1, "files": [{}]}',
        b'{"format": 1, "server": "s", "time": "t", "program": "p", "history": "h", "files": [{"name": "data/x", '
        b'"size": -1, "sha256": ""}]}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(BadBackup, match="cannot be read"):
        manifests.parse(text)


def test_a_newer_form_is_told() -> None:
    with pytest.raises(BadBackup, match="newer version"):
        manifests.parse(b'{"format": 2}')


@given(st.binary(max_size=2000))
def test_whatever_it_is_it_is_refused_and_not_a_crash(data: bytes) -> None:
    for each in (data, gzip.compress(data)):
        with pytest.raises(BadBackup):
            unpacked(each)
