#include "daemon/admin/why_kernels.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "common/counted.h"
#include "daemon/admin/why_edges.h"
#include "daemon/admin/why_steps.h"
#include "shm/call_record.h"

namespace ferry::daemon {
namespace {

using shm::RingKind;
using Step = RingWait::Step;

constexpr uint64_t kToldNs = 500'000'000;  // most answers come sooner
constexpr size_t kMostTold = 4;
constexpr uint64_t kNsPerMs = 1'000'000;

constexpr std::string_view kCalls = "ferry_device_ring_";
constexpr char kAwait[] = "ferry_device_ring_await";
constexpr char kStart[] = "ferry_device_ring_start";

const char* CallOf(const RingWait& wait) {
  switch (wait.step) {
    case Step::kCounter:
      return kAwait;
    case Step::kStart:
      return kStart;
    case Step::kUnwritten:
      return "ferry_device_ring_post";
    case Step::kHeld:
    case Step::kUnderWay:
      break;
  }
  switch (wait.kind) {
    case RingKind::kPut:
      return wait.is_signalled ? "ferry_device_ring_put_signal" : "ferry_device_ring_put";
    case RingKind::kGet:
      return "ferry_device_ring_get";
    case RingKind::kPutValue:
      return "ferry_device_ring_put_value";
    case RingKind::kAtomic:
      return "ferry_device_ring_atomic";
    default:
      return "ferry_device_ring_operate";
  }
}

// Turns one wait of a ring into words.
class Teller {
 public:
  Teller(const RingReport& ring, const RingWait& wait, const KernelContext& context)
      : ring_(ring), wait_(wait), context_(context) {}

  KernelWait Tell(uint64_t now_ns) {
    told_.call = CallOf(wait_);
    told_.phrase = told_.call + ", request " + std::to_string(wait_.number) + " of ring " +
                   std::to_string(ring_.place);
    told_.for_ns = now_ns - std::min(now_ns, wait_.since_ns);
    switch (wait_.step) {
      case Step::kCounter:
        TellCounter();
        break;
      case Step::kStart:
        TellStart();
        break;
      case Step::kUnwritten:
        told_.needs = KernelNeeds::kNode;
        told_.ends_by =
            "the thread that has taken its slot has not written it, and all behind it wait";
        break;
      case Step::kHeld:
      case Step::kUnderWay:
        TellOperation();
        break;
    }
    if (wait_.count > 1) {
      told_.phrase += std::string(", and ") + (ring_.is_partial ? "at least " : "") +
                      std::to_string(wait_.count - 1) + " like it";
    }
    if (ring_.is_full) {
      told_.phrase += "; all " + Counted(ring_.slots, "slot") + " of the ring are taken";
    }
    if (ring_.is_closing) {
      told_.phrase += "; the rank destroys the ring, which first carries out its operations";
    }
    return told_;
  }

 private:
  void TellCounter() {
    told_.needs = KernelNeeds::kAnyRank;
    told_.ends_by = kAnyRankMayChange;
    told_.phrase += ", until the counter at byte " + std::to_string(wait_.counter.address) +
                    " of region " + std::to_string(wait_.counter.region) + " is " +
                    std::to_string(wait_.threshold) + " (it is " + std::to_string(wait_.value) +
                    ")";
  }

  void TellStart() {
    told_.needs = KernelNeeds::kProgram;
    if (const auto pair = context_.pair_at(wait_.counter)) {
      told_.peer = pair->peer;
      told_.phrase += (pair->is_send ? ", to send to " : ", to receive from ") +
                      RankName(pair->peer) + ", tag " + std::to_string(pair->tag);
    } else {
      told_.ends_by = "its matched request has ended";
    }
  }

