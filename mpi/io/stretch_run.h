// One access through the buffer of a node (two_phase.h): its stretches, one after the other.
//
// Each rank announces for each stretch where its bytes lie in it, and where they go on behind it:
// the next stretch begins where the first rank goes on. For a write the ranks copy their bytes into
// the stretch, and mark them; when all have done so, the stretch's aggregator writes the marked
// runs. For a read the aggregator reads from the first byte that a rank wants to the last one, and
// then the ranks copy. A stretch's memory serves again kStretches later. All ranks go through all
// stretches, also those that have failed; the first announced failure ends the access for all of
// them.
//
// Where nodes access the file together, the stretches are the cells that this node owns or has
// bytes of (cells.h), which all its ranks know beforehand. The leader sends what its ranks have
// marked in the cells of others, and puts what others send into those of its own before it writes
// them. For a read it sends what its ranks want of the cells of others, and answers the wishes of
// other nodes once it has read the cell; it reads its own cells before it waits for others. A
// failure ends nothing here, as other nodes wait for the messages: they go on, and have fewer
// bytes.
//
// A cell's messages wait only for those of the same cell and of cells before it, so some node can
// always go on.
//
// Calling thread: that of the call, or the one that accesses files (io_thread.h). Units: bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/base/failure.h"
#include "mpi/io/access.h"
#include "mpi/io/cells.h"
#include "mpi/io/file_domains.h"
#include "mpi/io/io_thread.h"
#include "mpi/io/node_buffer.h"
#include "mpi/io/node_exchange.h"
#include "mpi/io/posix_file.h"

namespace ferry::mpi {

// The messages between nodes; all null where they do not exchange anything.
struct ExchangeOfCells {
  const Cells* cells = nullptr;
  NodeExchange* to_owners = nullptr;
  NodeExchange* answers = nullptr;  // for reads
};

class StretchRun : public IoWork {
 public:
  // `first`: the number of the first stretch. `access`: of no bytes where the rank moves nothing.
  // All that is named here outlives this.
  StretchRun(const NodeBuffer& buffer, const NodePlan& plan, const PosixFile& file,
             const Access& access, uint64_t first, const ExchangeOfCells& exchange);

  // Returns once this rank's part is done; an aggregator may still write others' bytes. Blocks.
  Failure Run();
  // In place of that: to be called until it is over, and then Finish.
  State Work() override;
  Failure Finish();
  // The number of stretches, the same on all ranks.
  uint64_t stretches() const { return is_over() ? end_ - first_ : 0; }
  // False after Run or Finish: a rank is gone, or cut off.
  bool is_over() const;
  // The bytes of this rank that were moved; of a read, up to the first one that is not there.
  int64_t moved() const { return moved_bytes_; }

 private:
  // A stretch, and this rank's bytes in it: positions of the view.
  struct Stretch {
    int64_t begin = 0;
    int64_t from = 0;
    int64_t to = 0;
    // On leaders: the messages that are still to come, and between which places the bytes lie of
    // those that have.
    int messages = 0;
    int64_t low = kNowhere;
    int64_t high = 0;
    int64_t end = 0;  // of a read: where the bytes end that are there
  };

  bool CanAnnounce() const;
  bool CanMove() const;
  bool CanCarry() const;
  bool CanTake();
  bool CanReadAhead();
  bool CanWish();
  bool CanStep() {
    StartSends();
    return CanAnnounce() || CanMove() || CanCarry() || CanTake() || CanReadAhead() || CanWish();
  }
  bool Step();
  bool FindNext(int64_t* begin) const;
  Failure Await();
  ErrorCode DeathAmongRanks() const;
  bool GoesOn(Failure gone);

  void Announce();
  void Move();
  void Carry();
  void Take();
  void Answer();
  void ReadAhead();
  void Wish();
  void TakeAnswer();
  NodeSpan SpanOf(uint64_t number) const;
  void Mark(const Stretch& stretch, uint64_t number);
  template <typename Visit>
  void ForEachExchange(Visit&& visit);
  void BeginExchange();
  void StartSends();
  Failure FailureOfExchange();
  void SendAway(uint64_t number, int64_t low, int64_t high);
  void FillStretch(const Stretch& stretch, uint64_t number);
  void EmptyStretch(const Stretch& stretch, uint64_t number, int64_t end);
  Failure MovePacked(const Stretch& stretch, std::byte* bytes, int64_t from, int64_t to);
  void WriteOut(uint64_t number, int64_t low, int64_t high);
  int64_t ReadIn(uint64_t number, int64_t low, int64_t high);

  bool HaveAll(uint64_t RankWords::*word, uint64_t count) const;
  bool IsCarried(uint64_t number) const;
  bool IsLeader() const { return cells_ != nullptr && buffer_.self() == 0; }
  bool IsReadingLeader() const { return IsLeader() && !access_.is_write; }
  bool IsOwned(const Stretch& stretch) const {
    return cells_ == nullptr || cells_->OwnerOf(stretch.begin) == cells_->self();
  }
  int AggregatorOf(uint64_t number) const;
  Stretch& StretchAt(uint64_t number) { return stretches_[number % kKeptStretches]; }
  const Stretch& StretchAt(uint64_t number) const { return stretches_[number % kKeptStretches]; }
  void Note(Failure failure);

  const NodeBuffer& buffer_;
  const NodePlan& plan_;
  const PosixFile& file_;
  const Access& access_;
  const uint64_t first_;
  const Cells* const cells_;
  NodeExchange* const exchange_;  // to owners
  NodeExchange* const answers_;
  RankWords& own_;
  uint64_t announced_;  // stretches before this one
  uint64_t moved_;
  uint64_t to_carry_;  // the next stretch that this rank carries as an aggregator
  // On leaders: the next stretch of which messages are taken; of reads: the next one that is read,
  // and the next one of others of which the node says what it wants.
  uint64_t to_take_;
  uint64_t to_read_;
  uint64_t to_wish_;
  uint64_t end_ = 0;  // once is_ended_
  bool is_ended_ = false;
  int64_t position_;  // of the first byte that no stretch has
  const int64_t end_position_;
  int64_t moved_bytes_ = 0;
  bool is_short_ = false;  // a read has come to the end of the file
  std::array<Stretch, kKeptStretches> stretches_{};
  std::unique_ptr<std::byte[]> packed_;  // where the program's memory is no single run
  Failure failure_;
  bool has_begun_ = false;
  Failure gone_;
};

}  // namespace ferry::mpi
