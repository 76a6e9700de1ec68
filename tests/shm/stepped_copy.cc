#include "tests/shm/stepped_copy.h"

#include <cstdint>
#include <cstring>

#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

constexpr std::byte kUntouched{0};
constexpr std::byte kTaken{0xee};  // no byte that is copied is one of these two
constexpr size_t kMostBytes = 5'000;

// A piece of the destination that must change by one instruction.
struct Word {
  size_t offset;
  size_t bytes;
};

// All naturally aligned words that lie within the destination, but those that lie in longer ones.
std::vector<Word> WordsOf(size_t begin, size_t bytes) {
  std::vector<Word> words;
  const size_t end = begin + bytes;
  for (size_t at = begin; at < end;) {
    size_t width = 8;
    while (at % width != 0 || at + width > end) {
      width /= 2;
    }
    words.push_back({at, width});
    at += width;
  }
  return words;
}

struct Room {
  alignas(64) std::byte bytes[kMostBytes + 256];
};

}  // namespace

std::vector<std::byte> RowOf(size_t offset, size_t bytes) {
  std::vector<std::byte> row(offset + bytes);
  for (size_t i = 0; i < bytes; ++i) {
    row[offset + i] = ByteAt(i);
  }
  return row;
}

std::string FaultOf(const SteppedCopy& copy, const CopyPlaces& which) {
  const Shared<Room> shared;
  std::byte* const room = shared->bytes;
  const std::vector<std::byte> row = RowOf(which.from, which.bytes);
  const std::byte* const from =
      which.overlap != 0 ? room + which.to - which.overlap : row.data() + which.from;
  const auto run = [&] { copy(room + which.to, from, which.bytes); };
  run();  // all that is done once is done
  std::memset(room, 0, sizeof(shared->bytes));
  if (which.overlap != 0) {
    std::memcpy(room + which.to - which.overlap, row.data() + which.from, which.bytes);
  }
  const std::vector<std::byte> before(room, room + sizeof(shared->bytes));
  const std::vector<Word> words = WordsOf(which.to, which.bytes);
  std::vector<bool> is_taken(words.size());
  size_t missing = words.size();
  SteppedChild child(run);
  for (bool is_running = true; is_running;) {
    is_running = child.Step(1);
    for (size_t i = 0; i < words.size(); ++i) {
      const auto [offset, width] = words[i];
      size_t changed = 0;
      for (size_t at = offset; at < offset + width; ++at) {
        changed += room[at] == (is_taken[i] ? kTaken : before[at]) ? 0 : 1;
      }
      if (changed == 0) {
        continue;
      }
      const std::string word = "the word of " + std::to_string(width) + " bytes at " +
                               std::to_string(offset) + " of " + std::to_string(which.bytes) +
                               " bytes to " + std::to_string(which.to);
      if (is_taken[i]) {
        return word + " is stored twice";
      }
      if (changed != width) {
        return word + " comes in parts";
      }
      std::memset(room + offset, static_cast<int>(kTaken), width);
      is_taken[i] = true;
      --missing;
    }
  }
  return missing == 0 ? "" : std::to_string(missing) + " words have not come";
}

}  // namespace ferry::shm
