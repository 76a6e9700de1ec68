#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "mpi/datatype/layout.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

// ---- Going through a layout ---------------------------------------------------------------------

struct RunGroup {
  static constexpr int64_t kMost = 8;
  std::array<int64_t, kMost> displacements;
  std::array<int64_t, kMost> lengths;
  int64_t runs;

  explicit RunGroup(const LayoutNode& blocks) : runs(blocks.count) {
    for (int64_t i = 0; i < runs; ++i) {
      displacements[static_cast<size_t>(i)] = blocks.blocks[i].displacement;
      lengths[static_cast<size_t>(i)] = blocks.BlockLength(i);
    }
  }
};

// Goes through the runs of bytes of a layout in packed order, from any packed byte to any other:
// finding the first one takes a division or a binary search for each level of the tree.
//
// A Sink has:
//   void Run(int64_t displacement, int64_t length);        one run, in memory
//   void Strided(int64_t displacement, int64_t stride, int64_t length, int64_t count);
//   void Repeated(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count);
// so that it can move regular runs, and regular groups of a few runs (the members of a structure),
// in loops of its own. Displacements count from the buffer.
template <typename Sink>
class LayoutWalk {
 public:
  explicit LayoutWalk(Sink& sink) : sink_(sink) {}

  void All(const LayoutNode& node, int64_t base) {
    base += node.offset;
    switch (node.kind) {
      case LayoutNode::Kind::kBlock:
        if (node.size > 0) {
          sink_.Run(base, node.size);
        }
        break;
      case LayoutNode::Kind::kLoop:
        Iterations(node, base, 0, node.count);
        break;
      case LayoutNode::Kind::kBlocks:
        Blocks(node, base, 0, node.count);
        break;
      case LayoutNode::Kind::kList:
        for (int64_t i = 0; i < node.count; ++i) {
          All(node.body[i], base);
        }
        break;
    }
  }

  // Goes through the node's packed bytes [begin, end), which lies in [0, node.size].
  void Part(const LayoutNode& node, int64_t base, int64_t begin, int64_t end) {
    if (begin >= end) {
      return;
    }
    if (begin == 0 && end == node.size) {
      All(node, base);
      return;
    }
    base += node.offset;
    switch (node.kind) {
      case LayoutNode::Kind::kBlock:
        sink_.Run(base + begin, end - begin);
        break;
      case LayoutNode::Kind::kLoop:
        PartOfLoop(node, base, begin, end);
        break;
      case LayoutNode::Kind::kBlocks:
        PartOfBlocks(node, base, begin, end);
        break;
      case LayoutNode::Kind::kList:
        PartOfList(node, base, begin, end);
        break;
    }
  }

 private:
  // Iterations [first, last) of a loop, whole; one at least. (What lies behind the last iteration
  // may have no displacement that is a number.)
  void Iterations(const LayoutNode& loop, int64_t base, int64_t first, int64_t last) {
    const LayoutNode& body = *loop.body;
    base += first * loop.stride;
    if (body.IsBlock()) {
      sink_.Strided(base + body.offset, loop.stride, body.size, last - first);
      return;
    }
    if (body.kind == LayoutNode::Kind::kBlocks && body.count <= RunGroup::kMost) {
      Groups(RunGroup(body), base + body.offset, loop.stride, last - first);
      return;
    }
    for (int64_t i = 0; i < last - first; ++i) {
      All(body, base + i * loop.stride);
    }
  }

  void Groups(const RunGroup& group, int64_t base, int64_t stride, int64_t count) {
    const auto& [displacements, lengths, runs] = group;
    // Structures with one gap: the end of each and the beginning of the next are one run.
    if (runs == 2 && count > 1 && displacements[1] + lengths[1] == displacements[0] + stride) {
      sink_.Run(base + displacements[0], lengths[0]);
      sink_.Strided(base + displacements[1], stride, lengths[1] + lengths[0], count - 1);
      sink_.Run(base + (count - 1) * stride + displacements[1], lengths[1]);
      return;
    }
    sink_.Repeated(base, stride, group, count);
  }

