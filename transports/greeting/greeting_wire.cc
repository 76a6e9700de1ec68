#include "transports/greeting/greeting_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ferry::transport {
namespace {

// FNV-1a: the same for all builds.
uint32_t TagOf(const std::string& provider) {
  uint32_t hash = 2'166'136'261U;
  for (const char letter : provider) {
    hash = (hash ^ static_cast<uint8_t>(letter)) * 16'777'619U;
  }
  return hash ^ kGreetingMagic;
}

constexpr size_t kAheadBytes = sizeof(uint32_t) + sizeof(Secret);

}  // namespace

std::vector<std::byte> WriteGreetingAddress(const std::string& provider, const Secret& secret,
                                            std::span<const std::byte> below) {
  std::vector<std::byte> bytes(kAheadBytes + below.size());
  const uint32_t tag = TagOf(provider);
  std::memcpy(bytes.data(), &tag, sizeof(tag));
  std::copy(secret.begin(), secret.end(), bytes.begin() + sizeof(tag));
  std::copy(below.begin(), below.end(), bytes.begin() + kAheadBytes);
  return bytes;
}

std::optional<GreetingAddress> ReadGreetingAddress(const std::string& provider,
                                                   std::span<const std::byte> bytes) {
  uint32_t tag = 0;
  if (bytes.size() <= kAheadBytes || bytes.size() > kGreetingAddressBytes) {
    return std::nullopt;
  }
  std::memcpy(&tag, bytes.data(), sizeof(tag));
  if (tag != TagOf(provider)) {
    return std::nullopt;
  }
  GreetingAddress address;
  std::memcpy(address.secret.data(), bytes.data() + sizeof(tag), sizeof(address.secret));
  address.below = bytes.subspan(kAheadBytes);
  return address;
}

std::string GreetingAddressText(std::span<const std::byte> below) {
  sockaddr_storage address{};
  std::memcpy(&address, below.data(), std::min(below.size(), sizeof(address)));
  char ip[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET && below.size() == sizeof(sockaddr_in)) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip));
    return std::string(ip) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (address.ss_family == AF_INET6 && below.size() == sizeof(sockaddr_in6)) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip));
    return "[" + std::string(ip) + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  std::string text = "address ";
  for (const std::byte byte : below) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

Secret GreetingProof(const Secret& secret, uint64_t asked_nonce, GreetingBody body) {
  struct {
    uint64_t asked_nonce;
    GreetingBody body;
  } said{asked_nonce, body};
  static_assert(sizeof(said) == sizeof(uint64_t) + sizeof(body));
  said.body.proof = {};
  return SipHash(secret, std::as_bytes(std::span(&said, 1)));
}

Status DrawRandom(std::span<std::byte> bytes) {
  return getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())
             ? Status()
             : StatusFromErrno(errno, "getrandom");
}

}  // namespace ferry::transport
