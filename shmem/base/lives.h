// How far the other PEs have come: which of them have left, and which are gone.
//
// A PE of this node says so in its place (place_layout.h). One of another node puts it into this
// PE's region, where each PE has a byte for each other (PlaceLayout::remote_lives).
//
// Calling thread: any; TellLeaving and those that wait for it, that of shmem_finalize. Nothing
// blocks but TellLeaving and AwaitNews.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/error_code.h"
#include "shmem/base/job.h"

namespace ferry::shmem {

// Room for what PEs of other nodes tell, in this PE's region. Takes none within one node.
bool OpenLives();

// Tells all PEs that this one is in shmem_finalize, and comes to nothing else any more.
void TellLeaving();
// Whether that PE has told so.
bool HasLeft(int pe);
// kOk; why nothing comes from that PE any more, kNotFound if it has left; or why this one cannot
// go on.
ErrorCode StateOf(int pe);
// Whether the PE, or its node, is gone without having left.
bool IsDead(int pe);
// The dead local PE of lowest number that had not left; -1: none.
int FindDeadNeighbour();
// Blocks until `has_come` is true, for a second at most: news of how a PE went may come later than
// what happened because of it.
template <typename HasCome>
void AwaitNews(HasCome&& has_come) {
  const uint64_t end_ns = MonotonicNs() + 1'000'000'000;
  while (!has_come() && MonotonicNs() < end_ns) {
    job.front_end->peers->Rest(1'000'000);
  }
}
// "PE 3 has died": what StateOf(pe), or an operation with it, has returned.
std::string StateText(int pe, ErrorCode state);

}  // namespace ferry::shmem
