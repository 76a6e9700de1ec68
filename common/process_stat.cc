#include "common/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "common/number_text.h"
#include "common/unique_fd.h"

namespace ferry {
namespace {

// Numbers of fields, as proc(5) counts them. The second one is the name.
constexpr int kStateField = 3;
constexpr int kParentField = 4;
constexpr int kSessionField = 6;
constexpr int kCpuField = 39;
constexpr int kHeapField = 47;

}  // namespace

ProcessStat ParseProcessStat(std::string_view text) {
  ProcessStat stat;
  const size_t name_end = text.rfind(") ");  // the name before it may hold anything
  if (name_end == text.npos || name_end + 2 >= text.size()) {
    return stat;
  }
  std::string_view rest = text.substr(name_end + 2);
  stat.state = rest.front();
  for (int field = kStateField; field <= kHeapField; ++field) {
    const size_t length = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, length);
    switch (field) {
      case kParentField:
        stat.parent = NumberIn<int>(word).value_or(-1);
        break;
      case kSessionField:
        stat.session = NumberIn<int>(word).value_or(-1);
        break;
      case kCpuField:
        stat.cpu = NumberIn<int>(word).value_or(-1);
        break;
      case kHeapField:
        stat.heap_begin = NumberIn<uint64_t>(word).value_or(0);
        break;
      default:
        break;
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  stat.pid = NumberIn<int>(text.substr(0, text.find(' '))).value_or(-1);
  return stat;
}

ProcessStat ReadProcessStat(const std::string& folder) {
  const UniqueFd file(open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;  // up to the heap it is 700 bytes at most
  const ssize_t size = file.valid() ? read(file.get(), text.data(), text.size()) : 0;
  return ParseProcessStat({text.data(), size > 0 ? static_cast<size_t>(size) : 0});
}

ProcessStat ReadProcessStat(pid_t pid) { return ReadProcessStat("/proc/" + std::to_string(pid)); }

}  // namespace ferry
