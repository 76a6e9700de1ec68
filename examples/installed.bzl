"""An example: its program, the libraries that it is made of, and what of it is installed."""

def installed_sources():
    """Declares :sources, all files of the package: as users get them, who have a Makefile in place of BUILD."""
    native.filegroup(
        name = "sources",
        srcs = native.glob(
            ["*"],
            exclude = ["BUILD"],
        ),
        visibility = [
            "//examples:__pkg__",
            "//tests:__subpackages__",
        ],
    )

def parts(table):
    """Libraries of examples: the row "x" is x.cc and x.h, and says what it links or, in a dict, its other attributes."""
    for name, row in table.items():
        attributes = dict(row if type(row) == "dict" else {"deps": row})
        attributes.setdefault("srcs", [name + ".cc"])
        attributes.setdefault("hdrs", [name + ".h"])
        native.cc_library(
            name = name,
            visibility = [
                "//examples:__subpackages__",
                "//tests:__subpackages__",
            ],
            **attributes
        )

def example(**attributes):
    """Declares the example's program, with the folder's name, and its :sources; tests may name each file of it."""
    native.cc_binary(
        name = native.package_name().split("/")[-1],
        visibility = ["//visibility:public"],
        **attributes
    )
    native.exports_files(native.glob(
        ["*"],
        exclude = ["BUILD"],
    ))
    installed_sources()
