#!/usr/bin/env bash
# Installs the build with links to LibTorch, moves the prefix, and runs the program there.
#
#   program_test.sh CMAKE BUILD_FOLDER SCRATCH_FOLDER
set -euo pipefail
cmake=$1 build=$2 scratch=$3
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
    share/man/man1/tpudist.1 share/man/man1/tpudist-train.1 share/zsh/site-functions/_tpudist \
    share/bash-completion/completions/tpudist share/fish/vendor_completions.d/tpudist.fish \
    share/doc/tpudist/README.md share/doc/tpudist/docs/data.md share/doc/tpudist/LICENSE; do
  [[ -e $prefix/$file ]] || fail "$file is missing"
done
"$prefix/bin/tpudist-trace-summary" --help | grep -q 'trace.json' || fail "tpudist-trace-summary does not start"
echo '{"traceEvents": []}' > empty.json
if "$prefix/bin/tpudist-trace-summary" empty.json 2> said; then fail "a trace without steps is taken"; fi
grep -q '^empty.json: holds no training step' said || fail "$(cat said)"
"$prefix/bin/tpudist" config show nlp.yaml > found && cmp -s shown found ||
  fail "an installed experiment is not found by its name"
bash -n "$prefix/share/bash-completion/completions/tpudist" || fail "the completion is no script"
for program in tpudist tpudist-train; do
  if grep -aqF "$build/" <(readelf -d "$prefix/bin/$program"); then
    fail "$program looks for libraries in the build folder"
  fi
  readelf -d "$prefix/bin/$program" | grep -qF "[\$ORIGIN/../" ||
    fail "$program does not look for LibTorch beside itself"
done
