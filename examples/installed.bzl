"""What of an example is installed."""

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