  // A sink's code for a run is short for a length that the compiler knows.
  template <int64_t kLength>
  void EqualBlocks(const LayoutNode& node, int64_t base, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      sink_.Run(base + node.blocks[i].displacement, kLength);
    }
  }
  void Blocks(const LayoutNode& node, int64_t base, int64_t first, int64_t last) {
    switch (node.stride) {
      case 4:
        return EqualBlocks<4>(node, base, first, last);
      case 8:
        return EqualBlocks<8>(node, base, first, last);
      case 16:
        return EqualBlocks<16>(node, base, first, last);
      default:
        for (int64_t i = first; i < last; ++i) {
          sink_.Run(base + node.blocks[i].displacement, node.BlockLength(i));
        }
    }
  }

  void PartOfLoop(const LayoutNode& node, int64_t base, int64_t begin, int64_t end) {
    const int64_t size = node.body->size;
    int64_t first = begin / size;
    const int64_t last = end / size;
    const int64_t head = begin - first * size;
    const int64_t tail = end - last * size;
    if (first == last) {
      Part(*node.body, base + first * node.stride, head, tail);
      return;
    }
    if (head > 0) {
      Part(*node.body, base + first * node.stride, head, size);
      ++first;
    }
    if (first < last) {
      Iterations(node, base, first, last);
    }
    if (tail > 0) {
      Part(*node.body, base + last * node.stride, 0, tail);
    }
  }

  // The block that has the packed byte `at`, which is less than the node's size.
  static int64_t FindBlock(const LayoutNode& node, int64_t at) {
    if (node.stride != 0) {
      return at / node.stride;
    }
    const LayoutBlock* const after =
        std::upper_bound(node.blocks, node.blocks + node.count, at,
                         [](int64_t x, const LayoutBlock& block) { return x < block.begin; });
    return after - node.blocks - 1;
  }

  void PartOfBlocks(const LayoutNode& node, int64_t base, int64_t begin, int64_t end) {
    const auto run = [&](int64_t i) {
      const LayoutBlock& block = node.blocks[i];
      const int64_t from = std::max<int64_t>(begin - block.begin, 0);
      const int64_t to = std::min(end - block.begin, node.BlockLength(i));
      sink_.Run(base + block.displacement + from, to - from);
    };
    const int64_t first = FindBlock(node, begin);
    const int64_t last = FindBlock(node, end - 1);
    run(first);
    if (last > first) {
      Blocks(node, base, first + 1, last);
      run(last);
    }
  }

  void PartOfList(const LayoutNode& node, int64_t base, int64_t begin, int64_t end) {
    int64_t i = std::upper_bound(node.begins, node.begins + node.count, begin) - node.begins - 1;
    for (; i < node.count && node.begins[i] < end; ++i) {
      const int64_t from = std::max<int64_t>(begin - node.begins[i], 0);
      const int64_t to = std::min(end - node.begins[i], node.body[i].size);
      Part(node.body[i], base, from, to);
    }
  }

  Sink& sink_;
};

// ---- Copying ------------------------------------------------------------------------------------

// Windows lie here, too: so no byte is stored twice, and elements are stored whole, as programs
// want to see words for which they wait (shm/word_copy.h). A memcpy of a length that the compiler
// knows is one move, or several side by side.

template <int64_t kLength>
inline void MoveNext(char** to, const char** from) {
  std::memcpy(*to, *from, kLength);
  *to += kLength;
  *from += kLength;
}

// Most layouts have runs of a few words, for which a call takes longer than the copy itself, and
// which begin at multiples of what their elements need.
inline void CopyRun(char* to, const char* from, int64_t length) {
  if (length > 32 || length % 4 != 0) {
    return shm::CopyWords(to, from, static_cast<size_t>(length));
  }
  if ((length & 32) != 0) {
    MoveNext<32>(&to, &from);
  }
  if ((length & 16) != 0) {
    MoveNext<16>(&to, &from);
  }
  if ((length & 8) != 0) {
    MoveNext<8>(&to, &from);
  }
  if ((length & 4) != 0) {
    MoveNext<4>(&to, &from);
  }
}

template <int64_t kLength>
void CopyStrided(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                 int64_t count) {
  for (; count >= 4; count -= 4) {
    std::memcpy(to, from, kLength);
    std::memcpy(to + to_stride, from + from_stride, kLength);
    std::memcpy(to + 2 * to_stride, from + 2 * from_stride, kLength);
    std::memcpy(to + 3 * to_stride, from + 3 * from_stride, kLength);
    to += 4 * to_stride;
    from += 4 * from_stride;
  }
  for (; count > 0; --count, to += to_stride, from += from_stride) {
    std::memcpy(to, from, kLength);
  }
}

