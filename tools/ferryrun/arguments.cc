#include "tools/ferryrun/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string_view>

#include "common/version.h"
#include "tools/flags/option_flags.h"

namespace ferry::tools {
namespace {

constexpr int kUsageError = 2;

constexpr char kDescription[] =
    "Runs a program as the ranks of a Ferry job on this machine:\n"
    "  ferryrun -n 4 [--nodes 2] [FLAGS] PROGRAM [ARGUMENTS]";

constexpr char kFooter[] =
    "Every option of ferryd may be given as a flag too (ferryd --help lists them), for the "
    "private\n"
    "daemons and the ranks. Without a flag, the daemon that serves the run directory, or else\n"
    "/run/ferry, is used if there is one and the job has one node; else private ones are started,\n"
    "and end with the job.\n"
    "The exit code is that of the first rank that failed, or 128 + the signal that killed it.";

int PrintMistake(const std::string& message) {
  std::fprintf(stderr, "ferryrun: %s (ferryrun --help lists the flags)\n", message.c_str());
  return kUsageError;
}

CLI::Validator WholeNumber() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool ok =
            !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == text.npos;
        return ok ? "" : "'" + text + "' is not a whole number from 0 to 999999999";
      },
      "");
}

void Declare(CLI::App* app, Arguments* arguments) {
  app->prefix_command();
  app->footer(kFooter);
  app->set_version_flag("--version", std::string("ferryrun ") + kFerryVersion);
  app->add_option("-n,--ranks", arguments->ranks, "how many ranks to start (1)")
      ->type_name("N")
      ->check(WholeNumber());
  app->add_option("--nodes", arguments->nodes,
                  "on how many nodes, each a private daemon on this machine (1)")
      ->type_name("N")
      ->check(WholeNumber());
  app->add_flag("--private", arguments->private_daemons, "start a private daemon in any case");
  app->add_flag("--label,!--no-label", arguments->label,
                "put \"[rank] \" before each line of output (the default)");
  app->add_flag("--keep-going", arguments->keep_going, "let the others run on when a rank fails");
  app->add_option("--grace-ms", arguments->grace_ms,
                  "milliseconds between asking ranks to end and killing them (5000)")
      ->type_name("MS")
      ->check(WholeNumber());
  app->add_option("--ferryd", arguments->ferryd,
                  "the daemon's program (else found beside ferryrun)")
      ->type_name("PATH");
  AddOptionFlags(app, &arguments->options);
}

}  // namespace

std::variant<Arguments, int> ParseArguments(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app(kDescription, "ferryrun");
  Declare(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& mistake) {
    return PrintMistake(mistake.what());
  }
  arguments.program = app.remaining();
  if (arguments.program.empty()) {
    return PrintMistake("no program to run");
  }
  if (arguments.program[0] == "--") {
    arguments.program.erase(arguments.program.begin());
  } else if (arguments.program[0].starts_with('-')) {
    return PrintMistake("unknown flag " + arguments.program[0]);
  }
  for (const std::string& option : arguments.options) {
    arguments.names_run_directory |= option.starts_with("--run_directory=");
  }
  return arguments;
}

}  // namespace ferry::tools
