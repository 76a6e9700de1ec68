#include "tools/flags/app.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "common/nearest.h"
#include "tools/flags/completion.h"

namespace ferry::tools {
namespace {

// Help may have several lines; a list has room for one.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Adds only the flags that the help shows: ferryd's options would bury the others.
void AddFlags(const CLI::App& app, const std::string& command, std::vector<CompletionFlag>* flags) {
  for (const CLI::Option* option : app.get_options()) {
    const int values = option->get_items_expected_max() > 0 ? 1 : 0;
    const std::string help = FirstLine(option->get_description());
    if (option->get_group().empty() || (!command.empty() && option == app.get_help_ptr())) {
      continue;
    }
    for (const std::string& name : option->get_snames()) {
      flags->push_back({"-" + name, help, values, command});
    }
    for (const std::string& name : option->get_lnames()) {
      flags->push_back({"--" + name, help, values, command});
    }
  }
}

CommandLine Describe(const CLI::App& app) {
  CommandLine line{.tool = app.get_name(), .flags = {}, .commands = {}};
  AddFlags(app, "", &line.flags);
  for (const CLI::App* command : app.get_subcommands({})) {
    line.commands.push_back({command->get_name(), FirstLine(command->get_description())});
    AddFlags(*command, command->get_name(), &line.flags);
  }
  return line;
}

// Hidden flags, too.
void AddNames(const CLI::App& app, std::vector<std::string>* names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) {
      names->push_back("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      names->push_back("--" + name);
    }
  }
}

}  // namespace

void AddInformation(CLI::App* app, const std::string& version) {
  app->set_version_flag("--version", version)->description("print the version and exit");
  app->add_option_function<std::string>(
         "--completion",
         [app](const std::string& shell) {
           const StatusOr<std::string> script = CompletionScript(Describe(*app), shell);
           if (!script.ok()) {
             throw CLI::ValidationError(script.status().message());
           }
           std::fputs(script->c_str(), stdout);
           throw CLI::Success();
         },
         "print what lets bash, zsh or fish complete this command, and exit")
      ->type_name("SHELL")
      ->trigger_on_parse();
}

std::string ExplainUnknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (unknown.empty()) {
    return "";
  }
  std::vector<std::string> known;
  if (unknown[0].starts_with('-')) {
    AddNames(app, &known);
    for (const CLI::App* command : app.get_subcommands()) {
      AddNames(*command, &known);
    }
  } else {
    for (const CLI::App* command : app.get_subcommands({})) {
      known.push_back(command->get_name());
    }
  }
  const std::string word = unknown[0].substr(0, unknown[0].find('='));
  return "unknown word " + word +
         DidYouMean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace ferry::tools