void CopyRuns(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t length,
              int64_t count) {
  switch (length) {
    case 1:
      return CopyStrided<1>(to, to_stride, from, from_stride, count);
    case 2:
      return CopyStrided<2>(to, to_stride, from, from_stride, count);
    case 4:
      return CopyStrided<4>(to, to_stride, from, from_stride, count);
    case 8:
      return CopyStrided<8>(to, to_stride, from, from_stride, count);
    case 12:
      return CopyStrided<12>(to, to_stride, from, from_stride, count);
    case 16:
      return CopyStrided<16>(to, to_stride, from, from_stride, count);
    case 24:
      return CopyStrided<24>(to, to_stride, from, from_stride, count);
    case 32:
      return CopyStrided<32>(to, to_stride, from, from_stride, count);
    case 64:
      return CopyStrided<64>(to, to_stride, from, from_stride, count);
    default:
      for (; count > 0; --count, to += to_stride, from += from_stride) {
        CopyRun(to, from, length);
      }
  }
}

// Copies a run within loops of few lengths: each length then has its own jump, which the processor
// foresees.
inline void CopyMember(char* to, const char* from, int64_t length) {
  switch (length) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      CopyRun(to, from, length);
  }
}

// Addresses are computed as integers: a buffer may be null.
template <typename Byte>
Byte* At(Byte* buffer, int64_t displacement) {
  return reinterpret_cast<Byte*>(reinterpret_cast<intptr_t>(buffer) + displacement);
}

// copy(displacement, run of the group) for each run of `count` groups.
template <typename Copy>
void ForEachMember(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count,
                   Copy&& copy) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t base = displacement + i * stride;
    for (size_t run = 0; run < static_cast<size_t>(group.runs); ++run) {
      copy(base + group.displacements[run], group.lengths[run]);
    }
  }
}

// Packs, or unpacks, what it is told of.
template <bool kPacks>
struct CopySink {
  std::conditional_t<kPacks, const char, char>* buffer;
  std::conditional_t<kPacks, char, const char>* packed;

  void Run(int64_t displacement, int64_t length) {
    if constexpr (kPacks) {
      CopyRun(packed, At(buffer, displacement), length);
    } else {
      CopyRun(At(buffer, displacement), packed, length);
    }
    packed += length;
  }
  void Strided(int64_t displacement, int64_t stride, int64_t length, int64_t count) {
    if constexpr (kPacks) {
      CopyRuns(packed, length, At(buffer, displacement), stride, length, count);
    } else {
      CopyRuns(At(buffer, displacement), stride, packed, length, length, count);
    }
    packed += length * count;
  }
  void Repeated(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count) {
    auto* next = packed;
    ForEachMember(displacement, stride, group, count, [&](int64_t at, int64_t length) {
      if constexpr (kPacks) {
        CopyMember(next, At(buffer, at), length);
      } else {
        CopyMember(At(buffer, at), next, length);
      }
      next += length;
    });
    packed = next;
  }
};

class RunSink {
 public:
  RunSink(LayoutRun run, void* context) : run_(run), context_(context) {}
  void Run(int64_t displacement, int64_t length) {
    if (displacement == displacement_ + length_) {
      length_ += length;
      return;
    }
    Flush();
    displacement_ = displacement;
    length_ = length;
  }
  void Strided(int64_t displacement, int64_t stride, int64_t length, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      Run(displacement + i * stride, length);
    }
  }
  void Repeated(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count) {
    ForEachMember(displacement, stride, group, count,
                  [&](int64_t at, int64_t length) { Run(at, length); });
  }
  void Flush() {
    if (length_ > 0) {
      run_(context_, displacement_, length_);
    }
  }

 private:
  LayoutRun run_;
  void* context_;
  int64_t displacement_ = 0;
  int64_t length_ = 0;
};

template <typename Sink>
void Walk(Sink& sink, const LayoutNode& layout, int64_t offset, int64_t bytes) {
  LayoutWalk<Sink>(sink).Part(layout, 0, offset, offset + bytes);
}

}  // namespace

void PackLayout(const LayoutNode& layout, const void* buffer, int64_t offset, int64_t bytes,
                void* packed) {
  CopySink<true> sink{static_cast<const char*>(buffer), static_cast<char*>(packed)};
  Walk(sink, layout, offset, bytes);
}

void UnpackLayout(const LayoutNode& layout, void* buffer, int64_t offset, int64_t bytes,
                  const void* packed) {
  CopySink<false> sink{static_cast<char*>(buffer), static_cast<const char*>(packed)};
  Walk(sink, layout, offset, bytes);
}

void ForEachLayoutRun(const LayoutNode& layout, int64_t offset, int64_t bytes, LayoutRun run,
                      void* context) {
  RunSink sink(run, context);
  Walk(sink, layout, offset, bytes);
  sink.Flush();
}

}  // namespace ferry::mpi
