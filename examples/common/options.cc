#include "examples/common/options.h"

#include <cstdio>
#include <utility>

#include "examples/common/arguments.h"

namespace examples {

void Options::Add(std::string name, std::string value, std::string help, std::string wanted,
                  Take take) {
  options_.push_back(
      {std::move(name), std::move(value), std::move(help), std::move(wanted), std::move(take)});
}

void Options::AddCount(std::string name, std::string help, int least, int* count) {
  Add(std::move(name), "N", help + " (" + std::to_string(*count) + ")",
      "a whole number from " + std::to_string(least),
      [=](std::string_view text) { return ReadCount(text, least, count); });
}

void Options::AddText(std::string name, std::string value, std::string help, std::string* text) {
  Add(std::move(name), std::move(value), std::move(help), "something", [=](std::string_view given) {
    *text = given;
    return !given.empty();
  });
}

void Options::AddFlag(std::string name, std::string help, bool* flag, bool meaning) {
  Add(std::move(name), "", std::move(help), "", [=](std::string_view) {
    *flag = meaning;
    return true;
  });
}

void Options::ShowHelp() const {
  std::printf("usage: %s\n\n", usage_.c_str());
  for (const Option& option : options_) {
    std::printf("  %-22s %s\n", (option.name + " " + option.value).c_str(), option.help.c_str());
  }
}

bool Options::Parse(int argc, char** argv, bool speak, int* exit_code) const {
  const auto refuse = [&](const std::string& what) {
    if (speak) {
      std::fprintf(stderr, "%s: %s; --help lists the options\n", argv[0], what.c_str());
    }
    *exit_code = 2;
    return false;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") {
      if (speak) {
        ShowHelp();
      }
      *exit_code = 0;
      return false;
    }
    const Option* found = nullptr;
    for (const Option& option : options_) {
      found = option.name == name ? &option : found;
    }
    if (found == nullptr) {
      return refuse("there is no option \"" + name + "\"");
    }
    if (!found->value.empty() && i + 1 == argc) {
      return refuse(name + " needs a value: " + found->wanted);
    }
    const std::string text = found->value.empty() ? "" : argv[++i];
    if (!found->take(text)) {
      return refuse(name + " \"" + text + "\" is not " + found->wanted);
    }
  }
  return true;
}

bool ReadAxes(std::string_view text, int axes, Triple* numbers) {
  Triple read = {1, 1, 1};
  for (int axis = 0; axis < axes; ++axis) {
    const bool is_last = axis + 1 == axes;
    const size_t end = is_last ? text.size() : text.find('x');
    if (end == std::string_view::npos ||
        !ReadCount(text.substr(0, end), 1, &read[static_cast<size_t>(axis)])) {
      return false;
    }
    text.remove_prefix(is_last ? end : end + 1);
  }
  *numbers = read;
  return true;
}

bool ReadSends(std::string_view text, ferry::Sends* sends) {
  for (const ferry::Sends known : kAllSends) {
    if (text == NameOf(known)) {
      *sends = known;
      return true;
    }
  }
  return false;
}

const char* NameOf(ferry::Sends sends) {
  switch (sends) {
    case ferry::Sends::kReady:
      return "ready";
    case ferry::Sends::kStandard:
      return "standard";
    case ferry::Sends::kByCpu:
      return "cpu";
    case ferry::Sends::kStaged:
      return "staged";
  }
  return "?";
}

}  // namespace examples
