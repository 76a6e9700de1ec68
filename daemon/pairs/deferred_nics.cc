#include "daemon/pairs/deferred_nics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "transports/api/rail_choice.h"

namespace ferry::daemon {
namespace {

// The cost of a message for a NIC beside its bytes, in bytes: short ones are shared out by number.
constexpr uint64_t kMessageCostBytes = 4096;

}  // namespace

// ---- One of them --------------------------------------------------------------------------------

DeferredNic::DeferredNic(transport::Transport& its_whole, transport::Transport& its_transport,
                         uint32_t its_index, Registrar& its_registrar, uint64_t its_timeout_ns,
                         uint32_t most_entries)
    : whole(its_whole),
      transport(its_transport),
      index(its_index),
      deferred(*its_transport.deferred_work()),
      registrar(its_registrar),
      timeout_ns(its_timeout_ns),
      triggers(deferred),
      pool(std::min(deferred.entries(), most_entries)) {}

DeferredNic::~DeferredNic() { (void)transport.DeregisterMemory(scratch_region.handle); }

Status DeferredNic::SetUp() {
  StatusOr<transport::MemoryRegion> registered =
      transport.RegisterMemory(&scratch, sizeof(scratch), transport::Access::kLocal);
  FERRY_RETURN_IF_ERROR(registered.status());
  scratch_region = *registered;
  StatusOr<transport::PeerId> added = transport.AddPeer(transport.Address());
  FERRY_RETURN_IF_ERROR(added.status());
  self = *added;
  return Status();
}

void DeferredNic::Join(DeferredPool::Job job, uint32_t weight, uint64_t size_bytes) {
  if (++pairs[job] == 1) {
    pool.Join(job, weight);
  }
  load_bytes += size_bytes + kMessageCostBytes;
}

void DeferredNic::Leave(DeferredPool::Job job, uint64_t size_bytes) {
  load_bytes -= size_bytes + kMessageCostBytes;
  if (--pairs[job] == 0) {
    pool.Leave(job);
    pairs.erase(job);
  }
}

// ---- All of them --------------------------------------------------------------------------------

DeferredNics::DeferredNics(transport::Transport& transport, Registrar& registrar,
                           uint64_t timeout_ns, const DeferredRules& rules)
    : transport_(transport) {
  for (transport::Transport* rail : transport.Rails()) {
    std::unique_ptr<DeferredNic>& nic = nics_.emplace_back();
    if (rail->deferred_work() == nullptr || rules.most_entries == 0) {
      continue;
    }
    nic = std::make_unique<DeferredNic>(transport, *rail, static_cast<uint32_t>(nics_.size() - 1),
                                        registrar, timeout_ns, rules.most_entries);
    if (const Status status = nic->SetUp(); !status.ok()) {
      nic.reset();
      spdlog::warn("the deferred work of NIC {} is not used: {}", rail->Describe().domain,
                   status.message());
    }
  }
}

bool DeferredNics::any() const {
  return std::ranges::any_of(nics_, [](const auto& nic) { return nic != nullptr; });
}

const DeferredPool* DeferredNics::pool(size_t nic) const {
  return nics_[nic] != nullptr ? &nics_[nic]->pool : nullptr;
}

void DeferredNics::Expect(transport::PeerId peer) {
  for (size_t nic = 0; nic < nics_.size(); ++nic) {
    (void)transport_.Reaches(peer, nic);
  }
}

ErrorCode DeferredNics::Choose(transport::PeerId peer, uint32_t nearest, uint32_t* nic) {
  std::vector<transport::RailState> states(nics_.size());
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (nics_[i] == nullptr) {
      continue;
    }
    const ErrorCode code = transport_.Reaches(peer, i);
    if (code == ErrorCode::kWouldBlock) {
      return code;
    }
    states[i] = {.open = code == ErrorCode::kOk, .load_bytes = nics_[i]->load_bytes};
  }
  const std::optional<size_t> chosen = transport::ChooseRail(states, nearest);
  *nic = static_cast<uint32_t>(chosen.value_or(0));
  return chosen ? ErrorCode::kOk : ErrorCode::kNotFound;
}

DeferredNic* DeferredNics::Find(uint32_t nic, transport::PeerId peer) {
  if (nic >= nics_.size() || transport_.PeerOn(peer, nic) == transport::kUnknownPeer) {
    return nullptr;
  }
  return nics_[nic].get();
}

uint32_t DeferredNics::Poll(transport::DeferredSink& sink, uint64_t now_ns) {
  uint32_t done = 0;
  for (const auto& nic : nics_) {
    done += nic != nullptr ? static_cast<uint32_t>(nic->deferred.Poll(sink, now_ns)) : 0;
  }
  return done;
}

uint64_t DeferredNics::NextNs(uint64_t now_ns) const {
  uint64_t next_ns = UINT64_MAX;
  for (const auto& nic : nics_) {
    next_ns = nic != nullptr ? std::min(next_ns, nic->deferred.NextPollNs(now_ns)) : next_ns;
  }
  return next_ns;
}

}  // namespace ferry::daemon
