#include "mpi/io/cells.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "mpi/io/coverage.h"

namespace ferry::mpi {

// ---- Cells and their owners ---------------------------------------------------------------------

Cells::Cells(const NodePlan& plan, int self)
    : nodes_(plan.nodes),
      self_(self),
      cell_bytes_(plan.stretch_bytes),
      unit_bytes_(plan.unit_bytes) {}

NodeSpan Cells::SpanIn(int64_t begin) const {
  NodeSpan all;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    if (HasBytes(node, begin)) {
      all.low = std::min(all.low, nodes_[static_cast<size_t>(node)].low);
      all.high = std::max(all.high, nodes_[static_cast<size_t>(node)].high);
    }
  }
  return {std::max(all.low, begin), std::min(all.high, begin + cell_bytes_)};
}

int64_t Cells::Next(int64_t begin) const {
  for (;;) {
    int64_t next = kNowhere;
    for (const NodeSpan& span : nodes_) {
      if (span.high > begin) {
        next = std::min(next, std::max(begin, span.low / cell_bytes_ * cell_bytes_));
      }
    }
    if (next == kNowhere || OwnerOf(next) == self_ || HasBytes(self_, next)) {
      return next;
    }
    begin = next + cell_bytes_;
  }
}

int64_t Cells::NextOwned(int64_t begin) const {
  for (begin = Next(begin); begin != kNowhere && OwnerOf(begin) != self_;) {
    begin = Next(begin + cell_bytes_);
  }
  return begin;
}

Cells::Incoming Cells::IncomingFrom(int64_t begin, int node) const {
  for (; begin != kNowhere; begin = NextOwned(begin + cell_bytes_), node = 0) {
    for (; node < static_cast<int>(nodes_.size()); ++node) {
      if (node != self_ && HasBytes(node, begin)) {
        return {begin, node};
      }
    }
  }
  return {};
}

Cells::Incoming Cells::AnswerFrom(int64_t begin) const {
  for (begin = Next(begin); begin != kNowhere && OwnerOf(begin) == self_;) {
    begin = Next(begin + cell_bytes_);
  }
  return begin == kNowhere ? Incoming() : Incoming{begin, OwnerOf(begin)};
}

int Cells::IncomingCount(int64_t begin) const {
  int count = 0;
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    count += node != self_ && HasBytes(node, begin) ? 1 : 0;
  }
  return count;
}

// ---- Messages -----------------------------------------------------------------------------------

namespace {

constexpr int64_t kMarksInWord = 64;

// The marks of eight grains, bytes of 0 or 1, as eight bits. Each mark is multiplied to the bit of
// its number in the highest byte, and no two products have a bit in common.
uint64_t EightBits(const std::byte* marks) {
  uint64_t eight = 0;
  std::memcpy(&eight, marks, sizeof(eight));
  return eight * 0x0102040810204080U >> 56;
}

// Calls run(first, count) for each run of marked grains.
template <typename Run>
void ForEachMarked(const uint64_t* words, int64_t count, Run&& run) {
  int64_t first = -1;  // of a run that has begun
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t word = words[i];
    const int64_t before = i * kMarksInWord;
    for (int at = 0; at < kMarksInWord;) {
      const uint64_t left = (first < 0 ? word : ~word) >> at;
      if (left == 0) {
        break;
      }
      at += std::countr_zero(left);
      if (first < 0) {
        first = before + at;
      } else {
        run(first, before + at - first);
        first = -1;
      }
    }
  }
  if (first >= 0) {
    run(first, count * kMarksInWord - first);
  }
}

}  // namespace

int64_t MarkWords(int64_t cell_bytes, int grain_shift) {
  return ((cell_bytes >> grain_shift) + kMarksInWord - 1) / kMarksInWord;
}

int64_t MostMessageBytes(int64_t cell_bytes) {
  return static_cast<int64_t>(sizeof(CellHeader)) +
         MarkWords(cell_bytes, 0) * static_cast<int64_t>(sizeof(uint64_t)) + cell_bytes;
}

