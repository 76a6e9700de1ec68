// A rank that says what being one costs its process: how many threads, and libraries of gRPC's.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/e2e/ranks/check.h"

namespace {

namespace fs = std::filesystem;

// A new one has the program's name until it has given itself its own.
size_t Threads() {
  using Iterator = fs::directory_iterator;
  return static_cast<size_t>(std::distance(Iterator("/proc/self/task"), Iterator()));
}

std::set<std::string> LibrariesOfGrpc() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* part : {"libgrpc", "libabsl", "libprotobuf", "libcares", "libferry_control"}) {
      if (line.find(part) != std::string::npos) {
        found.insert(line.substr(line.rfind('/') + 1));
      }
    }
  }
  return found;
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::printf("rank %d: %zu threads, %zu libraries of gRPC\n", ferry_rank(), Threads(),
              LibrariesOfGrpc().size());
  CHECK_OK(ferry_finalize());
}
