"""precompiled_header: a header that the compiler reads in a tenth of the time.

The rule `//PACKAGE:NAME` makes PACKAGE/NAME/prelude.h, which is `hdr`, and its compiled form. A
target that depends on it compiles with `-include PACKAGE/NAME/prelude.h`, and with the flags of the command line and
`copts`: the compiler passes over a precompiled header that was made with others. Headers and definitions of `deps` are
handed on, for a compiler that passes over it reads the header itself; libraries to link are not.

Templates that the header's functions use are instantiated beforehand, too, if the compiler is gcc 12 (instantiate.cc).
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _takes_plugin(toolchain):
    """Of the machine's own gcc its folders tell the version."""
    others = [folder for folder in toolchain.built_in_include_directories if "/lib/gcc/" in folder and "/12/" not in folder]
    return not others and "clang" not in toolchain.compiler_executable

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    needs = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    # Beside its compiled form, in a folder where nothing else is: the compiler looks for that first.
    header = ctx.actions.declare_file(ctx.label.name + "/prelude.h")
    ctx.actions.symlink(output = header, target_file = ctx.file.hdr)
    compiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
    copts = ctx.attr.copts + ["-x", "c++-header"]
    source, plugins = ctx.file.hdr, []
    if _takes_plugin(toolchain):
        source, plugins = ctx.actions.declare_file(ctx.label.name + "_instantiated.h"), [ctx.file._instantiate]
        ctx.actions.write(source, '#include "%s"\n#pragma ferry instantiate\n' % ctx.file.hdr.path)
        copts += ["-fplugin=" + ctx.file._instantiate.path, "-Wno-unknown-pragmas"]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = source.path,
        output_file = compiled.path,
        quote_include_directories = depset([".", ctx.bin_dir.path], transitive = [needs.quote_includes]),
        preprocessor_defines = needs.defines,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + copts,
        use_pic = True,
    )
    command = {"feature_configuration": features, "action_name": CPP_COMPILE_ACTION_NAME}
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(**command),
        arguments = cc_common.get_memory_inefficient_command_line(variables = variables, **command),
        env = cc_common.get_environment_variables(variables = variables, **command),
        inputs = depset([ctx.file.hdr, source] + plugins, transitive = [toolchain.all_files, needs.headers]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + ctx.file.hdr.short_path,
    )
    made = cc_common.create_compilation_context(headers = depset([header, compiled]))
    return [cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = context) for context in [made, needs]])]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "_instantiate": attr.label(default = "//bazel:instantiate.so", allow_single_file = True, cfg = "host"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
