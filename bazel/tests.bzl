"""cc_test, cc_library and cc_binary of tests/: as Bazel's, but compiled quickly; and tables of tests, helpers and programs.

Half of all code is tests, and most of the time of compiling one goes into GoogleTest's headers and the standard
library's, and into optimising what runs once. So these are precompiled (prelude.bzl), and tests are not optimised. Code
under test is, but for what stands in headers. Those that include gRPC have `prelude = "grpc_test"`. All are for tests alone,
and all tests may use them, unless they say otherwise.

Most targets of a folder differ in little but the name: they stand in a table, a row each. A row is what the target links
besides what its whole table does, or a dict of attributes if it has others:

    tests({
        "lane_test": ["//shm"],  # lane_test.cc, with GoogleTest's main
        "word_copy_test": dict(size = "medium", tags = ["no-tsan"], deps = ["//shm:words"]),
    })

Attributes beside the table hold for every row: lists of a row are added to them, any other attribute of a row replaces them.
"""

load(":prelude.bzl", "with_files", "with_prelude")

# Packages whose tests are optimised: code without locks stands in headers there, or much is computed. Tests there that
# have one thread and are over at once say `prelude = "test"`.
_OPTIMIZED = [
    "tests/client/direct",  # benchmarks/links measures with it
    "tests/coll",
    "tests/coll/board",
    "tests/coll/levels",
    "tests/engine",
    "tests/mpi/ranks",
    "tests/shm",
]

def _quick(rule, prelude, attributes):
    attributes.setdefault("visibility", ["//tests:__subpackages__"])
    optimized = native.package_name() in _OPTIMIZED
    with_prelude(rule, prelude or ("optimized_test" if optimized else "test"), **attributes)

def cc_test(prelude = None, **attributes):
    _quick(native.cc_test, prelude, attributes)

def cc_library(prelude = None, testonly = True, **attributes):
    attributes["testonly"] = testonly
    _quick(native.cc_library, prelude, with_files(attributes))

def cc_binary(prelude = None, testonly = True, **attributes):
    attributes["testonly"] = testonly
    _quick(native.cc_binary, prelude, attributes)

# ---- Tables ----

def _place(label):
    """Where a label stands among others: files of the package, its targets, those of other packages, of other repositories."""
    return ({":": 1, "/": 2, "@": 3}.get(label[0], 0), label.replace(":", "!"))

def _with(labels, common):
    """Labels of a row, and those of its table at their places among them."""
    for label in common:
        after = [at for at, other in enumerate(labels) if _place(other) > _place(label)]
        labels = labels[:after[0]] + [label] + labels[after[0]:] if after else labels + [label]
    return labels

def _attributes(row, common):
    """Those of a row and of its table together."""
    found = dict(common)
    for name, value in (row if type(row) == "dict" else {"deps": row}).items():
        if name in ["data", "deps"]:
            found[name] = _with(value, found.get(name, []))
        else:
            found[name] = found.get(name, []) + value if type(value) == "list" else value
    return found

def tests(table, size = "small", deps = [], data = [], ranks = None, **common):
    """Tests: the row "x_test" is made of x_test.cc unless it says `srcs`, and linked with GoogleTest's main.

    Args:
      table: the tests by name. A row may have `ranks`, too: the names of programs that the test runs.
      size: of a row that gives none.
      deps: what every test links.
      data: what every test finds beside it when it runs.
      ranks: the package that the programs `ranks` of the rows are in.
      **common: other attributes of every test.
    """
    common = dict(common, size = size, data = data, deps = _with(deps, ["//third_party:gtest_main"]))
    for name, row in table.items():
        if type(row) == "dict" and "ranks" in row:
            row = dict(row, data = _with(row.get("data", []), ["%s:%s" % (ranks, rank) for rank in row["ranks"]]))
            row.pop("ranks")
        attributes = _attributes(row, common)
        cc_test(name = name, srcs = attributes.pop("srcs", [name + ".cc"]), **attributes)

def programs(table, **common):
    """Programs that tests run: the row "x" is made of x.cc unless it says `srcs`."""
    for name, row in table.items():
        attributes = _attributes(row, common)
        cc_binary(name = name, srcs = attributes.pop("srcs", [name + ".cc"]), **attributes)

def helpers(table, **common):
    """Libraries of what tests share: the row "x" is x.h, and x.cc if there is one, unless it says `files`, `srcs` or `hdrs`."""
    for name, row in table.items():
        attributes = _attributes(row, common)
        if not [given for given in ["files", "hdrs", "srcs"] if given in attributes]:
            attributes.update(srcs = native.glob([name + ".cc"]), hdrs = [name + ".h"])
        cc_library(name = name, **attributes)
