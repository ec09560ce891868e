#!/usr/bin/env bash
# Builds the site of the documents, mkdocs.yml, into build/docs/site. Fails on a link or an anchor that leads nowhere,
# and on a document that the navigation lacks.
#
# mkdocs comes from PyPI, into an environment of its own: ~/.cache/tpudist/docs, half a minute the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=(mkdocs==1.6.1 mkdocs-material==9.8.2 mkdocs-jupyter==0.26.3)
tools=${XDG_CACHE_HOME:-$HOME/.cache}/tpudist/docs
fail() { echo "docs: error: $*" >&2; exit 1; }

if [[ $(cat "$tools/.complete" 2> /dev/null) != "${packages[*]}" ]]; then
  rm -rf "$tools"
  /usr/bin/python3 -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}" ||
    fail "pip could not install ${packages[*]}; see above"
  echo "${packages[*]}" > "$tools/.complete"
fi

rm -rf build/docs
mkdir -p build/docs/pages/bench
cp -r README.md CONTRIBUTING.md CHANGELOG.md LICENSE NOTICE docs build/docs/pages
cp bench/README.md build/docs/pages/bench
# What pip and mkdocs say of their own future is no news of these documents.
NO_MKDOCS_2_WARNING=1 JUPYTER_PLATFORM_DIRS=1 "$tools/bin/python" -m mkdocs build --strict > build/docs/log 2>&1 ||
  { grep -v '^INFO' build/docs/log >&2; fail "the documents are not in order; see above"; }
echo "docs: $(find build/docs/site -name '*.html' | wc -l) pages, build/docs/site/index.html"
