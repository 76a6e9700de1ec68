#include "config/toml_loader.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

namespace {
// toml++ 3.3 asserts what a file may well violate: a table header that does not begin with a key.
struct TomlAssertion {};
[[noreturn]] void FailTomlAssertion() { throw TomlAssertion(); }
}  // namespace

#define TOML_ASSERT(expression) ((expression) ? void() : FailTomlAssertion())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace ferry::config {
namespace {

std::string Place(const std::string& path, const toml::source_region& source) {
  return path + ":" + std::to_string(source.begin.line);
}

// The value as SetOption reads it, or nothing if the file holds another type than the option.
std::optional<std::string> ValueText(const Option& option, const toml::node& node) {
  if (std::holds_alternative<uint64_t Options::*>(option.member)) {
    if (const auto* number = node.as_integer()) {
      return std::to_string(number->get());
    }
  } else if (const auto* text = node.as_string()) {
    return text->get();
  }
  return std::nullopt;
}

const char* TypeText(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

// The first line with a character that is not ASCII outside of strings and comments (toml++ 3.3
// takes some of them for unreachable cases), or with a string of several lines. 0: none.
size_t StrangeLine(std::string_view text) {
  size_t line = 1;
  char quote = '\0';  // which one is open
  bool comment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      quote = '\0';
      comment = false;
    } else if (comment) {
      continue;
    } else if (quote != '\0') {
      i += quote == '"' && c == '\\' ? 1 : 0;
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      if (text.substr(i, 3) == std::string(3, c)) {
        return line;
      }
      quote = c;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return line;
    } else {
      comment = c == '#';
    }
  }
  return 0;
}

// Nothing when an assertion of the parser failed.
std::optional<toml::parse_result> Parse(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const TomlAssertion&) {
    return std::nullopt;
  }
}

// The first line with which an assertion fails.
size_t LineOfAssertion(std::string_view text, const std::string& path) {
  size_t line = 1;
  for (size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1)) {
    if (!Parse(text.substr(0, end + 1), path)) {
      break;
    }
    ++line;
  }
  return line;
}

Status ApplyKey(std::string_view name, const toml::node& node, const std::string& where,
                Options* options) {
  const Option* option = FindOption(name);
  if (option == nullptr) {
    if (node.is_table()) {
      return {ErrorCode::kConfiguration, where + ": unknown table [" + std::string(name) +
                                             "]: options stand at top level, as name = value"};
    }
    return UnknownOption(name, where);
  }
  if (option->source != Source::kAnywhere) {
    return {ErrorCode::kConfiguration,
            where + ": " + option->name +
                " cannot be set in a file: use the environment variable " +
                EnvironmentVariable(*option)};
  }
  const std::optional<std::string> text = ValueText(*option, node);
  if (!text) {
    return {ErrorCode::kConfiguration, where + ": " + option->name + " cannot be " +
                                           TypeText(node) + ": it must be " +
                                           AllowedValues(*option)};
  }
  return SetOption(*option, *text, where, options);
}

}  // namespace

Status ApplyToml(const std::string& path, Options* options) {
  const std::unique_ptr<FILE, decltype(&fclose)> file(fopen(path.c_str(), "re"), &fclose);
  std::string text;
  char block[4096];
  for (size_t size = 1; file && size > 0;) {
    size = fread(block, 1, sizeof(block), file.get());
    text.append(block, size);
  }
  if (!file || ferror(file.get())) {
    return {ErrorCode::kConfiguration, StatusFromErrno(errno, "cannot read " + path).message()};
  }
  if (text.empty()) {  // more likely cut short than meant so
    return {ErrorCode::kConfiguration,
            "cannot use " + path + ": the file is empty; to read no file, leave config_file empty"};
  }
  return ApplyTomlText(text, path, options);
}

Status ApplyTomlText(std::string_view text, const std::string& path, Options* options) {
  if (const size_t line = StrangeLine(text); line != 0) {
    return {ErrorCode::kConfiguration,
            path + ":" + std::to_string(line) +
                ": only strings of one line and comments may hold more than ASCII"};
  }
  const std::optional<toml::parse_result> parsed = Parse(text, path);
  if (!parsed) {
    return {ErrorCode::kConfiguration,
            path + ":" + std::to_string(LineOfAssertion(text, path)) + ": this is no name = value"};
  }
  const toml::parse_result& result = *parsed;
  if (!result) {
    return {ErrorCode::kConfiguration, Place(path, result.error().source()) + ": " +
                                           std::string(result.error().description())};
  }
  for (const auto& [key, node] : result.table()) {
    FERRY_RETURN_IF_ERROR(
        ApplyKey(key.str(), node, path + ":" + std::to_string(key.source().begin.line), options));
  }
  return {};
}

}  // namespace ferry::config
