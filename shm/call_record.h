// Reading what the threads of a rank wait for (shm/layout/call_layout.h).
//
// Calling thread: any, of any process that maps the session. Nothing blocks. The rank may change
// the records meanwhile, and may have written anything: a reader copies each word once, and checks
// what it has copied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/layout/call_layout.h"
#include "shm/layout/call_names.h"

namespace ferry::shm {

// Returns the function's name, as "MPI_Recv"; "a call" for a number that no function has.
const char* CallText(CallName name);
CallKind KindOf(CallName name);
// Returns the line that stands for a function by its name, as "MPI_Recv_c" or
// "shmem_long_wait_until"; kNone: there is none.
CallName CallNamed(std::string_view text);
// Returns true for a number that has a line, and so for each CallName of a CallView.
bool IsCallName(uint16_t number);

struct CallView {
  uint32_t slot = 0;
  // Two looks have seen the same call, which has not ended meanwhile, if slot and generation are
  // the same.
  uint64_t generation = 0;
  CallName name = CallName::kNone;
  CallName inner = CallName::kNone;  // of a completion call: what it waits for, if that is known
  uint64_t begin_ns = 0;             // CLOCK_MONOTONIC; when it began to wait, or began
  uint32_t thread = 0;               // as the rank says
  bool has_group = false;            // group, group_name
  bool has_tag = false;
  bool any_tag = false;
  bool has_bytes = false;
  bool has_number = false;
  bool has_object = false;
  bool is_peer_root = false;
  bool is_nonblocking = false;  // `inner` is, or is persistent
  uint32_t group = 0;
  std::string group_name;      // printable ASCII; empty: it has none
  std::string file;            // the end of its name, printable ASCII; empty: it is about none
  int32_t peer = kCallNoRank;  // below `job_size`, kCallNoRank or kCallAnyRank
  int32_t peer_in_group = kCallNoRank;
  int32_t tag = 0;
  uint64_t bytes = 0;
  uint64_t number = 0;
  uint64_t object = 0;
  int32_t missing = kCallNoRank;  // below `job_size`, or kCallNoRank
  uint32_t missing_count = 0;
};

// The result of a look at a record: kNone, no call; kChanging, it was being changed at each of
// several tries, or by a rank that was killed there.
enum class CallLook : uint8_t { kNone, kCall, kChanging };
// Reads a record of a rank of a job of `job_size`. All words of a view belong to one call, but for
// `missing` and `missing_count`, which may be older than the others. Values that no correct rank
// writes are left out of the view; a record without a known name is none.
CallLook ReadCall(const CallRecordLayout& record, uint32_t job_size, CallView* view);

// The calls that a rank is in now, by slot, each with its slot.
struct CallsView {
  std::vector<CallView> calls;  // at most kCallSlots
  uint32_t unshown = 0;         // further threads that wait, as the rank says
  bool changing = false;        // some record could not be read
};
CallsView ReadCalls(const CallBoardLayout& board, uint32_t job_size);

// Says in words what a call waits for: "MPI_Recv on world from rank 3, tag 7, 64 B". Without its
// age.
std::string CallPhrase(const CallView& view);

}  // namespace ferry::shm
