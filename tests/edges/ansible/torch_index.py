"""A package index in a folder, with stand-ins for PyTorch: wheels of a few lines, which pip reads as any other."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

MODULE = """\
__version__ = "{version}"


class cuda:
    device_count = staticmethod(lambda: {gpus})
    is_available = staticmethod(lambda: {gpus} > 0)
"""
BROKEN = 'raise ImportError("libcudart.so.12: cannot open shared object file")\n'


def write_index(folder: Path, modules: Mapping[str, str]) -> str:
    """One wheel of `torch` for each version, with a package that prints `modules[version]`; the index's address for pip."""
    shelf = folder / "torch"
    shelf.mkdir(parents=True)
    links = []
    for version, module in modules.items():
        wheel = f"torch-{version}-py3-none-any.whl"
        _write_wheel(shelf / wheel, version, module)
        links.append(f'<a href="{wheel.replace("+", "%2B")}">{wheel}</a>')
    page = "<!DOCTYPE html><html><body>{}</body></html>"
    (shelf / "index.html").write_text(page.format("\n".join(links)))
    return folder.as_uri()


def _write_wheel(path: Path, version: str, module: str) -> None:
    info = f"torch-{version}.dist-info"
    files = {
        "torch/__init__.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
