#!/usr/bin/env bash
# Installs what a build of tpudist needs, on Debian 12 or later. Safe to run again: installed parts stay.
#
#   1. Debian packages, only those that are missing (as root or through sudo).
#   2. LibTorch, from the PyPI wheel of PyTorch, into its own virtual environment: 1.3 GB for the CPU
#      (the wheel and the only two of its packages that it needs to load), 4.6 GB for a GPU.
#   3. The packages of python/requirements.txt, into another, ~/.cache/tpudist/python, which also sees that LibTorch. If
#      pip cannot install them, the Python package, its tests, the wheel and the site are left out.
#
# TPUDIST_GPU          1: for a GPU; 0: for the CPU; auto, the default: for a GPU if the nvcc of LibTorch's CUDA is
#                      on the path or in /usr/local/cuda.
# TPUDIST_TORCH_ROOT   use this LibTorch, install none
# TPUDIST_TORCH_VENV   the environment of LibTorch; default ~/.cache/tpudist/torch-<version>
# TPUDIST_PYTHON       the Python that makes both; default /usr/bin/python3
set -euo pipefail

torch_version=2.11.0
cuda_version=13  # of that wheel
venv=${TPUDIST_TORCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/torch-$torch_version}
# For a GPU all that torch names, and headers that those of the CUDA runtime include; torch itself pins the
# version of cuda-toolkit. For the CPU what libtorch_cpu.so is linked to, in the versions that torch pins.
gpu_requirements=("torch==$torch_version" "cuda-toolkit[crt,cccl]")
cpu_requirements=(--no-deps "torch==$torch_version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
stamp=$venv/.tpudist-complete  # written last: without it the environment is not trusted

packages=(
  g++ cmake ninja-build pkg-config ccache git ca-certificates procps python3-venv python3-dev
  libopenmpi-dev openmpi-bin libhdf5-dev libyaml-cpp-dev libfmt-dev libspdlog-dev libcli11-dev
  nlohmann-json3-dev libzip-dev libprotozero-dev libdeflate-dev libxxhash-dev zlib1g-dev libboost-dev
  libmetis-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev iproute2
)

say() { echo "setup: $*"; }
fail() { echo "setup: error: $*" >&2; exit 1; }

# Sets `requirements`; `meant`, what they are for; `why`.
choose_torch() {
  local gpu=${TPUDIST_GPU:-auto} nvcc release
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  release=$("$nvcc" --version 2> /dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p') || true
  why="networks on a GPU need the nvcc of CUDA $cuda_version, here is ${release:-none}"
  if [[ $release == "$cuda_version" ]]; then
    why="TPUDIST_GPU=$gpu"
    if [[ ${gpu^^} == AUTO ]]; then
      gpu=1 why="nvcc was found; without a GPU 1.3 GB are enough: TPUDIST_GPU=0 scripts/setup.sh"
    fi
  elif [[ ${gpu^^} == AUTO ]]; then
    gpu=0
  fi
  case ${gpu^^} in
    1 | ON) requirements=("${gpu_requirements[@]}") meant="for a GPU, 4.6 GB" ;;
    0 | OFF) requirements=("${cpu_requirements[@]}") meant="for the CPU, 1.3 GB" ;;
    *) fail "TPUDIST_GPU=$gpu: give 1 (for a GPU), 0 (for the CPU) or auto" ;;
  esac
}

install_packages() {
  local missing=() package
  if ! command -v dpkg-query > /dev/null; then
    say "this is no Debian system; please see that these are installed: ${packages[*]}"
    return
  fi
  for package in "${packages[@]}"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) != installed* ]]; then
      missing+=("$package")
    fi
  done
  if (( ${#missing[@]} == 0 )); then
    say "all ${#packages[@]} Debian packages are installed"
    return
  fi
  local root=()
  if (( EUID != 0 )); then
    if ! command -v sudo > /dev/null && [[ ${missing[*]} == python3-dev ]]; then
      say "python3-dev is missing: the Python package is left out"
      return
    fi
    command -v sudo > /dev/null || fail "no sudo; as root run: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  # Another apt-get, such as that of a machine's first start, may hold the lock for a while.
  "${root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y \
    --no-install-recommends "${missing[@]}"
}

# Whether every package in the environment has all its files in their full size.
files_complete() {
  [[ -x $venv/bin/python ]] && "$venv/bin/python" - << 'PYTHON'
import importlib.metadata
import os
import sys

try:
    for package in importlib.metadata.distributions():
        for file in package.files or ():
            if file.size is not None and os.path.getsize(file.locate()) != file.size:
                sys.exit(f"setup: {file} has not its full size")
except OSError as error:
    sys.exit(f"setup: {error}")
PYTHON
}

# Whether the right version of all that is needed is there.
torch_found() {
  local packages=(nvidia-cuda-runtime nvidia-cuda-cupti)
  if [[ ${requirements[*]} == "${gpu_requirements[*]}" ]]; then
    packages+=(nvidia-cuda-crt nvidia-cuda-cccl)
    "$venv/bin/python" -m pip --disable-pip-version-check check >&2 || return
  fi
  "$venv/bin/python" - "$torch_version" "${packages[@]}" << 'PYTHON'
import importlib.metadata
import os
import runpy
import sys

try:
    torch = importlib.metadata.distribution("torch").locate_file("torch")
    for package in sys.argv[2:]:
        importlib.metadata.distribution(package)
    os.stat(os.path.join(torch, "lib", "libtorch_cpu.so"))
    version = runpy.run_path(os.path.join(torch, "version.py"))["__version__"]
    if version.split("+")[0] != sys.argv[1]:
        sys.exit(f"setup: found PyTorch {version}, need {sys.argv[1]}")
except (importlib.metadata.PackageNotFoundError, OSError) as error:
    sys.exit(f"setup: {error}")
PYTHON
}

# Whether an earlier set-up has installed what is wanted; says so.
torch_installed() {
  [[ -e $stamp ]] || return
  case $(< "$stamp") in
    # What is for a GPU serves the CPU, too.
    "${gpu_requirements[*]}") say "LibTorch $torch_version is installed in $venv, for CPU and GPU" ;;
    "${requirements[*]}") say "LibTorch $torch_version is installed in $venv, $meant ($why)" ;;
    *) return 1 ;;
  esac
}

