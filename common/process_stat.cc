#include "common/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <system_error>

#include "common/unique_fd.h"

namespace ferry {
namespace {

// Numbers of fields, as proc(5) counts them. The second one is the name.
constexpr int kStateField = 3;
constexpr int kParentField = 4;
constexpr int kSessionField = 6;
constexpr int kCpuField = 39;
constexpr int kHeapField = 47;

// `otherwise` where no number begins.
template <typename Number = int>
Number NumberIn(std::string_view text, Number otherwise = -1) {
  Number number = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : otherwise;
}

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
    switch (field) {
      case kParentField:
        stat.parent = NumberIn(rest);
        break;
      case kSessionField:
        stat.session = NumberIn(rest);
        break;
      case kCpuField:
        stat.cpu = NumberIn(rest);
        break;
      case kHeapField:
        stat.heap_begin = NumberIn<uint64_t>(rest, 0);
        break;
      default:
        break;
    }
    const size_t space = rest.find(' ');
    rest.remove_prefix(space == rest.npos ? rest.size() : space + 1);
  }
  stat.pid = NumberIn(text);
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
