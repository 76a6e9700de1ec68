// The memory that Ferry has mapped into this process, by the names of its memfds: what a rank that
// means harm finds there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace ferry::ranks {

struct Area {
  uint8_t* base;
  size_t size_bytes;
};

// The mappings of memfds whose name holds `name`.
inline std::vector<Area> Mapped(const std::string& name) {
  std::vector<Area> areas;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    if (line.find("/memfd:" + name) != std::string::npos &&
        std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2) {
      areas.push_back({reinterpret_cast<uint8_t*>(from), to - from});
    }
  }
  return areas;
}

}  // namespace ferry::ranks
