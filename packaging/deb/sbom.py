#!/usr/bin/python3
"""What of other projects is in Ferry's programs and libraries: a bill of materials, SPDX 2.3 in JSON.

    sbom.py --version V --date SECONDS --targets FILE --output FILE PROGRAM...

PROGRAM: the programs and libraries of the package, not stripped. FILE of --targets: the targets of
//third_party that they are built from, one a line. Code comes from a Debian package in three ways:

- from an archive (.a): the program has all symbols of one of its members. Whatever the build asks
  for, only what is in the program counts;
- from headers, whose code the compiler takes into the programs: then the build names the library;
- from a shared library, which is not in Ferry's package, but in one that it depends on.

Prints Built-Using for the package: the sources of the first two.
"""

import argparse
import collections
import datetime
import functools
import hashlib
import json
import os
import platform
import re
import struct
import subprocess
import sys

# By target of //third_party: what holds its headers and archives. None: nothing but the C library's. Some
# packages have other names in other releases of Debian: in their places are files that they hold.
BOOST = "/usr/include/boost/version.hpp"
PACKAGES = {
    "asio": [BOOST],
    "boost_context": ["libboost_context.a"],
    "boost_intrusive": [BOOST],
    "cli11": ["libcli11-dev"],
    "crypto": ["libssl-dev"],
    "dl": [],
    "grpc": ["libgrpc++-dev", "libgrpc-dev", "libabsl-dev", "libprotobuf-dev"],
    "hwloc": ["libhwloc-dev"],
    "jemalloc": ["libjemalloc-dev"],
    "json": ["nlohmann-json3-dev"],
    "level_zero_headers": ["libze-dev"],
    "libfabric": ["libfabric-dev"],
    "prometheus": ["prometheus-cpp-dev"],
    "seccomp": ["libseccomp-dev"],
    "spdlog": ["libspdlog-dev", "libfmt-dev"],
    "systemd": ["libsystemd-dev"],
    "threads": [],
    "tls": ["libssl-dev"],
    "tomlplusplus": ["libtomlplusplus-dev"],
}
# The compiler adds parts of libgcc, and inline code of libstdc++, to whatever is built; libstdc++'s
# headers and its archive are in one package.
COMPILER_ARCHIVES, COMPILER_HEADERS = "libgcc.a", "libstdc++.a"
# Of these only declarations are used: the library itself is shared, or opened at run time.
DECLARATIONS = {"crypto", "hwloc", "level_zero_headers", "libfabric", "seccomp", "systemd",
                "tls"}

RELEASE = platform.freedesktop_os_release()["VERSION_CODENAME"]

Package = collections.namedtuple("Package", "name version source source_version architecture")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def installed(name):
    """The installed package of that name, or that holds that file: archives are where the compiler finds them."""
    if name.endswith(".a"):
        name = run("g++", f"-print-file-name={name}").strip()
    if name.startswith("/"):
        return owners([name])[name]
    fields = ("Package", "Version", "source:Package", "source:Version", "Architecture")
    return Package(*run("dpkg-query", "-W", "-f", "\t".join("${%s}" % field for field in fields), name).split("\t"))


