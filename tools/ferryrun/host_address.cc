#include "tools/ferryrun/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "config/environment.h"

namespace ferry::tools {
namespace {

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
    const char* end = text.data() + text.size();
    size_t bits = 0;
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc() || stop != end || bits > network.bits) {
      return std::nullopt;
    }
    network.bits = bits;
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
