"""An example: its program, and what of it is installed."""

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

def example(**attributes):
    """Declares the example's program, with the folder's name, and its :sources."""
    native.cc_binary(
        name = native.package_name().split("/")[-1],
        visibility = ["//visibility:public"],
        **attributes
    )
    installed_sources()
