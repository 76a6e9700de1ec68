// The state of the other PEs: running, left, died, or on a node that is unreachable.
//
// A PE of this node stores that it leaves in its place (place_layout.h). One of another node puts
// it into this PE's region, where each PE has a byte for each other (PlaceLayout::remote_lives).
//
// Calling thread: any; for TellLeaving and the functions that wait for it, that of shmem_finalize.
// Only TellLeaving and AwaitNews block.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/error_code.h"
#include "shmem/base/job.h"

namespace ferry::shmem {

// Allocates the bytes in which PEs of other nodes tell that they leave, in this PE's region. Takes
// none within one node.
bool OpenLives();

// Tells all PEs that this one is in shmem_finalize, and takes part in nothing else any more.
void TellLeaving();
// Returns true if that PE has told that it leaves.
bool HasLeft(int pe);
// Returns kOk; or the reason why nothing comes from that PE any more (kNotFound: it has left), or
// why this one cannot go on.
ErrorCode StateOf(int pe);
// Returns true if the PE has died, or its node is unreachable.
bool HasDied(int pe);
// Returns the local PE of lowest number that has died before it left; -1: none.
int FindNeighbourThatDied();
// Blocks until `has_come` is true, for a second at most: the news that a PE has ended may come
// later than the effects of that.
template <typename HasCome>
void AwaitNews(HasCome&& has_come) {
  const uint64_t end_ns = MonotonicNs() + 1'000'000'000;
  while (!has_come() && MonotonicNs() < end_ns) {
    job.front_end->peers->Rest(1'000'000);
  }
}
// Returns "PE 3 has died", or the like, for a state that StateOf(pe), or an operation with it, has
// returned. `words`: what is known of it beside the state.
std::string StateText(int pe, ErrorCode state, const std::string* words = nullptr);

}  // namespace ferry::shmem
