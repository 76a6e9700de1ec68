#include "common/topology/claims.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "common/number_text.h"

namespace ferry::topology {
namespace {

constexpr std::string_view kPrefix = "ferry-cpu-";

}  // namespace

CpuSet CpuClaims::Current() {
  CpuSet cpus;
  std::ifstream sockets("/proc/self/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::string text = " @" + std::string(kPrefix);  // an abstract name, as it is shown
    const size_t at = line.find(text);
    if (at == line.npos) {
      continue;
    }
    const auto cpu = NumberIn<uint32_t>(std::string_view(line).substr(at + text.size()));
    if (cpu && *cpu < kMaxCpus) {
      cpus.Add(*cpu);
    }
  }
  return cpus;
}

std::optional<uint32_t> CpuClaims::Claim(const CpuSet& cpus) {
  const size_t before = sockets_.size();
  // In their order, so that of two that want the same ones the first gets them all.
  for (const uint32_t cpu : cpus.Cpus()) {
    const std::string name = std::string(kPrefix) + std::to_string(cpu);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() ||
        bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      sockets_.resize(before);
      return cpu;
    }
    sockets_.push_back(std::move(socket));
  }
  return std::nullopt;
}

}  // namespace ferry::topology
