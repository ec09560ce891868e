"""Packs the component `wheel` of a build into a wheel: the build backend of pyproject.toml.

A build compiles for ten minutes and knows LibTorch, nvcc and the presets. scikit-build-core would configure a second
one of its own, or change the settings of the first; what is left for it is to zip a folder and write three files.

TPUDIST_BUILD   the build folder; default build/release
"""

import base64
import fnmatch
import hashlib
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTSIDE = ["libtorch*", "libc10*", "libcud*", "libcublas*", "libnccl*", "libmpi.so.*"]  # the launcher finds these
SYSTEM = ["libc.so.*", "libm.so.*", "ld-linux*", "libstdc++.so.*", "libgcc_s.so.*", "libz.so.*"]  # of manylinux
# Files of the packages whose code is in the program itself: the archive of HDF5, and headers.
COMPILED_IN = ["*/hdf5/serial/libhdf5.a", "*/CLI/CLI.hpp", "*/boost/version.hpp", "*/protozero/version.hpp",
               "*/nlohmann/json.hpp"]
DATE = (1980, 1, 1, 0, 0, 0)  # of all files: equal contents give equal wheels


def fail(text):
    raise SystemExit(f"pack_wheel: error: {text}")


def project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        table = tomllib.load(file)["project"]
    cmake = (ROOT / "CMakeLists.txt").read_text()
    table["version"] = re.search(r"^project\(tpudist VERSION ([0-9.]+)", cmake, re.MULTILINE)[1]
    return table


def metadata(table):
    """The file METADATA (core metadata 2.4)."""
    lines = ["Metadata-Version: 2.4", f"Name: {table['name']}", f"Version: {table['version']}",
             f"Summary: {table['description']}", f"Requires-Python: {table['requires-python']}",
             f"License-Expression: {table['license']}", "License-File: LICENSE", "License-File: NOTICE"]
    lines += [f"Requires-Dist: {need}" for need in table["dependencies"]]
    for extra, needs in table.get("optional-dependencies", {}).items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join(lines) + "\n"


def output_of(command, *, known=(0,)):
    """What a command prints. Its failure ends this one, with one line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"cannot start {command[0]}: {error.strerror}")
    if done.returncode not in known:
        fail(f"{command[0]} ended with {done.returncode}: {' '.join(done.stderr.split()) or 'no message'}")
    return done.stdout


def bundled(stage):
    """The system's libraries that the files need, directly or not, and that have to come with them."""
    files = [path for path in stage.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    path_of = {name: os.path.realpath(path)
               for name, path in re.findall(r"(\S+) => (/\S+)", output_of(["ldd", *files], known=(0, 1)))}
    found = set()
    while files:
        for name in re.findall(r"NEEDED.*\[(.+)\]", output_of(["readelf", "-d", files.pop()])):
            if any(fnmatch.fnmatch(name, pattern) for pattern in OUTSIDE + SYSTEM):
                continue
            if name not in path_of:
                fail(f"ldd does not find {name}, which the program needs: install it, or set LD_LIBRARY_PATH")
            if path_of[name] not in found:
                found.add(path_of[name])
                files.append(path_of[name])
    return found


def licences(stage):
    """Name -> text: what Debian (or Ubuntu) says of the packages that `bundled` libraries and COMPILED_IN are of."""
    texts = {}
    for path in [*sorted(bundled(stage)), *COMPILED_IN]:
        # 1: no package has it by that name, which may be the one without /usr
        owners = output_of(["dpkg-query", "-S", path, path.removeprefix("/usr")], known=(0, 1))
        packages = {name.split(":")[0].strip() for line in owners.splitlines() for name in line.split(": ")[0].split(",")}
        files = {name: pathlib.Path(f"/usr/share/doc/{name}/copyright") for name in sorted(packages)}
        own = {name: file.read_bytes() for name, file in files.items() if file.exists()}
        if not own:
            fail(f"the licence of {path} is not known, since no Debian package has it or its copyright file: "
                 "build without it, or take the library of a package")
        texts.update(own)
    if list(stage.glob("tpudist/_extension*.so")):
        texts["nanobind"] = importlib.metadata.distribution("nanobind").read_text("licenses/LICENSE").encode()
    return texts


def tag(stage):
    """py3-none-... for the program alone, that of this Python where the extension is there."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    extensions = [path.name for path in stage.glob("tpudist/_extension*")]
    if not [name for name in extensions if name.endswith(".so")]:
        return f"py3-none-{platform}"
    if not [name for name in extensions if name.endswith(sysconfig.get_config_var("EXT_SUFFIX"))]:
        fail(f"{extensions} is for another Python than {sys.version.split()[0]}; configure the build with "
             f"-DPython_EXECUTABLE={sys.executable}")
    python = "cp" + sysconfig.get_config_var("py_version_nodot")
    return f"{python}-{python}-{platform}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Packs the wheel and returns its file name (PEP 517)."""
    build = pathlib.Path(os.environ.get("TPUDIST_BUILD", ROOT / "build/release"))
    if not (build / "tpudist-train").exists():
        fail(f"{build} holds no tpudist-train; build it first: "
             "cmake --preset release && cmake --build --preset release --target tpudist tpudist_extension")
    table = project()
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        output_of(["cmake", "--install", build, "--component", "wheel", "--prefix", stage, "--strip"])
        files = {str(path.relative_to(stage)): (path.read_bytes(), path.stat().st_mode & 0o777)
                 for path in sorted(stage.rglob("*")) if path.is_file()}
        wheel_tag = tag(stage)
        third_parties = licences(stage)
    info = f"{table['name']}-{table['version']}.dist-info"

    def add(name, data):
        files[f"{info}/{name}"] = (data if isinstance(data, bytes) else data.encode(), 0o644)

    add("METADATA", metadata(table))
    add("WHEEL", f"Wheel-Version: 1.0\nGenerator: tpudist\nRoot-Is-Purelib: false\nTag: {wheel_tag}\n")
    add("entry_points.txt", "[console_scripts]\n" + "".join(f"{a} = {b}\n" for a, b in table["scripts"].items()))
    for name in ("LICENSE", "NOTICE"):
        add(f"licenses/{name}", (ROOT / name).read_bytes())
    for name, text in third_parties.items():
        add(f"licenses/{name}", text)
    record = ""
    for name, (data, mode) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    add("RECORD", record + f"{info}/RECORD,,\n")

    wheel = f"{table['name']}-{table['version']}-{wheel_tag}.whl"
    try:
        with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (data, mode) in files.items():
                entry = zipfile.ZipInfo(name, DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100000 | mode) << 16
                archive.writestr(entry, data)
    except OSError as error:
        fail(f"{error.filename or wheel}: {error.strerror}")
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    fail("there is no source distribution; use an archive of the repository")