  void TellOperation() {
    const bool is_local = context_.is_local(wait_.peer);
    told_.needs = KernelNeeds::kNode;
    told_.phrase +=
        (wait_.size_bytes == 0 ? ", at " : ", " + std::to_string(wait_.size_bytes) + " B at ") +
        RankName(wait_.peer);
    if (!is_local) {
      told_.peer = wait_.peer;
    }
    if (wait_.step == Step::kHeld) {
      told_.ends_by = std::string("it has not begun: ") +
                      (wait_.wants != nullptr ? wait_.wants : "others of the ring come first");
    } else {
      told_.ends_by = is_local
                          ? "ferryd has not ended it"
                          : "the ferryd of " + RankName(wait_.peer) + "'s node has not answered";
    }
  }

  const RingReport& ring_;
  const RingWait& wait_;
  const KernelContext& context_;
  KernelWait told_;
};

// Returns true if kernels may be what the call waits for.
bool IsForStream(const control::RankCall& call) {
  return call.name() == shm::CallText(shm::CallName::kFerryQueueWait) ||
         call.name() == shm::CallText(shm::CallName::kFerryStreamSynchronize);
}

KernelNeeds NeedsOfCall(const control::RankCall& call) {
  return call.name() == kStart   ? KernelNeeds::kProgram
         : call.name() == kAwait ? KernelNeeds::kAnyRank
                                 : KernelNeeds::kNode;
}

}  // namespace

bool IsOfKernel(const control::RankCall& call) { return call.name().starts_with(kCalls); }

std::vector<KernelWait> FindKernelWaits(const std::vector<RingReport>& rings,
                                        const KernelContext& context, uint64_t now_ns) {
  std::vector<KernelWait> waits;
  for (const RingReport& ring : rings) {
    for (const RingWait& wait : ring.waits) {
      if (wait.since_ns + kToldNs <= now_ns) {
        waits.push_back(Teller(ring, wait, context).Tell(now_ns));
      }
    }
  }
  std::stable_sort(waits.begin(), waits.end(), [](const KernelWait& wait, const KernelWait& other) {
    return wait.for_ns > other.for_ns;
  });
  waits.resize(std::min(waits.size(), kMostTold));
  return waits;
}

void AddKernelCalls(const std::vector<KernelWait>& waits, control::RankWait* wait) {
  for (const KernelWait& each : waits) {
    control::RankCall* const call = wait->add_calls();
    call->set_name(each.call);
    call->set_phrase(each.phrase);
    call->set_for_ms(each.for_ns / kNsPerMs);
    call->set_ends_by(each.ends_by);
  }
}

std::vector<uint32_t> TellKernels(const std::vector<KernelWait>& waits, control::RankWait* wait) {
  if (waits.empty()) {
    return {};
  }
  const bool is_in_call = !wait->calls().empty() && !IsOfKernel(wait->calls(0));
  // The wait of a kernel explains more than that the stream is not done.
  wait->set_detail(wait->detail() + (is_in_call ? ": " + wait->calls(0).ends_by() : "") +
                   "; a kernel of it has had no answer for " + Seconds(waits.front().for_ns) +
                   " to " + waits.front().phrase);
  if (is_in_call) {
    wait->mutable_calls(0)->set_ends_by(waits.front().ends_by);
  }
  const KernelNeeds needs = NeedsOf(*wait);
  std::set<uint32_t> peers;
  for (const KernelWait& each : waits) {
    if (each.needs == needs && each.peer) {
      peers.insert(*each.peer);
    }
  }
  return {peers.begin(), peers.end()};
}

// Of several things that its kernels wait for, the one that fewest can bring counts.
KernelNeeds NeedsOf(const control::RankWait& look) {
  KernelNeeds needs = KernelNeeds::kNothing;
  for (const control::RankCall& call : look.calls()) {
    if (IsOfKernel(call)) {
      const KernelNeeds its = NeedsOfCall(call);
      needs = needs == KernelNeeds::kNothing ? its : std::min(needs, its);
    } else if (!IsForStream(call)) {
      return KernelNeeds::kNothing;
    }
  }
  const bool is_stuck = std::any_of(look.edges().begin(), look.edges().end(),
                                    [](const auto& edge) { return IsStuck(&edge); });
  return is_stuck ? KernelNeeds::kNothing : needs;
}

}  // namespace ferry::daemon
