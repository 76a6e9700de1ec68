// Long collectives: straight between the ranks' own buffers. See board_run.h.
#include <array>
#include <memory>
#include <vector>

#include "coll/board/board_run.h"
#include "coll/board/task.h"
#include "shm/word_copy.h"

namespace ferry::collective {
namespace {

// Reductions take this much of each operand at a time, so that it stays in the second-level cache.
constexpr size_t kChunkBytes = 32768;

// Lines of a collective, in order.
constexpr uint32_t kAddresses = 0;
constexpr uint32_t kResults = 1;  // an allreduce's parts can be read
constexpr uint32_t kDone = 2;     // this member neither reads nor writes others' memory any more

struct Addresses {
  NodeAddress input;
  NodeAddress output;
};
static_assert(sizeof(Addresses) <= kBoardLineBytes);

class Direct {
 public:
  explicit Direct(const BoardTask& task)
      : task_(task), board_(task.board), addresses_(static_cast<size_t>(task.size())) {}

  DirectResult Run() {
    if (!Meet()) {
      const bool is_met = board_.has_offer() && !board_.has_failed();
      return is_met ? DirectResult::kMetDevices : DirectResult::kFailed;
    }
    if (!reachable_) {
      return DirectResult::kUnreachable;
    }
    if (!Move() || !Post(kDone) || !AwaitAll(kDone)) {
      board_.Settle(kDone);
      return DirectResult::kFailed;
    }
    return DirectResult::kDone;
  }

 private:
  // A run of bytes, of a block or a vector.
  struct Part {
    size_t offset = 0;
    size_t bytes = 0;
  };

  // ---- Lines -----------------------------------------------------------------------------------

  bool Post(uint32_t line) {
    const bool ok = board_.Reserve(line, Board::Slot::kLine, Board::kAll) != nullptr;
    if (ok) {
      board_.Post(line, Board::Slot::kLine);
    }
    return ok;
  }

  bool AwaitAll(uint32_t line) {
    for (int i = 0; i < task_.size(); ++i) {
      if (i != task_.self() && board_.Await(i, line, Board::Slot::kLine) == nullptr) {
        return false;
      }
    }
    return true;
  }

  // Tells the others where this member's data lie, and learns where theirs do.
  bool Meet() {
    NodeLink& link = board_.link();
    const Addresses own{link.Locate(task_.OwnInput(), InputBytes(task_.problem)),
                        link.Locate(task_.output, OutputBytes(task_.problem))};
    std::byte* const line = board_.Reserve(kAddresses, Board::Slot::kLine, Board::kAll);
    if (line == nullptr) {
      return false;
    }
    std::memcpy(line, &own, sizeof(own));
    board_.Post(kAddresses, Board::Slot::kLine);
    for (int step = 0; step < task_.size(); ++step) {
      // The root first: it may have no need of the others' addresses, and tell them.
      const int i = (task_.problem.root + step) % task_.size();
      Addresses& addresses = addresses_[static_cast<size_t>(i)];
      addresses = own;
      if (i != task_.self()) {
        const std::byte* const posted = board_.Await(i, kAddresses, Board::Slot::kLine);
        if (posted == nullptr) {
          return false;
        }
        std::memcpy(&addresses, posted, sizeof(addresses));
      }
      reachable_ = reachable_ && addresses.input.flags == 0 && addresses.output.flags == 0;
    }
    return true;
  }

  // ---- Copies ----------------------------------------------------------------------------------

  bool Note(int member, ErrorCode error) {
    if (error != ErrorCode::kOk) {
      board_.Fail({.code = error, .peer = member});
    }
    return error == ErrorCode::kOk;
  }
  bool Read(int member, const NodeAddress& from, void* to, size_t bytes) {
    return bytes == 0 || Note(member, board_.link().Read(member, from, to, bytes));
  }
  bool Write(int member, const NodeAddress& to, const void* from, size_t bytes) {
    return bytes == 0 || Note(member, board_.link().Write(member, to, from, bytes));
  }
  const Addresses& Of(int member) const { return addresses_[static_cast<size_t>(member)]; }
  // The other members in turn, beginning with the one after this one.
  int Other(int step) const { return (task_.self() + step) % task_.size(); }