def owners(paths):
    """The installed package that each file belongs to, as far as there is one. dpkg is slow: asked once."""
    names = {}
    for path in paths:
        for name in {path, os.path.realpath(path)}:
            # Debian's / and /usr are one; dpkg knows a file by the name that its package gives.
            for known in (name, name.removeprefix("/usr"), "/usr" + name):
                names[known] = path
    found = subprocess.run(["dpkg-query", "-S", *names], check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout
    return {names[name]: installed(package.split(",")[0])
            for package, _, name in (line.partition(": ") for line in found.splitlines()) if name in names}


def symbols_of(program):
    """All that the program or library defines, its own hidden symbols, too."""
    return {line.split(" ")[-1] for line in run("nm", "--quiet", "--defined-only", program).splitlines() if " " in line}


def members_of(archive):
    """The symbols that each member defines for others, by the archive's own index (ar(5))."""
    with open(archive, "rb") as file:
        if file.read(8) != b"!<arch>\n":
            return []  # a script of the linker's
        header = file.read(60)
        if header[:16].rstrip() != b"/":
            return []
        index = file.read(int(header[48:58]))
    count = int.from_bytes(index[:4], "big")
    offsets = struct.unpack_from(f">{count}I", index, 4)
    names = index[4 + 4 * count:].split(b"\0")[:count]
    members = collections.defaultdict(set)
    for offset, name in zip(offsets, names):
        members[offset].add(name.decode())
    return members.values()


def archives_of(name):
    return [path for path in run("dpkg-query", "-L", name).splitlines()
            if path.endswith(".a") and os.path.isfile(path) and not os.path.islink(path)]


@functools.cache
def known_libraries():
    """The path of each shared library that this machine's loader knows."""
    return dict(re.findall(r"^\s*(\S+) \(libc6,x86-64.*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE))


def libraries_of(program):
    """The shared libraries that the program names, where this machine has them."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", program))
    return [known_libraries()[name] for name in needed if name in known_libraries()]


class Bill:
    """Which packages are in which programs, and how."""

    def __init__(self, programs, targets):
        self.programs = {os.path.basename(program): program for program in programs}
        self.archives = collections.defaultdict(set)  # by package, the programs
        self.headers = set()
        self.shared = collections.defaultdict(set)
        candidates = [COMPILER_ARCHIVES]
        for target in targets:
            if target not in PACKAGES:
                sys.exit(f"sbom.py: which Debian packages is //third_party:{target} of? Add it to PACKAGES")
            candidates += PACKAGES[target]
            if target not in DECLARATIONS:
                self.headers.update(map(installed, PACKAGES[target]))
        self.headers.add(installed(COMPILER_HEADERS))
        self.find_archives(dict.fromkeys(candidates))
        libraries = {name: libraries_of(program) for name, program in self.programs.items()}
        packages = owners({path for paths in libraries.values() for path in paths})
        for name, paths in libraries.items():
            for path in paths:
                if path in packages:
                    self.shared[packages[path]].add(name)

    def find_archives(self, candidates):
        symbols = {name: symbols_of(program) for name, program in self.programs.items()}
        for candidate in candidates:
            package = installed(candidate)
            for archive in archives_of(package.name):
                for member in members_of(archive):
                    self.archives[package].update(name for name, own in symbols.items() if member <= own)

    def built_using(self):
        linked = [package for package, programs in self.archives.items() if programs] + list(self.headers)
        return ", ".join(sorted({f"{package.source} (= {package.source_version})" for package in linked}))


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def entry(package):
    purl = f"pkg:deb/debian/{package.source}@{package.source_version}?arch=source&distro={RELEASE}"
    return {
        "SPDXID": identifier("Package", package.name),
        "name": package.name,
        "versionInfo": package.version,
        "sourceInfo": f"built from the Debian source package {package.source} {package.source_version}",
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": purl.replace("+", "%2B")}],
    }


def document(bill, version, seconds):
    ferry = identifier("Package", "ferry")
    packages = {}
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": ferry}]

    def relate(package, kind, comment):
        packages[package.name] = entry(package)
        relationships.append({"spdxElementId": ferry, "relationshipType": kind,
                              "relatedSpdxElement": identifier("Package", package.name), "comment": comment})

    for package, programs in sorted(bill.archives.items()):
        if programs:
            relate(package, "STATIC_LINK", "its archives are linked into " + ", ".join(sorted(programs)))
    for package in sorted(bill.headers):
        relate(package, "STATIC_LINK", "code of its headers is compiled in")
    for package, programs in sorted(bill.shared.items()):
        relate(package, "DYNAMIC_LINK", "its libraries are loaded by " + ", ".join(sorted(programs)))
    own = {"SPDXID": ferry, "name": "ferry", "versionInfo": version, "downloadLocation": "NOASSERTION",
           "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
           "copyrightText": "2026 The Ferry authors", "supplier": "Organization: The Ferry authors"}
    content = json.dumps([list(packages.values()), relationships], sort_keys=True)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"ferry-{version}",
        "documentNamespace": f"https://ferry.invalid/spdx/ferry-{version}-{hashlib.sha256(content.encode()).hexdigest()}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: packaging/deb/sbom.py"],
        },
        "packages": [own] + [packages[name] for name in sorted(packages)],
        "relationships": relationships,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", type=int, required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    with open(arguments.targets, encoding="utf-8") as file:
        targets = [line.strip().rpartition(":")[2] for line in file if line.strip()]
    bill = Bill(arguments.programs, targets)
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(document(bill, arguments.version, arguments.date), file, indent=1)
        file.write("\n")
    print(bill.built_using())


if __name__ == "__main__":
    main()
