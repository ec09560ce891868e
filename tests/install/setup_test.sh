#!/usr/bin/env bash
# What set-up installs, what CMake makes of it, and what other files say of both.
#
#   setup_test.sh CMAKE SOURCE_FOLDER SCRATCH_FOLDER
set -euo pipefail
cmake=$1 source=$2 scratch=$3
fail() { echo "FAILED: $*" >&2; exit 1; }
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$source"

# A wrong word is refused before anything is installed.
if TPUDIST_GPU=maybe scripts/setup.sh > "$scratch/refused" 2>&1; then fail "TPUDIST_GPU=maybe is taken"; fi
grep -qx 'setup: error: TPUDIST_GPU=maybe: give 1 (for a GPU), 0 (for the CPU) or auto' "$scratch/refused" ||
  fail "$(cat "$scratch/refused")"

for script in demo test; do
  if TPUDIST_PRESET=relase "scripts/$script.sh" > "$scratch/refused" 2>&1; then fail "TPUDIST_PRESET=relase is taken"; fi
  [[ $(< "$scratch/refused") == "$script.sh: TPUDIST_PRESET=relase: "* ]] || fail "$(cat "$scratch/refused")"
done
# One that builds, but has no tests.
if TPUDIST_PRESET=odr scripts/test.sh > "$scratch/refused" 2>&1; then fail "TPUDIST_PRESET=odr is taken"; fi
grep -q '^test.sh: TPUDIST_PRESET=odr: no preset with tests; ' "$scratch/refused" || fail "$(cat "$scratch/refused")"

# A LibTorch as the wheel has it. What NVIDIA's packages hold lies beside it.
site=$scratch/site
mkdir -p "$site/torch/lib" "$site/torch/include/torch/headeronly"
touch "$site"/torch/lib/libtorch_c{pu,uda}.so
printf '#define TORCH_VERSION_%s\n' 'MAJOR 1' 'MINOR 2' 'PATCH 3' > "$site/torch/include/torch/headeronly/version.h"
cat > "$scratch/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.25)
project(finds_libtorch NONE)
list(APPEND CMAKE_MODULE_PATH "$source/cmake")
find_package(LibTorch REQUIRED)
message(STATUS "with CUDA: \${LibTorch_CUDA}")
END
# configure GPU EXPECTED: CMake's words hold this.
configure() {
  local said
  rm -rf "$scratch/build"
  said=$("$cmake" -G Ninja -S "$scratch" -B "$scratch/build" -DTPUDIST_TORCH_ROOT="$site" -DTPUDIST_GPU="$1" 2>&1 |
    tr -s '\n ' ' ') || true
  [[ $said == *$2* ]] || fail "TPUDIST_GPU=$1: not '$2' but: $said"
}
mkdir -p "$site"/nvidia/cu13/{lib,include}
touch "$site/nvidia/cu13/lib/libcudart.so.13" "$site/nvidia/cu13/include/cuda_runtime_api.h"
configure AUTO "For a GPU install the nvcc of CUDA 13, then run TPUDIST_GPU=1 scripts/setup.sh -- with CUDA: OFF"
configure ON "For a GPU install the nvcc of CUDA 13, then run TPUDIST_GPU=1 scripts/setup.sh Call Stack"  # an error
mkdir -p "$site/nvidia/cu13/include"/{crt,cccl/nv} "$site"/nvidia/nccl/{lib,include}
touch "$site"/nvidia/cu13/include/{crt/host_config.h,cccl/nv/target} "$site"/nvidia/cu13/lib/libcublas{,Lt}.so.13 \
  "$site"/nvidia/cu13/include/cublas{Lt,_v2}.h \
  "$site/nvidia/nccl/lib/libnccl.so.2" "$site/nvidia/nccl/include/nccl.h"
configure AUTO "with CUDA: ON"
configure ON "with CUDA: ON"
configure OFF "with CUDA: OFF"

# The active conda environment counts only with the right version.
mkdir -p "$scratch/conda/lib/python3.11"
ln -s "$site" "$scratch/conda/lib/python3.11/site-packages"
torch_of_conda() {
  rm -rf "$scratch/build"
  CONDA_PREFIX="$scratch/conda" TPUDIST_TORCH_VENV="$scratch/no-venv" TPUDIST_TORCH_ROOT="" \
    "$cmake" -G Ninja -S "$scratch" -B "$scratch/build" -DTPUDIST_GPU=OFF 2>&1 | tr -s '\n ' ' ' || true
}
[[ $(torch_of_conda) == *"Looked in '$scratch/no-venv'"* ]] || fail "another version of LibTorch is taken from conda"
printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' 'MINOR 11' 'PATCH 0' > "$site/torch/include/torch/headeronly/version.h"
[[ $(torch_of_conda) == *"with CUDA: OFF"* ]] || fail "the LibTorch of conda is not taken"

# Which LibTorch set-up wants, by the nvcc that it finds.
mkdir "$scratch/bin"
wanted_with() {
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.1"\n' "$1" "$1" > "$scratch/bin/nvcc"
  chmod +x "$scratch/bin/nvcc"
  PATH=$scratch/bin:$PATH TPUDIST_GPU="" bash -c 'source <(sed "/^choose_torch$/q" "$1") && echo "$meant ($why)"' - scripts/setup.sh
}
[[ $(wanted_with 13.0) == "for a GPU, "* ]] || fail "nvcc 13: $(wanted_with 13.0)"
[[ $(wanted_with 12.8) == "for the CPU, "*"need the nvcc of CUDA 13, here is 12)" ]] || fail "nvcc 12: $(wanted_with 12.8)"

# What others repeat of scripts/setup.sh.
cpu=$(sed -n 's/^cpu_requirements=(\(.*\))$/\1/p' scripts/setup.sh)
version=$(sed -n 's/^torch_version=//p' scripts/setup.sh)
cpu=${cpu/\"torch==\$torch_version\"/torch==$version}
grep -qF -- "pip install $cpu" docs/installing.md || fail "docs/installing.md does not say: pip install $cpu"
grep -qF "torch-$version" cmake/FindLibTorch.cmake || fail "cmake/FindLibTorch.cmake looks for another version"

# The image is made of all folders that CMake enters.
for folder in $(sed -n 's/^ *add_subdirectory(\([a-z]*\).*/\1/p' CMakeLists.txt | sort -u); do
  [[ $folder == tests ]] || grep -q "^ *$folder /usr/src/tpudist/" tpudist.def || fail "tpudist.def lacks $folder"
done
