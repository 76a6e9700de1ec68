// Tells what the kernels of a rank wait for, as far as its ferryd knows: the requests of its device
// rings that have had no answer for a while (docs/device_ring.md). A kernel that polls memory by
// itself leaves no trace.
//
// That a request has no answer says that its kernel cannot have gone past a wait for it. It does
// not say that the kernel, or another thread, does nothing else meanwhile. So such waits are told,
// and followed from rank to rank, but never called a deadlock.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/device_rings/ring_report.h"
#include "proto/control.pb.h"
#include "shm/layout/descriptor.h"

namespace ferry::daemon {

// RankCall.ends_by of a wait for a word.
inline constexpr char kAnyRankMayChange[] = "any rank may change the memory that it waits for";

// Names the ranks or daemons that can end the waits of a rank's kernels.
enum class KernelNeeds : uint8_t {
  kNothing,  // none of them waits, or the rank itself is in another call
  kProgram,  // the ranks to which its edges lead
  kNode,     // the daemons of those ranks, and for some memory the ranks' processes
  kAnyRank,  // any rank, its own kernels and threads included
};

struct KernelWait {
  std::string call;    // "ferry_device_ring_await"
  std::string phrase;  // with what it is about
  uint64_t for_ns = 0;
  std::string ends_by;  // as RankCall.ends_by
  KernelNeeds needs = KernelNeeds::kNothing;
  std::optional<uint32_t> peer = {};  // of another node
};

// The matched request of which a kernel has made a start.
struct StartedPair {
  uint32_t peer = 0;
  int32_t tag = 0;
  bool is_send = false;
};

// The job, as FindKernelWaits sees it.
struct KernelContext {
  // Returns the matched request whose PairLayout::done is at that place of the rank's memory.
  std::function<std::optional<StartedPair>(const shm::Location& done)> pair_at;
  std::function<bool(uint32_t rank)> is_local;
};

// Returns the four waits that have lasted longest, of half a second at least.
std::vector<KernelWait> FindKernelWaits(const std::vector<RingReport>& rings,
                                        const KernelContext& context, uint64_t now_ns);
// Adds them to the calls that the rank is in.
void AddKernelCalls(const std::vector<KernelWait>& waits, control::RankWait* wait);
// To be called for a rank that waits for its own kernels: says so in the rank's detail, and returns
// the ranks that could end these waits, each once. Returns none where any rank could.
std::vector<uint32_t> TellKernels(const std::vector<KernelWait>& waits, control::RankWait* wait);
bool IsOfKernel(const control::RankCall& call);
// As far as AddKernelCalls has told.
KernelNeeds NeedsOf(const control::RankWait& look);

}  // namespace ferry::daemon