namespace {

uint64_t* BitsOf(std::byte* message) {
  return static_cast<uint64_t*>(static_cast<void*>(message + sizeof(CellHeader)));
}

const uint64_t* BitsOf(const std::byte* message) {
  return static_cast<const uint64_t*>(static_cast<const void*>(message + sizeof(CellHeader)));
}

// The length of a message that only wishes: it has no bytes of the file.
int64_t WishBytes(int64_t words) {
  return static_cast<int64_t>(sizeof(CellHeader)) + words * static_cast<int64_t>(sizeof(uint64_t));
}

// Writes the bytes that the message's bits name, and the header. Returns the message's size.
int64_t AddBytes(CellHeader header, int64_t words, int grain_shift, const std::byte* bytes,
                 std::byte* message) {
  std::byte* const data = message + WishBytes(words);
  std::byte* to = data;
  if (bytes != nullptr) {
    ForEachMarked(BitsOf(message), words, [&](int64_t first, int64_t count) {
      const auto length = static_cast<size_t>(count << grain_shift);
      std::memcpy(to, bytes + (first << grain_shift), length);
      to += length;
    });
  }
  header.bytes = to - data;
  std::memcpy(message, &header, sizeof(header));
  return to - message;
}

// Reads the header. False: the message is none of this cell.
bool ReadHeader(const std::byte* message, int64_t message_bytes, int64_t cell_begin,
                int64_t cell_bytes, int64_t words, CellHeader* header) {
  if (message_bytes < WishBytes(words)) {
    return false;
  }
  std::memcpy(header, message, sizeof(CellHeader));
  const bool is_within = header->low >= header->high ||
                         (header->low >= cell_begin && header->high - cell_begin <= cell_bytes);
  return header->begin == cell_begin && header->bytes == message_bytes - WishBytes(words) &&
         is_within;
}

}  // namespace

int64_t PackCell(CellHeader header, int64_t cell_bytes, int grain_shift, std::byte* marks,
                 const std::byte* bytes, std::byte* message) {
  const int64_t words = MarkWords(cell_bytes, grain_shift);
  uint64_t* const bits = BitsOf(message);
  std::memset(bits, 0, static_cast<size_t>(words) * sizeof(uint64_t));
  if (header.low < header.high) {
    // The marks of a cell are a multiple of eight: it has 64 KiB at least, and grains of 4 KiB.
    const int64_t begin = (header.low - header.begin) >> grain_shift & ~int64_t{7};
    const int64_t end = (header.high - header.begin) >> grain_shift;
    for (int64_t at = begin; at < end; at += 8) {
      bits[at / kMarksInWord] |= EightBits(marks + at) << (at % kMarksInWord);
    }
    std::memset(marks + begin, 0, static_cast<size_t>(end - begin));
  }
  return AddBytes(header, words, grain_shift, bytes, message);
}

bool UnpackCell(const std::byte* message, int64_t message_bytes, int64_t cell_begin,
                int64_t cell_bytes, int grain_shift, std::byte* marks, std::byte* bytes,
                CellHeader* header) {
  const int64_t words = MarkWords(cell_bytes, grain_shift);
  if (!ReadHeader(message, message_bytes, cell_begin, cell_bytes, words, header)) {
    return false;
  }
  Coverage coverage(marks, grain_shift);
  const std::byte* from = message + WishBytes(words);
  const std::byte* const end = message + message_bytes;
  ForEachMarked(BitsOf(message), words, [&](int64_t first, int64_t count) {
    const int64_t length = count << grain_shift;
    if (length <= end - from && (first << grain_shift) + length <= cell_bytes) {
      std::memcpy(bytes + (first << grain_shift), from, static_cast<size_t>(length));
      if (marks != nullptr) {
        coverage.Mark(first << grain_shift, length);
      }
      from += length;
    }
  });
  return from == end;
}

int64_t AnswerWish(const std::byte* wish, int64_t wish_bytes, int64_t cell_begin,
                   int64_t cell_bytes, int grain_shift, int64_t end, std::byte* bytes,
                   std::byte* message) {
  const int64_t words = MarkWords(cell_bytes, grain_shift);
  CellHeader header;
  if (!ReadHeader(wish, wish_bytes, cell_begin, cell_bytes, words, &header) || header.bytes != 0) {
    return 0;
  }
  const int64_t there = std::clamp<int64_t>(end - cell_begin, 0, cell_bytes);
  // The first grain of which nothing is there.
  const int64_t grains = (there + (int64_t{1} << grain_shift) - 1) >> grain_shift;
  const int64_t zeros = std::min(grains << grain_shift, cell_bytes) - there;
  std::memset(bytes + there, 0, static_cast<size_t>(zeros));
  header.high = std::min(header.high, std::max(end, header.low));
  uint64_t* const bits = BitsOf(message);
  for (int64_t word = 0; word < words; ++word) {
    const int64_t left = std::clamp<int64_t>(grains - word * kMarksInWord, 0, kMarksInWord);
    const uint64_t kept = left == kMarksInWord ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
    bits[word] = BitsOf(wish)[word] & kept;
  }
  return AddBytes(header, words, grain_shift, bytes, message);
}

}  // namespace ferry::mpi
