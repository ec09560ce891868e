#!/usr/bin/env bash
# Builds the site in a copy of the documents, and again with a link that leads nowhere, which must fail. Ends with 77,
# not tried, where set-up could not install mkdocs.
#
#   site_test.sh SOURCE_FOLDER SCRATCH_FOLDER
set -euo pipefail
source=$1 scratch=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
rm -rf "$scratch"
mkdir -p "$scratch/scripts" "$scratch/bench"
cd "$scratch"
cp "$source/scripts/docs.sh" scripts
cp "$source/bench/README.md" bench
cp -r "$source"/{README.md,CONTRIBUTING.md,CHANGELOG.md,LICENSE,NOTICE,mkdocs.yml,docs} .

if ! scripts/docs.sh > log 2>&1; then
  ! grep -q 'run scripts/setup.sh' log || { echo "SKIPPED: $(tail -1 log)"; exit 77; }
  fail "$(cat log)"
fi
cat log
for page in index docs/tutorial docs/installing bench/index; do
  [[ -s build/docs/site/$page.html ]] || fail "no page $page.html"
done
grep -q 'Kendall tau' build/docs/site/search/search_index.json || fail "the search knows no words"
sed -i 's#(docs/glossary.md)#(docs/glossary.md\#no-such-word)#' README.md
if scripts/docs.sh > log 2>&1; then fail "a link to no anchor is taken"; fi
grep -q "does not contain an anchor '#no-such-word'" log || fail "$(cat log)"
