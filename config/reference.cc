#include "config/reference.h"

#include <optional>
#include <string_view>

#include "config/options.h"

namespace ferry::config {
namespace {

constexpr size_t kColumns = 98;

// `text` broken between words into lines that start with `prefix`.
std::string Wrap(std::string_view text, std::string_view prefix, size_t columns = kColumns) {
  std::string out;
  while (!text.empty()) {
    const size_t room = columns - prefix.size();
    const size_t space = text.size() <= room ? text.npos : text.rfind(' ', room);
    out.append(prefix).append(text.substr(0, space)).append("\n");
    text.remove_prefix(space == text.npos ? text.size() : space + 1);
  }
  return out;
}

// The default as TOML writes it. No default holds a quote or a backslash.
std::string DefaultValue(const Option& option) {
  const std::string text = OptionText(option, Options());
  return std::holds_alternative<uint64_t Options::*>(option.member) ? text : "\"" + text + "\"";
}

// Sentences as mdoc wants them: each on lines of its own, of at most 80 columns.
std::string ManText(std::string_view text) {
  constexpr size_t kManColumns = 80;
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find(". ");
    const size_t size = end == text.npos ? text.size() : end + 1;
    out += Wrap(text.substr(0, size), "", kManColumns);
    text.remove_prefix(end == text.npos ? size : size + 1);
  }
  return out;
}

// The default as an argument of an mdoc macro, which would take quotes away and take a word like
// "No" for a macro.
std::string ManDefault(const Option& option) {
  const bool number = std::holds_alternative<uint64_t Options::*>(option.member);
  const std::string text = OptionText(option, Options());
  return number ? text : text.empty() ? "Qq" : "Qq \\&" + text;
}

// Calls `print(option, first_of_group)` for each option that `wanted` accepts.
template <typename Wanted, typename Print>
void ForEachOption(Wanted wanted, Print print) {
  std::optional<Group> group;
  for (const Option& option : OptionTable()) {
    if (wanted(option)) {
      print(option, group != option.group);
      group = option.group;
    }
  }
}

}  // namespace

std::string DefaultToml() {
  std::string out =
      "# Options of Ferry, each at its default: take away the # to change one. They may also be "
      "set by\n"
      "# environment variable (FERRY_LOG_LEVEL) and by flag (--log_level), which win over this "
      "file.\n"
      "# ferryd reads this file when told so: ferryd --config_file=/etc/ferry/ferryd.toml\n"
      "# Ranks read only their environment; ferryrun passes on what it was told.\n";
  ForEachOption([](const Option& option) { return option.source == Source::kAnywhere; },
                [&out](const Option& option, bool first_of_group) {
                  if (first_of_group) {
                    out += std::string("\n# ---- ") + GroupTitle(option.group) + " ----\n";
                  }
                  out += "\n" + Wrap(option.help, "# ") +
                         Wrap("It must be " + AllowedValues(option) + ".", "# ") + "#" +
                         option.name + " = " + DefaultValue(option) + "\n";
                });
  return out;
}

std::string OptionsMarkdown() {
  std::string out;
  ForEachOption([](const Option&) { return true; },
                [&out](const Option& option, bool first_of_group) {
                  if (first_of_group) {
                    out += std::string("\n### ") + GroupTitle(option.group) +
                           "\n\n| Option | Default | Allowed | Meaning |\n|---|---|---|---|\n";
                  }
                  const std::string value = option.secret ? "\"\"" : DefaultValue(option);
                  out += std::string("| `") + option.name + "` | `" + value + "` | " +
                         AllowedValues(option) + " | " + option.help + " |\n";
                });
  return out;
}

std::string OptionsMan() {
  std::string out;
  ForEachOption([](const Option& option) { return option.source == Source::kAnywhere; },
                [&out](const Option& option, bool first_of_group) {
                  if (first_of_group) {
                    out += std::string(out.empty() ? "" : ".El\n") + ".Ss " +
                           GroupTitle(option.group) + "\n.Bl -tag -width Ds\n";
                  }
                  out += std::string(".It Va ") + option.name + " No = " + ManDefault(option) +
                         "\n" + ManText(option.help) +
                         ManText("It must be " + AllowedValues(option) + ".");
                });
  return out + ".El\n";
}

std::string FlagsHelp() {
  std::string out;
  ForEachOption(
      [](const Option& option) { return option.source != Source::kEnvironmentOnly; },
      [&out](const Option& option, bool first_of_group) {
        if (first_of_group) {
          out += (out.empty() ? "" : "\n") + std::string(GroupTitle(option.group)) + ":\n";
        }
        out += std::string("  --") + option.name + "=" + DefaultValue(option) + "\n" +
               Wrap(option.help + (" It must be " + AllowedValues(option)) + ".", "      ");
      });
  return out;
}

}  // namespace ferry::config
