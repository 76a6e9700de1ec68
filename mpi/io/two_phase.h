// Collective buffering: the ranks of a node put the pieces of a collective write together in memory
// that they share, and one of them writes long runs of the file; for a read some of them read such
// runs, and all copy their pieces out. It pays where the pieces are short, and those of several
// ranks lie between each other.
//
// The buffer has the bytes of a few *stretches* of the file at a time, through which all ranks of
// the node go in the same order; parts of the file without any piece are passed over. While an
// aggregator accesses the file for one stretch, the ranks copy those that follow. The offsets of
// pieces are never listed: each rank walks through its own filetype.
//
// Where the pieces of several nodes lie between each other, too, nodes send each other what they
// write, so that each writes long runs of its own part of the file, or what they have read of that
// for all of them (cells.h).
//
// Calling thread: that of a collective call of the file. Blocks until all ranks have come, or
// suspends where the meeting is in the background; the death of a rank ends it with
// MPI_ERR_PROC_ABORTED. Units: bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/io/collective_access.h"
#include "mpi/io/file.h"
#include "mpi/io/file_domains.h"
#include "mpi/io/meeting.h"
#include "mpi/io/node_buffer.h"
#include "mpi/io/node_exchange.h"

namespace ferry::mpi {

// The things that a file keeps between its collective calls.
class TwoPhase {
 public:
  enum class Way : uint8_t {
    kAlone,         // each rank is to move its own bytes, and no rank waits for another
    kApart,         // each rank is to move its own bytes, and they tell each other how that went
    kInNode,        // they went through the buffer of this node
    kBetweenNodes,  // nodes have moved each other's bytes, too
  };
  // Agrees with the other ranks on how to carry the parts out; kAlone holds for all of them or for
  // none. Does so unless that is alone or apart: then *moved is as Carry of access.h says, and a
  // failure this rank's own, of which the caller tells the others. A failure alone: a rank is gone,
  // or their calls do not belong together, which all hear by themselves. A failure apart: a rank is
  // cut off, of which others may not know.
  Failure Carry(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved, Way* way);
  // After a call that has failed, since some ranks may know of each other's views, and some not.
  void Forget() { is_known_ = false; }

 private:
  // Returns true if the pieces of all views are so long that there is nothing to agree on.
  bool IsEachAlone(bool is_write) const { return least_piece_ >= LongPiece(is_write, are_local_); }
  AccessFacts FactsOf(File& file, const CollectivePart& part);
  Failure Plan(Meeting& meeting, File& file, const CollectivePart& part, NodePlan* plan);
  Failure PlanForNodes(Meeting& meeting, File& file, const std::vector<AccessFacts>& all,
                       bool is_write, NodePlan* plan);
  // Messages between nodes, which are set up when they are first wanted.
  struct Link {
    explicit Link(NodeExchange::Kind kind) : exchange(kind) {}
    NodeExchange exchange;
    bool is_set_up = false;
    bool is_refused = false;  // its memory could not be had
  };
  Failure SetUpLink(Meeting& meeting, const Comm& comm, const std::vector<int>& leaders,
                    Link* link);
  void Leave(const Failure& failure);
  Failure HandOver(Meeting& meeting, File& file);

  // The view and the hints at the last call, and what was found out about them.
  std::shared_ptr<const View> view_;
  std::shared_ptr<const Hints> hints_;
  ViewShape shape_;
  bool is_known_ = false;  // of the view: the ranks have told each other
  // Of all ranks: no piece of their views is shorter; their file system is the machine's own.
  int64_t least_piece_ = 0;
  bool are_local_ = false;
  NodeBuffer buffer_;
  bool is_refused_ = false;  // the buffer could not be made, or this rank has left it
  Link to_owners_{NodeExchange::Kind::kToOwners};
  Link answers_{NodeExchange::Kind::kAnswers};  // for reads
  int node_ = 0;                                // this one, among those of the file
  uint64_t stretches_ = 0;                      // that went through the buffer
};

}  // namespace ferry::mpi