  // The part of the root's data that the root copies itself: the last one, so that all do the same
  // work.
  Part RootsPart(size_t bytes) const {
    const size_t own = bytes / static_cast<size_t>(task_.size());
    return {bytes - own, own};
  }

  bool Move() {
    switch (task_.problem.collective) {
      case Collective::kBcast:
        return Bcast();
      case Collective::kGather:
        return Gather();
      case Collective::kScatter:
        return Scatter();
      case Collective::kAllgather:
        return Allgather();
      case Collective::kAlltoall:
        return Alltoall();
      case Collective::kReduce:
        return Reduce();
      case Collective::kAllreduce:
        return Allreduce();
      default:
        return ReduceScatter();
    }
  }

  // Calls copy(member) for each member until one fails.
  template <typename Copy>
  bool ForEachOther(Copy&& copy) {
    for (int step = 1; step < task_.size(); ++step) {
      if (!copy(Other(step))) {
        return false;
      }
    }
    return true;
  }

  bool Bcast() {
    const Part part = RootsPart(task_.problem.block_bytes);
    if (!task_.is_root()) {
      return Read(task_.problem.root, Of(task_.problem.root).output, task_.output, part.offset);
    }
    return ForEachOther([&](int member) {
      return Write(member, Of(member).output.At(part.offset), task_.output + part.offset,
                   part.bytes);
    });
  }

  bool Gather() {
    const size_t bytes = task_.problem.block_bytes;
    const Part part = RootsPart(bytes);
    if (!task_.is_root()) {
      return Write(task_.problem.root, Of(task_.problem.root).output.At(task_.OwnOffset()),
                   task_.input, part.offset);
    }
    if (!task_.problem.in_place) {
      shm::CopyWords(task_.output + task_.OwnOffset(), task_.input, bytes);
    }
    return ForEachOther([&](int member) {
      return Read(member, Of(member).input.At(part.offset),
                  task_.output + static_cast<size_t>(member) * bytes + part.offset, part.bytes);
    });
  }

  bool Scatter() {
    const size_t bytes = task_.problem.block_bytes;
    const Part part = RootsPart(bytes);
    if (!task_.is_root()) {
      return Read(task_.problem.root, Of(task_.problem.root).input.At(task_.OwnOffset()),
                  task_.output, part.offset);
    }
    if (!task_.problem.in_place) {
      shm::CopyWords(task_.output, task_.input + task_.OwnOffset(), bytes);
    }
    return ForEachOther([&](int member) {
      return Write(member, Of(member).output.At(part.offset),
                   task_.input + static_cast<size_t>(member) * bytes + part.offset, part.bytes);
    });
  }

  bool Allgather() {
    const size_t bytes = task_.problem.block_bytes;
    if (!task_.problem.in_place) {
      shm::CopyWords(task_.output + task_.OwnOffset(), task_.input, bytes);
    }
    return ForEachOther([&](int member) {
      return Read(member, Of(member).input, task_.output + static_cast<size_t>(member) * bytes,
                  bytes);
    });
  }

  bool Alltoall() {
    const size_t bytes = task_.problem.block_bytes;
    shm::CopyWords(task_.output + task_.OwnOffset(), task_.input + task_.OwnOffset(), bytes);
    return ForEachOther([&](int member) {
      return Read(member, Of(member).input.At(task_.OwnOffset()),
                  task_.output + static_cast<size_t>(member) * bytes, bytes);
    });
  }

  // ---- Reductions ------------------------------------------------------------------------------

  // The part of a vector that `member` reduces.
  Part PartOf(int member) const {
    const size_t element = task_.problem.element_bytes;
    const size_t count = task_.problem.block_bytes / element;
    const auto size = static_cast<size_t>(task_.size());
    const auto index = static_cast<size_t>(member);
    const size_t begin = count * index / size * element;
    return {begin, count * (index + 1) / size * element - begin};
  }

