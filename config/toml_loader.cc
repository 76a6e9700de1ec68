#include "config/toml_loader.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

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
  return ApplyTomlText(text, path, options);
}

Status ApplyTomlText(std::string_view text, const std::string& path, Options* options) {
  const toml::parse_result result = toml::parse(text, path);
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
