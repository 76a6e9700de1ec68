#!/bin/bash
# Every link of the installed documents leads to an installed file, or to the network; and those of
# the sources to a file of the sources.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 packaging/installed_docs.py . "$folder"

# dead FOLDER: its documents' links that lead nowhere.
dead() {
  local file target
  find "$1" -name '*.md' -not -path '*/out/*' | while read -r file; do
    { grep -oE '\]\([^) ]+\)' "$file" || true; } | sed -E 's/^\]\(//; s/[)#].*$//' |
      while read -r target; do
        [[ -z $target || $target == *://* || $target == mailto:* ]] ||
          [[ -e ${file%/*}/$target ]] || echo "$file: $target"
      done
  done
}

(($(find "$folder" -name '*.md' | wc -l) > 20)) || {
  echo "there are hardly any documents: $(find "$folder" -type f)"
  exit 1
}
grep -q '](architecture.md)' "$folder/README.md" || {
  echo "README.md has lost its links"
  exit 1
}
# Pages of results say where their figures are.
figures=0
for page in "$folder"/results/*.md; do
  for file in $(grep -ohE '\b[a-z_0-9]+\.json\b' "$page" | sort -u); do
    [[ -s $folder/results/$file ]] || {
      echo "$page names $file, which is not installed"
      exit 1
    }
    ((++figures))
  done
done
((figures > 10)) || {
  echo "results hardly name their figures: $figures"
  exit 1
}
links=$(dead "$folder")
[[ -z $links ]] || {
  echo "dead links, installed: $links"
  exit 1
}
