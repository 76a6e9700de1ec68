#include "tools/ferryrun/hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "common/number_text.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kMaxSlots = 999'999'999;
constexpr std::string_view kSlots = "slots=";

Status Refuse(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::optional<uint64_t> ReadSlots(std::string_view text) {
  const std::optional<uint64_t> slots = NumberIn<uint64_t>(text);
  return slots && *slots >= 1 && *slots <= kMaxSlots ? slots : std::nullopt;
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
  if (!IsHostName(host.name)) {
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

// An address as the bytes that networks compare: 4 or 16 of them.
std::optional<std::vector<uint8_t>> Bytes(const std::string& text) {
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) {
    return std::vector<uint8_t>(bytes.begin(), bytes.begin() + 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) {
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  }
  return std::nullopt;
}

bool SameBits(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, size_t bits) {
  for (size_t i = 0; i < bits; ++i) {
    if (((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

struct Network {
  std::vector<uint8_t> bytes;
  size_t bits = 0;
};

// "10.0.0.0/24", or an address, which is a network of one.
std::optional<Network> ParseNetwork(const std::string& text) {
  const size_t slash = text.find('/');
  const auto bytes = Bytes(text.substr(0, slash));
  if (!bytes) {
    return std::nullopt;
  }
  Network network{*bytes, bytes->size() * 8};
  if (slash != text.npos) {
    const auto bits = NumberIn<size_t>(std::string_view(text).substr(slash + 1));
    if (!bits || *bits > network.bits) {
      return std::nullopt;
    }
    network.bits = *bits;
  }
  return network;
}

std::string TextOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
              sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&ip)) {
      return "";  // means nothing without an interface, which is another one on each host
    }
    inet_ntop(AF_INET6, &ip, text, sizeof(text));
  }
  return text;
}

std::string Listed(const std::vector<OwnAddress>& addresses) {
  std::string text;
  for (const OwnAddress& address : addresses) {
    if (!address.loopback) {
      text += (text.empty() ? "" : ", ") + address.text + " (" + address.interface + ")";
    }
  }
  return text.empty() ? "none" : text;
}

StatusOr<std::string> InNetwork(const AddressQuestion& question) {
  const std::optional<Network> network = ParseNetwork(question.network);
  for (const OwnAddress& address : question.addresses) {
    const auto bytes = Bytes(address.text);
    if (network ? bytes && bytes->size() == network->bytes.size() &&
                      SameBits(*bytes, network->bytes, network->bits)
                : address.interface == question.network) {
      return address.text;
    }
  }
  if (!network && question.network.find('/') != std::string::npos) {
    return Status(ErrorCode::kInvalidArgument,
                  "--network " + question.network +
                      " is neither an interface nor a network such as 10.0.0.0/24");
  }
  return Status(ErrorCode::kNotFound, "no address in --network " + question.network +
                                          "; there is: " + Listed(question.addresses));
}

}  // namespace

bool IsHostName(std::string_view name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '@' || c == '%';
  });
}

bool AreSameHost(const std::string& a, const std::string& b) {
  const auto first_label = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const bool has_domains = a.find('.') != a.npos && b.find('.') != b.npos;
  return a == b || (!has_domains && first_label(a) == first_label(b));
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != line.npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

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
    const std::vector<std::string_view> words = WordsOf(line);
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

StatusOr<std::vector<OwnAddress>> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return StatusFromErrno(errno, "cannot list this host's addresses");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<OwnAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && (entry->ifa_flags & IFF_UP) != 0) {
      if (std::string text = TextOf(entry->ifa_addr); !text.empty()) {
        addresses.push_back(
            {entry->ifa_name, std::move(text), (entry->ifa_flags & IFF_LOOPBACK) != 0});
      }
    }
  }
  return addresses;
}

std::string DefaultInterface() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string interface;
    std::string destination;
    if (fields >> interface >> destination && destination == "00000000") {
      return interface;
    }
  }
  return "";
}

std::vector<std::string> Resolve(const std::string& name) {
  std::vector<std::string> addresses;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &list) == 0) {
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      addresses.push_back(TextOf(entry->ai_addr));
    }
  }
  return addresses;
}

bool IsThisHost(const std::string& name) {
  const std::string own = config::HostName();
  if (name == "localhost" || name == own || name == own.substr(0, own.find('.'))) {
    return true;
  }
  const StatusOr<std::vector<OwnAddress>> addresses = OwnAddresses();
  const std::vector<std::string> named = Resolve(name);
  return addresses.ok() &&
         std::any_of(addresses->begin(), addresses->end(), [&named](const OwnAddress& address) {
           return std::find(named.begin(), named.end(), address.text) != named.end();
         });
}

StatusOr<std::string> ChooseAddress(const AddressQuestion& question) {
  if (!question.network.empty()) {
    return InNetwork(question);
  }
  std::vector<OwnAddress> usable;
  for (const OwnAddress& address : question.addresses) {
    if (!address.loopback) {
      usable.push_back(address);
    }
  }
  for (const OwnAddress& address : usable) {
    if (std::find(question.named.begin(), question.named.end(), address.text) !=
        question.named.end()) {
      return address.text;
    }
  }
  for (const OwnAddress& address : usable) {
    if (address.interface == question.default_interface) {
      return address.text;
    }
  }
  if (usable.size() == 1) {
    return usable[0].text;
  }
  if (usable.empty()) {
    return Status(ErrorCode::kNotFound, "no address by which other hosts could reach it");
  }
  return Status(ErrorCode::kInvalidArgument,
                "several addresses, " + Listed(usable) + ": name the network with --network");
}

StatusOr<std::string> AddressOfThisHost(const std::string& name, const std::string& network) {
  StatusOr<std::vector<OwnAddress>> addresses = OwnAddresses();
  FERRY_RETURN_IF_ERROR(addresses.status());
  return ChooseAddress({.network = network,
                        .named = network.empty() ? Resolve(name.substr(name.find('@') + 1))
                                                 : std::vector<std::string>(),
                        .default_interface = DefaultInterface(),
                        .addresses = std::move(*addresses)});
}

}  // namespace ferry::tools
