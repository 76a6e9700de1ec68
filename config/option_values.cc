// Values of options: found by name, read from text, shown and checked. The table itself is in
// options.cc. See options.h.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "common/address_list.h"
#include "common/nearest.h"
#include "common/number_text.h"
#include "common/topology/cpu_set.h"
#include "config/options.h"
#include "config/weights.h"

namespace ferry::config {
namespace {

std::vector<std::string_view> OptionNames() {
  std::vector<std::string_view> names;
  for (const Option& option : OptionTable()) {
    names.emplace_back(option.name);
  }
  return names;
}

bool IsChoice(std::string_view choices, std::string_view text) {
  while (true) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) {
      return true;
    }
    if (bar == std::string_view::npos) {
      return false;
    }
    choices.remove_prefix(bar + 1);
  }
}

// A number of bytes: 4096, 4K or 4KiB, and so with M, G and T, in either case; nothing for any
// other text, and for a size that is too large.
std::optional<uint64_t> SizeIn(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> number = NumberIn<uint64_t>(text.substr(0, digits));
  std::string unit(text.substr(digits));
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (!number || unit.empty()) {
    return number;
  }
  const size_t power = kUnits.find(unit[0]);
  const size_t shift = 10 * (power + 1);
  const bool is_unit = power != kUnits.npos && (unit.size() == 1 || unit.substr(1) == "IB");
  return is_unit && *number <= UINT64_MAX >> shift ? std::optional(*number << shift) : std::nullopt;
}

Status BadValue(const Option& option, std::string_view text, std::string_view where) {
  const std::string shown =
      option.secret ? "the value given (not shown)" : "\"" + std::string(text) + "\"";
  return {ErrorCode::kConfiguration, std::string(where) + ": " + option.name + " cannot be " +
                                         shown + ": it must be " + AllowedValues(option)};
}

Status Conflict(std::string message) { return {ErrorCode::kConfiguration, std::move(message)}; }

// Checks that all three files are set, or none: TLS with some of them would protect nothing.
Status CheckTlsFiles(const Options& options) {
  const std::pair<const char*, const std::string&> files[] = {
      {"tls_ca_file", options.tls_ca_file},
      {"tls_cert_file", options.tls_cert_file},
      {"tls_key_file", options.tls_key_file}};
  std::string missing;
  size_t set = 0;
  for (const auto& [name, path] : files) {
    set += path.empty() ? 0 : 1;
    missing += path.empty() ? (missing.empty() ? "" : " and ") + std::string(name) : "";
  }
  if (set == 0 || missing.empty()) {
    return {};
  }
  return Conflict("TLS needs tls_ca_file, tls_cert_file and tls_key_file, all three: " + missing +
                  (set == 1 ? " are" : " is") + " missing");
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

Status CheckPlaces(const Options& options) {
  const std::string& cpus = options.progress_affinity;
  if (cpus != "auto" && cpus != "none") {
    if (const auto set = topology::CpuSet::Parse(cpus); !set.ok()) {
      return Conflict("progress_affinity must be auto, none or a list of CPUs: " +
                      set.status().message());
    }
  }
  const std::string& node = options.staging_node;
  if (node != "auto" && node != "none" && !IsNumber(node)) {
    return Conflict("staging_node must be auto, none or the number of a NUMA node, not \"" + node +
                    "\"");
  }
  if (const auto weights = ParseWeights(options.staging_weights, "rank"); !weights.ok()) {
    return Conflict("staging_weights: " + weights.status().message());
  }
  if (const auto weights = ParseWeights(options.deferred_work_weights, "uid"); !weights.ok()) {
    return Conflict("deferred_work_weights: " + weights.status().message());
  }
  return {};
}

}  // namespace

bool IsSize(const Option& option) { return option.unit == std::string_view("bytes"); }

const Option* FindOption(std::string_view name) {
  const std::span<const Option> table = OptionTable();
  const auto row = std::find_if(table.begin(), table.end(),
                                [name](const Option& option) { return name == option.name; });
  return row == table.end() ? nullptr : &*row;
}

