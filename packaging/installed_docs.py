#!/usr/bin/env python3
"""installed_docs.py SOURCES FOLDER: installs README, changelog, licence and docs/ into FOLDER.

docs/ becomes FOLDER itself, so links are rewritten to what stands where now. A link to a source
file, which is not installed, becomes its words.
"""
import pathlib
import posixpath
import re
import sys

LINK = re.compile(r'(!?)\[([^\]]*)\]\(([^)\s]+)\)')


def places(sources):
    """Where each document goes: {path in the sources: path in the folder}."""
    found = {name: name for name in ('README.md', 'CHANGELOG.md', 'LICENSE')}
    for path in sorted((sources / 'docs').rglob('*')):
        if path.suffix in ('.json', '.md', '.svg') and 'man' not in path.relative_to(sources).parts:
            found[path.relative_to(sources).as_posix()] = path.relative_to(sources / 'docs').as_posix()
    return found


def rewritten(text, source, place_of):
    """The text of the document at `source`, with links that work in the folder."""
    def link(match):
        mark, words, target = match.groups()
        path, hash_sign, anchor = target.partition('#')
        if '://' in target or target.startswith('mailto:') or not path:
            return match.group(0)
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if named not in place_of:
            return words
        here = posixpath.dirname(place_of[source])
        return f'{mark}[{words}]({posixpath.relpath(place_of[named], here or ".")}{hash_sign}{anchor})'
    return LINK.sub(link, text)


def main():
    sources, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    place_of = places(sources)
    for source, place in place_of.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (sources / source).read_text(encoding='utf-8')
        target.write_text(rewritten(text, source, place_of) if source.endswith('.md') else text,
                          encoding='utf-8')
        target.chmod(0o644)


if __name__ == '__main__':
    main()
