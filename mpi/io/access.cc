#include "mpi/io/access.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "mpi/io/range_lock.h"

namespace ferry::mpi {
namespace {

// To read over a gap of so many bytes takes less time than another system call. On other file
// systems than those of the machine itself a longer read pays even where the bytes are not wanted.
constexpr int64_t kMostLocalGap = 2 << 10;
constexpr int64_t kMostGap = 16 << 10;
// Longer pieces are read straight to their places.
constexpr int64_t kMostSievedPiece = 64 << 10;
// Of which a system call each would be made otherwise.
constexpr size_t kMostPieces = 16 << 10;
// Pieces from this length on are cheaper to read straight to their places, by a call for so many of
// them, than to copy.
constexpr int64_t kScatteredPiece = 128;
constexpr size_t kMostScattered = 512;
constexpr int64_t kLeastBuffer = 64 << 10;
constexpr int64_t kMostBuffer = 64 << 20;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

Failure Allocate(int64_t bytes, Memory* memory) {
  memory->reset(static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes))));
  return *memory ? Failure()
                 : Failure{MPI_ERR_NO_MEM, "no memory for a buffer of " + std::to_string(bytes) +
                                               " bytes between the file and the data"};
}

// Reads pieces of a file to places in memory; those that lie near each other by one system call.
class Sieve {
 public:
  Sieve(const PosixFile& file, const AccessWays& ways)
      : file_(file), most_bytes_(ways.buffer_bytes), gap_bytes_(ways.gap_bytes) {}

  // Adds a piece; what comes behind the first one that is cut short does not count any more.
  void Add(int64_t place, std::byte* to, int64_t length) {
    if (is_over()) {
      return;
    }
    const bool is_near = !pieces_.empty() && place >= end_ && place - end_ <= gap_bytes_ &&
                         length <= kMostSievedPiece && pieces_.back().length <= kMostSievedPiece &&
                         place + length - pieces_.front().place <= most_bytes_ &&
                         pieces_.size() < MostPieces();
    if (!is_near) {
      Read();
    }
    pieces_.push_back({place, to, length});
    end_ = place + length;
  }
  // Reads what was added. *moved: the bytes up to the first one that is not there.
  Failure Finish(int64_t* moved) {
    Read();
    *moved = moved_;
    return failure_;
  }
  bool is_over() const { return is_short_ || !failure_.ok(); }

 private:
  struct Piece {
    int64_t place;
    std::byte* to;
    int64_t length;
  };

  bool IsScattered() const { return pieces_.front().length >= kScatteredPiece; }
  size_t MostPieces() const { return IsScattered() ? kMostScattered : kMostPieces; }

  void Read() {
    if (pieces_.empty() || is_over()) {
      return;
    }
    const Piece& first = pieces_.front();
    int64_t got = 0;
    if (pieces_.size() == 1) {
      failure_ = file_.ReadAt(first.place, first.to, first.length, &got);
    } else if (IsScattered()) {
      got = ReadScattered();
    } else {
      got = ReadAndCopy();
    }
    Count(first.place + got);
    pieces_.clear();
  }

  // `end`: where the bytes end that are there.
  void Count(int64_t end) {
    for (const Piece& piece : pieces_) {
      const int64_t there = std::clamp(end - piece.place, int64_t{0}, piece.length);
      moved_ += there;
      if (there < piece.length) {
        is_short_ = true;
        return;
      }
    }
  }

  // The bytes of the gaps go to memory that is not looked at.
  int64_t ReadScattered() {
    std::array<iovec, 2 * kMostScattered> places;
    if (!gap_) {
      failure_ = Allocate(std::max<int64_t>(gap_bytes_, 1), &gap_);
    }
    if (!failure_.ok()) {
      return 0;
    }
    size_t count = 0;
    int64_t at = pieces_.front().place;
    for (const Piece& piece : pieces_) {
      if (piece.place > at) {
        places[count++] = {gap_.get(), static_cast<size_t>(piece.place - at)};
      }
      places[count++] = {piece.to, static_cast<size_t>(piece.length)};
      at = piece.place + piece.length;
    }
    int64_t got = 0;
    failure_ = file_.ReadScattered(pieces_.front().place, std::span(places).first(count), &got);
    return got;
  }

  int64_t ReadAndCopy() {
    if (!memory_) {
      failure_ = Allocate(most_bytes_, &memory_);
    }
    if (!failure_.ok()) {
      return 0;
    }
    const int64_t begin = pieces_.front().place;
    int64_t got = 0;
    failure_ = file_.ReadAt(begin, memory_.get(), end_ - begin, &got);
    for (const Piece& piece : pieces_) {
      const int64_t there = std::clamp(begin + got - piece.place, int64_t{0}, piece.length);
      std::memcpy(piece.to, memory_.get() + (piece.place - begin), static_cast<size_t>(there));
    }
    return got;
  }

  const PosixFile& file_;
  const int64_t most_bytes_;
  const int64_t gap_bytes_;
  std::vector<Piece> pieces_;
  int64_t end_ = 0;  // of the last piece
  Memory memory_;
  Memory gap_;
  int64_t moved_ = 0;
  bool is_short_ = false;
  Failure failure_;
};

Failure ReadPacked(const PosixFile& file, const AccessWays& ways, const View& view,
                   int64_t position, std::byte* packed, int64_t bytes, int64_t* moved) {
  Sieve sieve(file, ways);
  view.ForEachPiece(position, bytes, [&](int64_t place, int64_t length) {
    sieve.Add(place, packed, length);
    packed += length;
  });
  return sieve.Finish(moved);
}

