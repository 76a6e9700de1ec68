#include "client/mpi/datatype/transfer.h"

#include <cstring>

#include "client/mpi/datatype/walk.h"

namespace ferry::mpi {
namespace {

template <typename Word>
void CopyEnds(char* to, const char* from, int64_t length) {
  Word first;
  Word last;
  std::memcpy(&first, from, sizeof(Word));
  std::memcpy(&last, from + length - sizeof(Word), sizeof(Word));
  std::memcpy(to, &first, sizeof(Word));
  std::memcpy(to + length - sizeof(Word), &last, sizeof(Word));
}

struct Word16 {
  uint64_t words[2];
};

// Most layouts have runs of a few bytes, for which a call of memcpy takes longer than the copy
// itself. Two words that may overlap cover any length between one word and two.
inline void CopyRun(char* to, const char* from, int64_t length) {
  if (length > 32) {
    std::memcpy(to, from, static_cast<size_t>(length));
  } else if (length >= 16) {
    CopyEnds<Word16>(to, from, length);
  } else if (length >= 8) {
    CopyEnds<uint64_t>(to, from, length);
  } else if (length >= 4) {
    CopyEnds<uint32_t>(to, from, length);
  } else if (length >= 2) {
    CopyEnds<uint16_t>(to, from, length);
  } else if (length == 1) {
    *to = *from;
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

// The same for runs within loops that know few lengths: each length then has its own jump, which
// the processor foresees.
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

struct PackSink {
  const char* buffer;
  char* packed;

  void Run(int64_t displacement, int64_t length) {
    CopyRun(packed, At(buffer, displacement), length);
    packed += length;
  }
  void Strided(int64_t displacement, int64_t stride, int64_t length, int64_t count) {
    CopyRuns(packed, length, At(buffer, displacement), stride, length, count);
    packed += length * count;
  }
  void Repeated(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count) {
    char* to = packed;
    ForEachMember(displacement, stride, group, count, [&](int64_t at, int64_t length) {
      CopyMember(to, At(buffer, at), length);
      to += length;
    });
    packed = to;
  }
};

struct UnpackSink {
  char* buffer;
  const char* packed;

  void Run(int64_t displacement, int64_t length) {
    CopyRun(At(buffer, displacement), packed, length);
    packed += length;
  }
  void Strided(int64_t displacement, int64_t stride, int64_t length, int64_t count) {
    CopyRuns(At(buffer, displacement), stride, packed, length, length, count);
    packed += length * count;
  }
  void Repeated(int64_t displacement, int64_t stride, const RunGroup& group, int64_t count) {
    const char* from = packed;
    ForEachMember(displacement, stride, group, count, [&](int64_t at, int64_t length) {
      CopyMember(At(buffer, at), from, length);
      from += length;
    });
    packed = from;
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
  PackSink sink{static_cast<const char*>(buffer), static_cast<char*>(packed)};
  Walk(sink, layout, offset, bytes);
}

void UnpackLayout(const LayoutNode& layout, void* buffer, int64_t offset, int64_t bytes,
                  const void* packed) {
  UnpackSink sink{static_cast<char*>(buffer), static_cast<const char*>(packed)};
  Walk(sink, layout, offset, bytes);
}

void ForEachLayoutRun(const LayoutNode& layout, int64_t offset, int64_t bytes, LayoutRun run,
                      void* context) {
  RunSink sink(run, context);
  Walk(sink, layout, offset, bytes);
  sink.Flush();
}

}  // namespace ferry::mpi
