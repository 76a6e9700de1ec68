#include "internode/rndv/rndv_rtr.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

// ---- What ranks say ----------------------------------------------------------------------------

std::optional<std::string> Rtrs::SendRtr(ServedRank& rank, const Descriptor& command,
                                         uint64_t now_ns) {
  shm::RtrWords words;
  std::memcpy(&words, command.payload, sizeof(words));
  if (words.receive == 0 || words.receive >= rank.session->request_limit || command.tag < 0 ||
      words.where.region == 0) {
    return "an RTR for request " + std::to_string(words.receive) + " in region " +
           std::to_string(words.where.region) + ", tag " + std::to_string(command.tag);
  }
  if (rank.StateOf(command.destination) != ErrorCode::kOk) {
    return std::nullopt;  // a node that returns may not take packets yet
  }
  ServedRegion* const found = rank.FindRegion(words.where, command.size_bytes);
  if (found == nullptr || (found->memory.by_stream && found->memory.at_nic == nullptr)) {
    return std::nullopt;  // the message says so, or is fetched
  }
  ServedRegion& region = *found;
  if (words.receive >= rank.rtr_receives.size()) {
    rank.rtr_receives.resize(words.receive + 1);
  }
  RtrReceive& entry = rank.rtr_receives[words.receive];
  Window* const window = WindowOf(rank, region);
  if (window == nullptr || entry.state == RtrReceive::State::kWritten) {
    return std::nullopt;
  }
  Drop(entry);  // its use has ended by another way
  const PacketHeader header = HeaderOf(rank, command, PacketKind::kRtr);
  const WireRtr wire{{words.receive, words.generation},
                     words.seen,
                     window->pinned.region().key,
                     window->pinned.region().remote_base + words.where.address};
  if (outbound_.Send(*rank.job, header, BytesOf(wire), now_ns) != ErrorCode::kOk) {
    return std::nullopt;
  }
  entry.state = RtrReceive::State::kOut;
  entry.generation = words.generation;
  entry.source = command.destination;
  entry.window = region.window;
  entry.size_bytes = command.size_bytes;
  ++window->live;
  return std::nullopt;
}

std::optional<std::string> Rtrs::Withdraw(ServedRank& rank, const Descriptor& command,
                                          uint64_t now_ns) {
  shm::RtrWords words;
  std::memcpy(&words, command.payload, sizeof(words));
  if (words.receive == 0 || words.receive >= rank.session->request_limit) {
    return "a withdrawal of request " + std::to_string(words.receive);
  }
  if ((command.flags & shm::kFlagMatched) != 0) {
    OnRndvGet(rank, words.receive, words.generation);
    return std::nullopt;
  }
  RtrReceive* const entry = Find(rank, {words.receive, words.generation});
  if (entry == nullptr) {  // it never left, or all is over
    rank.Answer(DescriptorKind::kWithdrawn, command.destination, words.receive, words.generation,
                ErrorCode::kOk);
    return std::nullopt;
  }
  if (entry->state == RtrReceive::State::kOut) {  // else the rank hears how the write has ended
    waiting_ += std::exchange(entry->rank_waits, true) ? 0 : 1;
    Ask(rank, words.receive, *entry, now_ns);
  }
  return std::nullopt;
}

void Rtrs::OnRndvGet(ServedRank& rank, uint32_t request, uint32_t generation) {
  if (RtrReceive* entry = Find(rank, {request, generation});
      entry != nullptr && entry->state == RtrReceive::State::kOut) {
    Drop(*entry);
  }
}

// ---- What other daemons say --------------------------------------------------------------------

bool Rtrs::OnPut(ServedRank& rank, uint32_t source, const WirePut& put, uint64_t now_ns) {
  RtrReceive* const entry = Find(rank, put.receive);
  if (entry == nullptr || entry->state != RtrReceive::State::kOut || entry->lost ||
      entry->source != source) {
    return false;
  }
  entry->state = RtrReceive::State::kWritten;
  entry->begun_ns = now_ns;
  if (entry->window != 0 && windows_.at(entry->window).region->memory.by_stream) {
    depot_.CountDevice(/*is_direct=*/true);
  }
  ++written_;
  return true;
}