install_torch() {
  if [[ -n ${TPUDIST_TORCH_ROOT:-} ]]; then
    [[ -d $TPUDIST_TORCH_ROOT ]] || fail "TPUDIST_TORCH_ROOT=$TPUDIST_TORCH_ROOT is no folder"
    say "using LibTorch in $TPUDIST_TORCH_ROOT"
    return
  fi
  if torch_installed; then return; fi  # before the lock, which a user who shares the environment cannot write
  mkdir -p "$(dirname "$venv")"
  exec 9> "$venv.lock"
  if ! flock -n 9; then
    say "waiting for another set-up of $venv"
    flock 9
  fi
  if torch_installed; then return; fi
  rm -f "$stamp"
  if [[ -e $venv ]] && ! files_complete; then
    [[ -e $venv/pyvenv.cfg || -z $(ls -A "$venv") ]] ||
      fail "$venv is no virtual environment; move it away or set TPUDIST_TORCH_VENV"
    say "the installation in $venv is not complete; starting again"
    rm -rf "$venv"
  fi
  if [[ ! -e $venv ]]; then
    local python=${TPUDIST_PYTHON:-/usr/bin/python3}
    [[ -x $python ]] || python=$(command -v python3) || fail "no python3; set TPUDIST_PYTHON"
    "$python" -m venv "$venv"
  fi
  if ! torch_found 2> /dev/null; then
    say "installing LibTorch $torch_version into $venv, $meant ($why); this takes some minutes"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${requirements[@]}" ||
      fail "pip could not install ${requirements[*]}; see above, then run this script again"
  fi
  if ! files_complete || ! torch_found; then
    fail "$venv is not complete after all; is the disk full?"
  fi
  echo "${requirements[*]}" > "$stamp"
  say "LibTorch $torch_version is installed in $venv, $meant"
}

# Lets the Python of `tools` see the PyTorch of set-up, where it can be imported: that for the CPU lacks what the
# module wants, so that tests that need it are skipped.
link_torch() {
  local torch site
  site=$(echo "$tools"/lib/python3*/site-packages)
  for torch in "${TPUDIST_TORCH_ROOT:-$venv}"/lib/python3*/site-packages "${TPUDIST_TORCH_ROOT:-$venv}"; do
    if [[ $torch == *"/$(basename "$(dirname "$site")")/"* ]] &&
       PYTHONPATH=$torch "$tools/bin/python" -c "import torch" 2> /dev/null; then
      echo "$torch" > "$site/libtorch.pth"
      return
    fi
  done
  rm -f "$site/libtorch.pth"
}

install_python() {
  local wanted python=${TPUDIST_PYTHON:-/usr/bin/python3}
  wanted=$(dirname "${BASH_SOURCE[0]}")/../python/requirements.txt
  tools=${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/python
  mkdir -p "$(dirname "$tools")"
  exec 8> "$tools.lock"
  flock 8
  if cmp -s "$wanted" "$tools/.tpudist-complete"; then
    say "what python/requirements.txt names is installed in $tools"
    link_torch
    return
  fi
  say "installing what python/requirements.txt names into $tools; this takes a minute"
  [[ -x $python ]] || python=$(command -v python3) || python=python3
  if ! "$python" -m venv "$tools" ||
     ! "$tools/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"; then
    say "that failed, see above: the Python package, the wheel and the site of the documents are left out"
    return
  fi
  link_torch
  cp "$wanted" "$tools/.tpudist-complete"
}

choose_torch
install_packages
install_torch
install_python
