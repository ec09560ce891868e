#!/usr/bin/env bash
# Installs the build with links to LibTorch, moves the prefix, and runs the program there.
#
#   program_test.sh CMAKE SOURCE_FOLDER BUILD_FOLDER SCRATCH_FOLDER
set -euo pipefail
cmake=$1 source=$2 build=$3 scratch=$4
fail() { echo "FAILED: $*" >&2; exit 1; }

rm -rf "$scratch"
mkdir -p "$scratch"
# Installing by component leaves install_manifest.txt, the list of the user's installation, alone.
TPUDIST_INSTALL_TORCH=LINK "$cmake" --install "$build" --component Unspecified \
  --prefix "$scratch/first" > "$scratch/log"
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix
cd "$scratch"

"$prefix/bin/tpudist" --version | grep -q '^LibTorch  [0-9]' || fail "tpudist-train does not start"
"$prefix/bin/tpudist" inspect --help > help || fail "tpudist does not start"
"$prefix/bin/tpudist" config show "$prefix/share/tpudist/experiments/nlp.yaml" > shown ||
  fail "the installed experiment is not read"
for file in share/tpudist/experiments/tile.yaml share/tpudist/slurm/sweep.sbatch \
    share/tpudist/scripts/evaluate_ensemble.sh \
    share/zsh/site-functions/_tpudist share/bash-completion/completions/tpudist share/fish/vendor_completions.d/tpudist.fish \
    share/doc/tpudist/README.md share/doc/tpudist/docs/data.md share/doc/tpudist/LICENSE; do
  [[ -e $prefix/$file ]] || fail "$file is missing"
done
"$prefix/bin/tpudist-trace-summary" --help | grep -q 'trace.json' || fail "tpudist-trace-summary does not start"
echo '{"traceEvents": []}' > empty.json
if "$prefix/bin/tpudist-trace-summary" empty.json 2> said; then fail "a trace without steps is taken"; fi
grep -q '^empty.json: holds no training step' said || fail "$(cat said)"
"$prefix/bin/tpudist" config show nlp.yaml > found && cmp -s shown found ||
  fail "an installed experiment is not found by its name"
"$prefix/bin/tpudist" config systems > systems || fail "the installed systems are not found"
grep -q '^latenciaga_xla$' systems || fail "$(cat systems)"
if "$prefix/bin/tpudist" config show demo_fst 2> said; then fail "demo_fst is found"; fi
grep -qF "; did you mean $prefix/share/tpudist/experiments/demo_fast.yaml?" said || fail "$(cat said)"
bash -n "$prefix/share/bash-completion/completions/tpudist" || fail "the completion is no script"
for program in tpudist tpudist-train; do
  if grep -aqF "$build/" <(readelf -d "$prefix/bin/$program"); then
    fail "$program looks for libraries in the build folder"
  fi
  readelf -d "$prefix/bin/$program" | grep -qF "[\$ORIGIN/../" ||
    fail "$program does not look for LibTorch beside itself"
done

# find_package(tpudist), from a prefix that was moved: examples/read_shards reads what the program wrote.
"$cmake" -S "$source/examples/read_shards" -B example -G Ninja -DCMAKE_PREFIX_PATH="$prefix" > log 2>&1 &&
  "$cmake" --build example >> log 2>&1 || fail "the example is not built: $(cat log)"
if readelf -d example/read_shards | grep -E 'libtorch|libmpi|libcurl'; then fail "the example needs these"; fi
"$prefix/bin/tpudist" synth npz --seed 1 --graphs 2 --configs 20 --quiet > said
"$prefix/bin/tpudist" convert npz shards --quiet > said
example/read_shards shards layout:nlp:random valid > said || fail "$(cat said)"
(( $(grep -cE '^[^ ]+: [0-9]+ nodes, [0-9]+ edges, 20 configurations, slowest / fastest [0-9.]+$' said) == 2 )) ||
  fail "$(cat said)"
code=0
example/read_shards npz layout:nlp:random > said 2>&1 || code=$?
(( code == 3 )) && grep -q '^read_shards: error: .* has not been converted' said || fail "a folder without shards ends with $code: $(cat said)"