void Rtrs::OnPutDone(ServedRank& rank, uint32_t source, const WirePutDone& done, uint64_t now_ns) {
  RtrReceive* const entry = Find(rank, done.receive);
  if (entry == nullptr || entry->state != RtrReceive::State::kWritten || entry->lost ||
      entry->source != source) {
    return;
  }
  auto error = static_cast<ErrorCode>(done.error);
  const uint64_t id = entry->window;
  if (id == 0 && error == ErrorCode::kOk) {
    error = ErrorCode::kInvalidBuffer;  // written, but the region is gone
  }
  if (done.uncertain == 0 || id == 0) {
    End(rank, done.receive.request, *entry, error);
    return;
  }
  Lose(*entry, error);
  Close(id, windows_.at(id), now_ns);
}

void Rtrs::OnWithdrawn(ServedRank& rank, uint32_t source, const WireReceive& receive) {
  RtrReceive* const entry = Find(rank, receive);
  if (entry == nullptr || entry->state != RtrReceive::State::kOut || !entry->withdrawing ||
      entry->source != source || entry->lost) {
    return;
  }
  if (entry->rank_waits) {
    rank.Answer(DescriptorKind::kWithdrawn, source, receive.request, receive.generation,
                ErrorCode::kOk);
  }
  Drop(*entry);
}

void Rtrs::OnLinkFailed(Job& job, uint32_t source, ErrorCode error, uint64_t now_ns) {
  job.ForEachServed([&](ServedRank& rank) { FailBetween(rank, source, error, now_ns); });
}

void Rtrs::FailBetween(ServedRank& rank, uint32_t source, ErrorCode error, uint64_t now_ns) {
  for (RtrReceive& entry : rank.rtr_receives) {
    if (entry.state == RtrReceive::State::kNone || entry.source != source || entry.lost) {
      continue;
    }
    Lose(entry, error);
    if (entry.window != 0) {
      Close(entry.window, windows_.at(entry.window), now_ns);
    }
  }
  EndLost(0, rank);
}

// ---- Entries -----------------------------------------------------------------------------------

// Finds the entry of that use of the request; null if no RTR announces it.
RtrReceive* Rtrs::Find(ServedRank& rank, const WireReceive& receive) {
  if (receive.request >= rank.rtr_receives.size()) {
    return nullptr;
  }
  RtrReceive& entry = rank.rtr_receives[receive.request];
  return entry.state != RtrReceive::State::kNone && entry.generation == receive.generation
             ? &entry
             : nullptr;
}

// Asks the other daemon for the RTR, once.
void Rtrs::Ask(ServedRank& rank, uint32_t request, RtrReceive& entry, uint64_t now_ns) {
  if (!entry.lost && !std::exchange(entry.withdrawing, true)) {
    entry.begun_ns = now_ns;
    outbound_.Post(*rank.job, PacketKind::kWithdraw, rank.rank(), entry.source,
                   WireReceive{request, entry.generation}, now_ns);
  }
}

// Ends with its window.
void Rtrs::Lose(RtrReceive& entry, ErrorCode error) {
  entry.lost = true;
  entry.error = error;
  if (entry.window != 0) {
    --windows_.at(entry.window).live;
  }
}

void Rtrs::Drop(RtrReceive& entry) {
  written_ -= entry.state == RtrReceive::State::kWritten ? 1 : 0;
  waiting_ -= entry.rank_waits ? 1 : 0;
  if (entry.window != 0 && !entry.lost) {
    Window& window = windows_.at(entry.window);
    --window.live;
    Release(window);
  }
  entry = {};
}

void Rtrs::End(ServedRank& rank, uint32_t request, RtrReceive& entry, ErrorCode error) {
  const uint32_t generation = entry.generation;
  const uint32_t source = entry.source;
  Drop(entry);
  rank.Answer(DescriptorKind::kRndvGetDone, source, request, generation, error);
}

// Ends lost RTRs whose window is worthless now (0: those that never had one to close).
void Rtrs::EndLost(uint64_t id, ServedRank& rank) {
  for (uint32_t request = 0; request < rank.rtr_receives.size(); ++request) {
    RtrReceive& entry = rank.rtr_receives[request];
    if (entry.state == RtrReceive::State::kNone || !entry.lost || entry.window != id) {
      continue;
    }
    entry.window = 0;
    if (entry.state == RtrReceive::State::kWritten) {
      End(rank, request, entry, entry.error);
      continue;
    }
    if (entry.rank_waits) {
      rank.Answer(DescriptorKind::kWithdrawn, entry.source, request, entry.generation,
                  ErrorCode::kOk);
    }
    Drop(entry);
  }
}

// ---- Windows -----------------------------------------------------------------------------------

