#include "tools/ferryrun/host_list.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

namespace ferry::tools {
namespace {

constexpr uint64_t kMaxSlots = 999'999'999;
constexpr std::string_view kSlots = "slots=";

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::optional<uint64_t> ReadSlots(std::string_view text) {
  uint64_t slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && slots >= 1 && slots <= kMaxSlots ? std::optional(slots) : std::nullopt;
}

// Names become words of a remote shell's command line, and never options of the launcher.
bool IsName(std::string_view name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '@' || c == '%';
  });
}

// "NAME", "NAME:SLOTS", "[ADDRESS]:SLOTS"; more than one colon without brackets: an IPv6 address.
StatusOr<Host> ParseHost(std::string_view text) {
  Host host;
  std::string_view slots;
  const std::string quoted = "'" + std::string(text) + "'";
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos || (end + 1 < text.size() && text[end + 1] != ':')) {
      return Refuse(quoted + " is no host: [ADDRESS] or [ADDRESS]:SLOTS begins like this");
    }
    host.name = text.substr(1, end - 1);
    slots = end + 1 < text.size() ? text.substr(end + 2) : "1";
  } else if (const size_t colon = text.find(':');
             colon != text.npos && text.find(':', colon + 1) == text.npos) {
    host.name = text.substr(0, colon);
    slots = text.substr(colon + 1);
  } else {
    host.name = text;
    slots = "1";
  }
  if (!IsName(host.name)) {
    return Refuse(quoted + " names no host: a name or an address of letters, digits and .-_:@%");
  }
  const std::optional<uint64_t> number = ReadSlots(slots);
  if (!number) {
    return Refuse(quoted + ": '" + std::string(slots) + "' is no number of slots from 1 to " +
                  std::to_string(kMaxSlots));
  }
  host.slots = *number;
  return host;
}

std::vector<std::string_view> Words(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != line.npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

StatusOr<Host> ParseLine(const std::vector<std::string_view>& words) {
  StatusOr<Host> host = ParseHost(words[0]);
  for (size_t i = 1; host.ok() && i < words.size(); ++i) {
    if (words[i].starts_with("max_slots=") || words[i].starts_with("max-slots=")) {
      continue;  // ranks beyond the slots are dealt out anyway
    }
    const std::optional<uint64_t> slots =
        words[i].starts_with(kSlots) ? ReadSlots(words[i].substr(kSlots.size())) : std::nullopt;
    if (!slots) {
      return Refuse("'" + std::string(words[i]) + "' after a host: only slots=N may stand there");
    }
    host->slots = *slots;
  }
  return host;
}

}  // namespace

void AddHosts(const std::vector<Host>& more, std::vector<Host>* hosts) {
  for (const Host& host : more) {
    const auto same = std::find_if(hosts->begin(), hosts->end(),
                                   [&host](const Host& other) { return other.name == host.name; });
    if (same == hosts->end()) {
      hosts->push_back(host);
    } else {
      same->slots += host.slots;
    }
  }
}

StatusOr<std::vector<Host>> ParseHostList(std::string_view text) {
  std::vector<Host> hosts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const StatusOr<Host> host = ParseHost(text.substr(begin, end - begin));
    FERRY_RETURN_IF_ERROR(host.status());
    AddHosts({*host}, &hosts);
    begin = end + 1;
  }
  return hosts;
}

StatusOr<std::vector<Host>> ParseHostFile(std::string_view text, const std::string& where) {
  std::vector<Host> hosts;
  for (size_t number = 1, begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    line = line.substr(0, line.find('#'));
    begin = end + 1;
    const std::vector<std::string_view> words = Words(line);
    if (words.empty()) {
      continue;
    }
    const StatusOr<Host> host = ParseLine(words);
    if (!host.ok()) {
      return Refuse(where + ":" + std::to_string(number) + ": " + host.status().message());
    }
    AddHosts({*host}, &hosts);
  }
  return hosts.empty() ? StatusOr<std::vector<Host>>(Refuse(where + " names no host")) : hosts;
}

StatusOr<std::vector<Host>> ReadHostFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return StatusFromErrno(errno != 0 ? errno : EIO, "cannot read the host file " + path);
  }
  return ParseHostFile(text, path);
}

}  // namespace ferry::tools
