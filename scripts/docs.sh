#!/usr/bin/env bash
# Builds the site of the documents, mkdocs.yml, into build/docs/site. Fails on a broken link or anchor,
# and on a document that is missing from the navigation.
#
# scripts/setup.sh installs mkdocs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/python
fail() { echo "docs: error: $*" >&2; exit 1; }

[[ -e $tools/.tpudist-complete ]] || fail "$tools with mkdocs is missing; run scripts/setup.sh"
rm -rf build/docs/{pages,new}
mkdir -p build/docs/pages/bench
cp -r README.md CONTRIBUTING.md CHANGELOG.md LICENSE NOTICE docs build/docs/pages
cp bench/README.md build/docs/pages/bench
# What pip and mkdocs say of their own future is no news of these documents.
NO_MKDOCS_2_WARNING=1 JUPYTER_PLATFORM_DIRS=1 "$tools/bin/python" -m mkdocs build --strict --site-dir build/docs/new > build/docs/log 2>&1 ||
  { grep -v '^INFO' build/docs/log >&2; fail "the documents are not in order; see above"; }
rm -rf build/docs/site
mv build/docs/new build/docs/site  # the older site stays until this one is complete
echo "docs: $(find build/docs/site -name '*.html' | wc -l) pages, build/docs/site/index.html"