// Null while there is none that is open.
Rtrs::Window* Rtrs::WindowOf(ServedRank& rank, ServedRegion& region) {
  if (region.window != 0) {
    Window& window = windows_.at(region.window);
    return window.state == Window::State::kOpen && window.pinned.is_pinned() ? &window : nullptr;
  }
  region.window = ++last_window_;
  Window& window = windows_[region.window];
  window.rank = &rank;
  window.region = &region;
  PinRequest request = {.base = region.memory.begin(),
                        .bytes = region.memory.size_bytes,
                        .access = transport::Access::kRemoteWrite,
                        .memory = region.memory.keep_alive,
                        .owner = region.memory.owner};
  if (region.memory.by_stream) {
    request.device = region.memory.for_nic;
  }
  window.pinned = PinnedMemory(registrar_, std::move(request));
  return nullptr;
}

// No more RTRs; those that are out are asked for.
void Rtrs::Close(uint64_t id, Window& window, uint64_t now_ns) {
  if (window.state == Window::State::kOpen) {
    window.state = Window::State::kClosing;
    ++closing_;
    ServedRank& rank = *window.rank;
    for (uint32_t request = 0; request < rank.rtr_receives.size(); ++request) {
      RtrReceive& entry = rank.rtr_receives[request];
      if (entry.state == RtrReceive::State::kOut && entry.window == id) {
        Ask(rank, request, entry, now_ns);
      }
    }
  }
  Release(window);
}

// Unpins a window that is being closed and that no RTR uses any more.
void Rtrs::Release(Window& window) {
  if (window.state != Window::State::kClosing || window.live != 0) {
    return;
  }
  auto done = std::make_shared<UnpinSignal>();
  std::future<void> unpinned = done->done.get_future();
  if (window.pinned.TryRelease(std::move(done))) {  // else Advance tries again
    window.unpinned = std::move(unpinned);
    window.state = Window::State::kUnpinning;
  }
}

void Rtrs::Advance() {
  if (closing_ == 0) {
    return;
  }
  for (auto next = windows_.begin(); next != windows_.end();) {
    const auto current = next++;
    Window& window = current->second;
    Release(window);
    if (window.state != Window::State::kUnpinning ||
        window.unpinned.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      continue;
    }
    --closing_;
    window.region->window = 0;
    ServedRank& rank = *window.rank;
    const uint64_t id = current->first;
    windows_.erase(current);
    EndLost(id, rank);
  }
}

void Rtrs::CheckDeadlines(Directory& directory, uint64_t now_ns) {
  if (waiting_ == 0) {
    return;
  }
  for (const auto& rank : directory.served()) {
    for (RtrReceive& entry : rank->rtr_receives) {
      if (entry.state == RtrReceive::State::kOut && entry.rank_waits && !entry.lost &&
          rank->job->ended[entry.source] != ErrorCode::kOk &&
          now_ns - entry.begun_ns > timeout_ns_ / 4) {
        Lose(entry, ErrorCode::kPeerDied);
        if (entry.window != 0) {
          Close(entry.window, windows_.at(entry.window), now_ns);
        }
      }
    }
    EndLost(0, *rank);
  }
}

bool Rtrs::TryRemoveRegion(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
                           uint64_t now_ns) {
  if (region.window == 0) {
    return true;
  }
  const uint64_t id = region.window;
  Window& window = windows_.at(id);
  Close(id, window, now_ns);
  if (now_ns < deadline_ns || window.state != Window::State::kClosing) {
    return false;
  }
  // The memory has no owner any more, so late writes do no harm while it is kept.
  window.pinned.ReleaseAt(now_ns + timeout_ns_);
  --closing_;
  for (RtrReceive& entry : rank.rtr_receives) {
    if (entry.state != RtrReceive::State::kNone && entry.window == id && !entry.lost) {
      entry.window = 0;
    }
  }
  windows_.erase(id);
  region.window = 0;
  EndLost(id, rank);
  return true;
}

void Rtrs::Forget(ServedRank& rank) {
  for (RtrReceive& entry : rank.rtr_receives) {
    Drop(entry);
  }
}

// ---- Looking in --------------------------------------------------------------------------------

void Rtrs::Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports) {
  for (uint32_t request = 0; request < rank.rtr_receives.size(); ++request) {
    const RtrReceive& entry = rank.rtr_receives[request];
    if (entry.state == RtrReceive::State::kWritten) {
      TransferReport report{true, request, entry.source, 0, entry.size_bytes};
      report.silent_ns = now_ns - entry.begun_ns;
      reports->push_back(report);
    }
  }
}

}  // namespace ferry::progress
