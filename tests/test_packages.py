"""packages/ is what `make packages` would write, and works where nothing of ours is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.packages import ROOT, Package, files, listed, write


def on_disk(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("package", listed(), ids=lambda package: package.name)
def test_a_package_is_up_to_date(package: Package) -> None:
    assert on_disk(ROOT / package.path) == files(package), "run `make packages`"


def test_every_package_is_listed() -> None:
    assert {path.name for path in (ROOT / "packages").iterdir()} == {package.path.name for package in listed()}


@pytest.mark.requirement("A23")
@pytest.mark.parametrize("package", listed(), ids=lambda package: package.name)
def test_a_package_copied_into_a_target_works_without_being_installed(package: Package, tmp_path: Path) -> None:
    """A23: internal packages are listed under ``assimilai`` and copied into targets, not installed."""
    write(package, tmp_path)
    modules = [
        ".".join(Path(name).with_suffix("").parts).removesuffix(".__init__")
        for name in files(package)
        if name.endswith(".py")
    ]
    program = (
        f"import importlib, sys; sys.path.insert(0, {str(tmp_path / package.path)!r})\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'culture']\n"
    )
    # -I -S: neither site-packages nor this repository can be seen.
    subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, check=True)