Failure WritePacked(const PosixFile& file, const View& view, int64_t position,
                    const std::byte* packed, int64_t bytes, int64_t* moved) {
  Failure failure;
  view.ForEachPiece(position, bytes, [&](int64_t place, int64_t length) {
    if (failure.ok()) {
      int64_t now = 0;
      failure = file.WriteAt(place, packed, length, &now);
      packed += length;
      *moved += now;
    }
  });
  return failure;
}

// Calls move(packed, offset, bytes, &moved) for parts of the payload, one after the other, until
// one is cut short; straight for the program's memory where it is one run that the host reaches.
template <typename Move>
Failure InParts(const Access& access, int64_t buffer_bytes, int64_t* moved, Move&& move) {
  *moved = 0;
  const Payload& payload = access.payload;
  const int64_t bytes = access.bytes();
  if (bytes == 0) {
    return {};
  }
  if (payload.is_dense() && !payload.IsByStream()) {
    return move(static_cast<std::byte*>(payload.data()), 0, bytes, moved);
  }
  Memory memory;
  const int64_t most = std::min(bytes, buffer_bytes);
  FERRY_RETURN_FAILURE(Allocate(most, &memory));
  while (*moved < bytes) {
    const int64_t part = std::min(bytes - *moved, most);
    if (access.is_write) {
      FERRY_RETURN_FAILURE(payload.CopyOut(memory.get(), *moved, part));
    }
    int64_t now = 0;
    Failure failure = move(memory.get(), *moved, part, &now);
    if (!access.is_write) {
      const Failure copied = payload.CopyIn(memory.get(), *moved, now);
      failure = failure.ok() ? copied : failure;
    }
    *moved += now;
    if (!failure.ok() || now < part) {
      return failure;
    }
  }
  return {};
}

}  // namespace

AccessWays WaysOf(const Hints& hints, bool is_write, bool is_local) {
  const int64_t wanted = is_write ? hints.write_buffer_size() : hints.read_buffer_size();
  const bool sieves = hints.sieve_reads() != Switch::kDisable;
  return {std::clamp(wanted, kLeastBuffer, kMostBuffer), !sieves    ? 0
                                                         : is_local ? kMostLocalGap
                                                                    : kMostGap};
}

Failure CarryPacked(const PosixFile& file, const AccessWays& ways, const View& view,
                    int64_t position, std::byte* packed, int64_t bytes, bool is_write,
                    int64_t* moved) {
  *moved = 0;
  return is_write ? WritePacked(file, view, position, packed, bytes, moved)
                  : ReadPacked(file, ways, view, position, packed, bytes, moved);
}

Failure Carry(const PosixFile& file, const AccessWays& ways, const Access& access, int64_t* moved) {
  return InParts(access, ways.buffer_bytes, moved,
                 [&](std::byte* packed, int64_t offset, int64_t bytes, int64_t* now) {
                   return CarryPacked(file, ways, *access.view, access.position + offset, packed,
                                      bytes, access.is_write, now);
                 });
}

Failure CarryNext(const PosixFile& file, const AccessWays& ways, const Access& access,
                  int64_t* moved) {
  return InParts(access, ways.buffer_bytes, moved,
                 [&](std::byte* packed, int64_t /*offset*/, int64_t bytes, int64_t* now) {
                   return access.is_write ? file.WriteNext(packed, bytes, now)
                                          : file.ReadNext(packed, bytes, now);
                 });
}

namespace {

// Moves data that are converted on their way. *moved: bytes of memory.
Failure CarryConverted(const PosixFile& file, const AccessWays& ways, const Access& access,
                       int64_t* moved) {
  const int64_t bytes = access.bytes();
  Memory data;
  FERRY_RETURN_FAILURE(Allocate(std::max<int64_t>(bytes, 1), &data));
  if (access.is_write) {
    FERRY_RETURN_FAILURE(ConvertForFile(access.conversion, access.payload, data.get()));
  }
  int64_t now = 0;
  const Failure failure = !file.is_stream() ? CarryPacked(file, ways, *access.view, access.position,
                                                          data.get(), bytes, access.is_write, &now)
                          : access.is_write ? file.WriteNext(data.get(), bytes, &now)
                                            : file.ReadNext(data.get(), bytes, &now);
  if (access.is_write) {
    const int64_t element = access.conversion.file_bytes;
    *moved = element == 0 ? 0 : now / element * access.conversion.type->size_bytes();
    return failure;
  }
  const Failure converted =
      ConvertFromFile(access.conversion, access.payload, data.get(), now, moved);
  return failure.ok() ? converted : failure;
}

}  // namespace

Failure CarryIn(File& file, const Access& access, int64_t* moved) {
  const AccessWays ways = WaysOf(*file.hints(), access.is_write, file.is_local());
  *moved = 0;
  if (file.posix().is_stream()) {
    return access.converts() ? CarryConverted(file.posix(), ways, access, moved)
                             : CarryNext(file.posix(), ways, access, moved);
  }
  RangeLock lock;
  if (file.is_atomic() && access.bytes() != 0) {
    const Bounds span = access.view->SpanOf(access.position, access.bytes());
    FERRY_RETURN_FAILURE(
        lock.Lock(file.posix(), &file.atomic_mutex(), span.low, span.high, access.is_write));
  }
  return access.converts() ? CarryConverted(file.posix(), ways, access, moved)
                           : Carry(file.posix(), ways, access, moved);
}

}  // namespace ferry::mpi
