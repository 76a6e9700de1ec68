#!/usr/bin/env python3
"""tutorial_test.py PAGE: runs the commands of a page of docs/tutorial, and compares what they print.

The page's blocks of `sh` run in their order in one shell, in a home whose folder ferry has, under the
names of an installation, what Bazel has built. Each line of a block of `text` must be among what the
block of `sh` before it has printed.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r'^```(sh|text)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LIMIT_S = 200


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def install(home, here):
    """What the pages use of an installation."""
    ferry = home / 'ferry'
    examples = ferry / 'share/doc/ferry/examples'
    for folder in (ferry / 'bin', ferry / 'lib', examples):
        folder.mkdir(parents=True)
    (ferry / 'lib/libferry.so').symlink_to(here / 'client/libferry.so.0')
    for tool in ('ferryrun', 'ferryctl'):
        (ferry / 'bin' / tool).symlink_to(here / 'tools' / tool / tool)
    # libferry and its headers lie in other folders than MPI's here.
    write_program(ferry / 'bin/ferrycc',
                  f'#!/bin/sh\nexec {here}/tools/wrappers/ferrycc "$@" -I{here}/include -L{ferry}/lib '
                  f'-Wl,-rpath,{here}/client\n')
    (examples / 'tutorial').symlink_to(here / 'examples/tutorial')


def run(page, here):
    """Returns how many blocks of commands ran, and what is wrong."""
    blocks = BLOCK.findall(page.read_text())
    wrong = []
    printed = ''
    ran = 0
    with tempfile.TemporaryDirectory(prefix='ferry-tutorial-') as name:
        home = pathlib.Path(name)
        install(home, here)
        (home / 'work').mkdir()
        state = home / 'state'  # the shell's variables and directory, between blocks
        state.write_text(f'cd {home}/work\n')
        for kind, text in blocks:
            if kind == 'text':
                wrong += [f'{page}: not printed: {line!r}\n{printed}'
                          for line in text.splitlines() if line not in printed.splitlines()]
                continue
            script = f'. {state}\nset -e\n{text}{{ export -p; echo "cd $PWD"; }} >{state}\n'
            result = subprocess.run(
                ['/bin/bash', '-c', script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, timeout=LIMIT_S, text=True, check=False,
                env={'HOME': name, 'XDG_RUNTIME_DIR': name, 'PATH': os.environ['PATH']})
            printed = result.stdout
            ran += 1
            if result.returncode != 0:
                wrong.append(f'{page}: exit code {result.returncode} of\n{text}\n{printed}')
                break
    return ran, wrong


def main():
    here = pathlib.Path.cwd()
    ran, wrong = run(here / sys.argv[1], here)
    for sentence in wrong:
        print(sentence)
    if ran < 2:
        print(f'{sys.argv[1]}: there are hardly any commands')
    return 1 if wrong or ran < 2 else 0


if __name__ == '__main__':
    sys.exit(main())