std::string EnvironmentVariable(const Option& option) {
  std::string variable = "FERRY_";
  for (const char* c = option.name; *c != '\0'; ++c) {
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  return variable;
}

std::string AllowedValues(const Option& option) {
  if (*option.choices != '\0') {
    std::string choices = option.choices;
    if (choices.find('|') == std::string::npos) {
      return "\"" + choices + "\"";
    }
    for (size_t bar = 0; (bar = choices.find('|', bar)) != std::string::npos;) {
      choices.replace(bar, 1, ", ");
    }
    return "one of " + choices;
  }
  const std::string from_to = std::to_string(option.min) + " to " + std::to_string(option.max);
  if (std::holds_alternative<std::string Options::*>(option.member)) {
    return "text of " + from_to + " bytes";
  }
  return "an integer from " + from_to + (*option.unit ? std::string(" (") + option.unit + ")" : "");
}

std::string OptionText(const Option& option, const Options& options) {
  if (option.secret) {
    return "(secret)";
  }
  if (const auto* number = std::get_if<uint64_t Options::*>(&option.member)) {
    return std::to_string(options.*(*number));
  }
  return options.*std::get<std::string Options::*>(option.member);
}

Status SetOption(const Option& option, std::string_view text, std::string_view where,
                 Options* options) {
  if (const auto* member = std::get_if<uint64_t Options::*>(&option.member)) {
    const std::optional<uint64_t> number = IsSize(option) ? SizeIn(text) : NumberIn<uint64_t>(text);
    if (!number || *number < option.min || *number > option.max) {
      return BadValue(option, text, where);
    }
    options->*(*member) = *number;
    return {};
  }
  if (text.size() < option.min || text.size() > option.max ||
      (*option.choices != '\0' && !IsChoice(option.choices, text))) {
    return BadValue(option, text, where);
  }
  options->*std::get<std::string Options::*>(option.member) = text;
  return {};
}

Status UnknownOption(std::string_view name, std::string_view where) {
  std::string message = std::string(where) + ": unknown option \"" + std::string(name) + "\"";
  const std::string meant = DidYouMean(name, OptionNames());
  message += meant.empty() ? "; `ferryd --help` lists all options" : meant;
  return {ErrorCode::kConfiguration, std::move(message)};
}

Status CheckOptions(const Options& options) {
  if (options.size != 0 && options.rank >= options.size) {
    return Conflict("rank (" + std::to_string(options.rank) + ") must be below size (" +
                    std::to_string(options.size) +
                    "): FERRY_RANK and FERRY_SIZE come from the launcher");
  }
  if (options.peer_timeout_ms < 2 * options.heartbeat_interval_ms) {
    return Conflict("peer_timeout_ms (" + std::to_string(options.peer_timeout_ms) +
                    ") must be at least twice heartbeat_interval_ms (" +
                    std::to_string(options.heartbeat_interval_ms) +
                    "), or one late greeting declares a peer dead");
  }
  if ((options.host_link_h2d_mb_per_s == 0) != (options.host_link_d2h_mb_per_s == 0)) {
    return Conflict("host_link_h2d_mb_per_s (" + std::to_string(options.host_link_h2d_mb_per_s) +
                    ") and host_link_d2h_mb_per_s (" +
                    std::to_string(options.host_link_d2h_mb_per_s) +
                    ") must both be set to emulate a link, or both be 0");
  }
  if (options.pipeline_staging_blocks == 1) {
    return Conflict("pipeline_staging_blocks must be at least 2, one for each direction, or 0");
  }
  FERRY_RETURN_IF_ERROR(CheckPlaces(options));
  if (const auto nodes = AddressList::Parse(options.node_addresses); !nodes.ok()) {
    return Conflict("node_addresses: " + nodes.status().message());
  }
  return CheckTlsFiles(options);
}

bool ServesAll(const Options& options) {
  return options.users == "all" || (options.users == "auto" && geteuid() == 0);
}

}  // namespace ferry::config