  // Makes room for Fold's operands.
  void MakeRoom() {
    chunk_bytes_ = std::max(kChunkBytes / task_.problem.element_bytes, size_t{1}) *
                   task_.problem.element_bytes;
    for (auto& room : room_) {
      room = std::make_unique_for_overwrite<char[]>(chunk_bytes_);
    }
  }

  // Reduces all members' operands in the order of ranks: `bytes` at `offset` of their inputs. `to`
  // may be this member's own operand, for it is written last.
  bool Fold(size_t offset, size_t bytes, const char* own, char* to) {
    const void* sum = nullptr;
    for (int i = 0; i < task_.size(); ++i) {
      const void* operand = own;
      if (i != task_.self()) {
        char* const room = room_[i == 0 ? 0 : 1].get();
        if (!Read(i, Of(i).input.At(offset), room, bytes)) {
          return false;
        }
        operand = room;
      }
      if (i == 0) {
        sum = operand;
        continue;
      }
      void* const next = i + 1 == task_.size() ? to : room_[0].get();
      if (!task_.Reduce(sum, operand, next, bytes)) {
        return false;
      }
      sum = next;
    }
    return true;
  }

  // Reduces `part` of the vector, chunk by chunk, into place(chunk), and hands each to
  // done(chunk, result).
  template <typename Place, typename Done>
  bool FoldPart(const Part& part, const char* own, Place&& place, Done&& done) {
    MakeRoom();
    for (size_t at = 0; at < part.bytes; at += chunk_bytes_) {
      const Part chunk{part.offset + at, std::min(chunk_bytes_, part.bytes - at)};
      char* const result = place(chunk);
      if (!Fold(chunk.offset, chunk.bytes, own + chunk.offset, result) || !done(chunk, result)) {
        return false;
      }
    }
    return true;
  }

  // For FoldPart: results are where they belong.
  static bool Stays(const Part&, const char*) { return true; }

  bool Reduce() {
    const Part part = PartOf(task_.self());
    const char* const own = task_.OwnInput();
    if (task_.is_root()) {
      return FoldPart(
          part, own, [&](const Part& chunk) { return task_.output + chunk.offset; }, Stays);
    }
    const int root = task_.problem.root;
    return FoldPart(
        part, own, [&](const Part&) { return room_[0].get(); },
        [&](const Part& chunk, const char* result) {
          return Write(root, Of(root).output.At(chunk.offset), result, chunk.bytes);
        });
  }

  bool Allreduce() {
    const bool reduced = FoldPart(
        PartOf(task_.self()), task_.OwnInput(),
        [&](const Part& chunk) { return task_.output + chunk.offset; }, Stays);
    return reduced && Post(kResults) && ForEachOther([&](int member) {
             const Part part = PartOf(member);
             return board_.Await(member, kResults, Board::Slot::kLine) != nullptr &&
                    Read(member, Of(member).output.At(part.offset), task_.output + part.offset,
                         part.bytes);
           });
  }

  bool ReduceScatter() {
    const size_t begin = task_.OwnOffset();
    return FoldPart(
        {begin, task_.problem.block_bytes}, task_.input,
        [&](const Part& chunk) { return task_.output + (chunk.offset - begin); }, Stays);
  }

  const BoardTask& task_;
  Board& board_;
  std::vector<Addresses> addresses_;  // by member
  bool reachable_ = true;
  size_t chunk_bytes_ = 0;
  std::array<std::unique_ptr<char[]>, 2> room_;
};

}  // namespace

bool FitsDirect(const Problem& problem) {
  switch (problem.collective) {
    case Collective::kBcast:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllgather:
    case Collective::kReduce:
    case Collective::kAllreduce:
      return true;
    case Collective::kAlltoall:
    case Collective::kReduceScatter:
      return !problem.in_place;
    default:
      return false;
  }
}

DirectResult RunDirectly(const BoardTask& task) { return Direct(task).Run(); }

}  // namespace ferry::collective
