#!/usr/bin/python3
"""Packages of PyPI, in a virtual environment of their own: those of another one may have files of the same names.

    wheels.py FOLDER PACKAGE...

installs them there, or says in one line why not.
"""

import glob
import importlib.metadata
import os
import shutil
import subprocess
import sys

MARK = "installed"  # written last: a folder without it was left unfinished
LIMIT_S = 600


class NotInstalled(Exception):
    """Its text is one line that says why."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def call(what, command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{what}: no end after {LIMIT_S} s") from None
    if done.returncode != 0:
        raise NotInstalled(f"{what}: {last_line(done.stdout)}")


def install(folder, packages):
    """Does nothing where they are installed already. Raises NotInstalled, and leaves no folder then."""
    mark = os.path.join(folder, MARK)
    wanted = "\n".join(packages) + "\n"
    try:
        with open(mark, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    except FileNotFoundError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    try:
        call("Python has no virtual environments (apt-get install python3-venv)",
             [sys.executable, "-m", "venv", folder])
        call(f"pip cannot install {' '.join(packages)}",
             [os.path.join(folder, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "install",
              "--quiet", "--retries", "1", *packages])
        with open(mark, "w", encoding="utf-8") as file:
            file.write(wanted)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def version(folder, package):
    """Of a package that is installed there."""
    places = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))
    return next(iter(importlib.metadata.distributions(name=package, path=places))).version


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: wheels.py FOLDER PACKAGE...")
    try:
        install(sys.argv[1], sys.argv[2:])
    except NotInstalled as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
