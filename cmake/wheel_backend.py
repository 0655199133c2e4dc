"""Makes a wheel of a CMake build (PEP 517): the package, libstripepack.so and the program stripepack.

    pip install .                                   builds in build/wheel, then installs
    pip install . --config-settings build-dir=DIR   takes the build that is in DIR
    pip install . --config-settings cmake-args="-DSPK_BUILD_TOOLS=OFF"

The library lies in the environment's lib/ and the program in its bin/, where an installation by CMake
has them, so that the module finds its library by its run path. It needs nothing but CMake and Ninja,
which pip is asked for where they are missing; the foreign libraries are those of the machine, so the
wheel is for machines like it. This is no more than CMake's installation put into a zip; a general
backend would bring dependencies that an offline cluster has not got.
"""
import base64
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file: the same build gives the same wheel


def _version():
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(stripepack VERSION ([0-9.]+)", text)[1]


def _metadata():
    return (f"Metadata-Version: 2.1\nName: stripepack\nVersion: {_version()}\n"
            "Summary: Stripe-aligned packs of image datasets for parallel file systems\n"
            "Requires-Python: >=3.8\nRequires-Dist: numpy\n")


def get_requires_for_build_wheel(config_settings=None):
    if (config_settings or {}).get("build-dir"):
        return []
    tools = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    # Debian's pybind11-dev is CMake's to find; elsewhere it is a module of Python.
    if not os.path.exists("/usr/include/pybind11") and not importlib.util.find_spec("pybind11"):
        tools.append("pybind11")
    return tools


def _build(settings):
    """The folder of a build that may be installed."""
    if settings.get("build-dir"):
        return pathlib.Path(settings["build-dir"])
    folder = SOURCE / "build" / "wheel"
    subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_LIBDIR=lib",
                    f"-DPython_EXECUTABLE={sys.executable}", f"-DSPK_PYTHON_INSTALL_DIR={SITE}",
                    "-DSPK_BUILD_TESTS=OFF", "-DSPK_BUILD_BENCH=OFF",
                    *settings.get("cmake-args", "").split()], check=True)
    subprocess.run(["cmake", "--build", folder], check=True)
    return folder


def _files(prefix):
    """(name in the wheel, path) of what was installed below prefix."""
    data = f"stripepack-{_version()}.data"
    package = prefix / SITE / "stripepack"
    if not package.is_dir():
        raise SystemExit(f"wheel: the build has no Python module for {SITE}; see what cmake said of it")
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield f"stripepack/{path.relative_to(package)}", path
    # A wheel has no links: each library goes by the name that the loader asks for.
    for path in sorted((prefix / "lib").glob("libstripepack*.so.[0-9]")):
        yield f"{data}/data/lib/{path.name}", path.resolve()
    for path in sorted((prefix / "bin").glob("stripepack")):
        yield f"{data}/scripts/stripepack", path


class _Wheel:
    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100000 | mode) << 16
        self._zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, record_name):
        self._record.append(f"{record_name},,\n")
        self.add(record_name, "".join(self._record).encode())
        self._zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del metadata_directory
    build = _build(config_settings or {})
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"{python}-{python}-{platform}"
    name = f"stripepack-{_version()}-{tag}.whl"
    information = f"stripepack-{_version()}.dist-info"
    with tempfile.TemporaryDirectory(prefix="stripepack-wheel-") as prefix:
        subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--strip"], check=True,
                       stdout=subprocess.DEVNULL)
        wheel = _Wheel(os.path.join(wheel_directory, name))
        for file, path in _files(pathlib.Path(prefix)):
            wheel.add(file, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    wheel.add(f"{information}/METADATA", _metadata().encode())
    wheel.add(f"{information}/LICENSE", (SOURCE / "LICENSE").read_bytes())
    wheel.add(f"{information}/WHEEL", ("Wheel-Version: 1.0\nGenerator: stripepack\n"
                                       f"Root-Is-Purelib: false\nTag: {tag}\n").encode())
    wheel.close(f"{information}/RECORD")
    return name
