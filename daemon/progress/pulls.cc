// The life of a pull: how it begins, goes on where something was wanting, and ends. Its pieces are
// in pulls_pieces.cc.
#include "daemon/progress/pulls.h"

#include <algorithm>
#include <utility>

#include "daemon/progress/records.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kPiecesUnderWay = 4;  // of one pull, unless StagingPool::Window says otherwise
constexpr size_t kMaxAnnounced = 64;     // far more than a correct sender's window

// Copies what a pull needs of a transfer slot; the words that claimants contend for stay out of it.
shm::TransferLayout CopyDescription(const shm::TransferLayout& slot) {
  shm::TransferLayout copy{};
  copy.generation = shm::LoadAcquire(slot.generation);
  copy.source = {shm::LoadAcquire(slot.source.region), 0, shm::LoadAcquire(slot.source.address)};
  copy.destination = {shm::LoadAcquire(slot.destination.region), 0,
                      shm::LoadAcquire(slot.destination.address)};
  copy.size_bytes = shm::LoadAcquire(slot.size_bytes);
  copy.source_rank = shm::LoadAcquire(slot.source_rank);
  copy.remote_key = slot.remote_key;
  copy.remote_request = slot.remote_request;
  copy.remote_generation = slot.remote_generation;
  copy.remote_flags = slot.remote_flags;
  return copy;
}

}  // namespace

Pulls::Pulls(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
             Registrations& registrations, const PipelineRules& rules, uint64_t timeout_ns)
    : transport_(transport),
      outbound_(outbound),
      depot_(depot),
      registrations_(registrations),
      rules_(rules),
      timeout_ns_(timeout_ns) {}

std::optional<std::string> Pulls::Start(ServedRank& rank, const shm::PullCommand& command,
                                        uint64_t now_ns) {
  const Session& session = *rank.session;
  if (command.transfer == 0 || command.transfer >= session.request_limit) {
    return "a pull names transfer " + std::to_string(command.transfer) + " of " +
           std::to_string(session.request_limit);
  }
  if (rank.operations >= session.request_limit) {
    return "more pulls than requests";
  }
  const auto* transfers = reinterpret_cast<const shm::TransferLayout*>(
      session.inbox_map.base() + shm::InboxTransferOffset(session.local_size));
  // Pairs with RankEngine::DescribePull. Copied once, then checked: others can write to it.
  const uint32_t state = shm::LoadAcquire(transfers[command.transfer].state);
  const shm::TransferLayout transfer = CopyDescription(transfers[command.transfer]);
  if (state != static_cast<uint32_t>(shm::TransferState::kMatched) ||
      transfer.generation != command.generation) {
    return std::nullopt;  // the rank has given it up meanwhile: its source died
  }
  if (!rank.job->IsRank(transfer.source_rank) || rank.job->IsLocal(transfer.source_rank)) {
    return "a pull's source, rank " + std::to_string(transfer.source_rank) +
           ", is not on another node";
  }
  const PullId id = pulls_.Insert();
  Pull& pull = *pulls_.Find(id);
  pull.rank = &rank;
  pull.request = command.transfer;
  pull.generation = command.generation;
  pull.source = transfer.source_rank;
  pull.size_bytes = transfer.size_bytes;
  pull.heard_ns = now_ns;
  pull.begun_ns = rank.job->trace.Now(now_ns);
  ++rank.operations;
  ErrorCode error = FindSource(transfer, &pull);
  if (error == ErrorCode::kOk) {
    error = FindDestination(transfer, &pull);
  }
  if (error != ErrorCode::kOk) {
    Fail(id, pull, error, now_ns);
  } else if (pull.size_bytes == 0) {
    End(id, pull, now_ns);
  } else {
    Step(id, pull, now_ns);
  }
  return std::nullopt;
}

// Uses the daemon's own note of the offer: of the rank's words only its number counts.
ErrorCode Pulls::FindSource(const shm::TransferLayout& transfer, Pull* pull) {
  Job& job = *pull->rank->job;
  Delivery& delivery = pull->rank->delivery;
  const IncomingId id{transfer.remote_key};
  const Incoming* incoming = delivery.Find(id);
  const bool known = incoming != nullptr && incoming->source == pull->source &&
                     pull->size_bytes <= incoming->size_bytes;
  if (known && incoming->kind == Incoming::Kind::kParked) {
    pull->kind = incoming->kind;
    pull->parked = delivery.TakeParked(id);  // as below
    return ErrorCode::kOk;
  }
  if (const ErrorCode ended = job.ended[pull->source]; ended != ErrorCode::kOk) {
    return ended == ErrorCode::kNotFound ? ErrorCode::kPeerDied : ended;
  }
  if (!known) {
    return job.RouteTo(pull->source).was_cut ? ErrorCode::kLinkDown : ErrorCode::kInvalidRequest;
  }
  pull->kind = incoming->kind;
  pull->send_request = incoming->send_request;
  pull->send_generation = incoming->send_generation;
  pull->remote_address = incoming->address;
  pull->key = incoming->key;
  delivery.Forget(id);  // one pull for each offer
  const Link* link = job.RouteTo(pull->source).link;
  return link == nullptr ? ErrorCode::kNodeUnreachable : link->failure;
}

ErrorCode Pulls::FindDestination(const shm::TransferLayout& transfer, Pull* pull) {
  const shm::Location& where = transfer.destination;
  if (where.region == 0) {
    pull->address = where.address;
    pull->stage = &pull->rank->job->private_stage;
    return pull->rank->session->private_memory_reachable ? ErrorCode::kOk
                                                         : ErrorCode::kPermissionDenied;
  }
  ServedRegion* const region = pull->rank->FindRegion(where, pull->size_bytes);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  const Region& memory = *region->memory.region;
  if (!memory.by_stream) {
    pull->mapped = memory.mapping.base() + where.address;
  } else if (!memory.is_staged()) {
    return ErrorCode::kUnsupported;  // its rank was told to stage by itself
  } else {
    pull->device_region = memory.id;
    pull->address = where.address;
    pull->device =
        memory.device_memory == nullptr ? nullptr : memory.device_memory->base() + where.address;
    pull->stage = &pull->rank->job->device_stage;
    pull->plan = rules_.Plan(pull->size_bytes, rules_.blocks_to_device);
  }
  pull->region = region;
  ++region->users;
  return ErrorCode::kOk;
}

// Does what comes before the first piece. It claims the memory first: a peer does not keep what it
// has staged for us for as long as pinning may take. False: it waits, or has failed.
bool Pulls::Ask(PullId id, Pull& pull, uint64_t now_ns) {
  if (pull.mapped != nullptr && pull.kind != Incoming::Kind::kParked) {
    const ClaimableRegion& memory = pull.region->memory;
    const ErrorCode code =
        registrations_.Hold(memory, static_cast<uint64_t>(pull.mapped - memory.base()),
                            pull.size_bytes, UseFor::kTransfer, now_ns, &pull.claim);
    if (code == ErrorCode::kWouldBlock) {
      wants_memory_.push_back(static_cast<uint64_t>(id));
      pull.queued = true;
      return false;
    }
    if (code != ErrorCode::kOk) {
      Fail(id, pull, code, now_ns);
      return false;
    }
  }
  pull.asked = true;
  pull.heard_ns = now_ns;
  if (pull.kind == Incoming::Kind::kPrivate) {
    const WirePull wire{
        static_cast<uint64_t>(id), pull.send_request,
        pull.send_generation,      pull.size_bytes,
        LongestBlock(pull),        pull.device_region != 0 ? rules_.blocks_to_device : 0};
    outbound_.Post(*pull.rank->job, PacketKind::kPull, pull.rank->rank(), pull.source, wire,
                   now_ns);
  }
  return true;
}

// That the sender's daemon may stage: it is read in one piece.
uint32_t Pulls::LongestBlock(const Pull& pull) const {
  const uint64_t longest = pull.stage == nullptr ? UINT32_MAX : pull.stage->block_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(longest, UINT32_MAX));
}

void Pulls::OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block,
                         uint64_t now_ns) {
  const PullId id{block.pull};
  Pull* pull = pulls_.Find(id);
  if (pull == nullptr || pull->rank != &rank || pull->source != source ||
      pull->kind != Incoming::Kind::kPrivate || pull->error != ErrorCode::kOk) {
    return;  // the pull has failed meanwhile
  }
  pull->heard_ns = now_ns;
  if (block.error != 0) {
    Fail(id, *pull, static_cast<ErrorCode>(block.error), now_ns);
    return;
  }
  if (block.size_bytes == 0 || block.size_bytes > LongestBlock(*pull) ||
      block.offset > pull->size_bytes || block.size_bytes > pull->size_bytes - block.offset ||
      pull->announced.size() >= kMaxAnnounced) {
    Fail(id, *pull, ErrorCode::kCorrupt, now_ns);
    return;
  }
  pull->announced.push_back(block);
  pull->announcing =
      std::max(pull->announcing, pull->reading + static_cast<uint32_t>(pull->announced.size()));
  if (!pull->queued) {
    Step(id, *pull, now_ns);
  }
}

// A sender's daemon that announces more than usual has given this message a larger share there.
bool Pulls::MayBegin(const Pull& pull) {
  const bool staged = pull.stage != nullptr && pull.stage->pool != nullptr;
  const uint32_t usual = std::max(kPiecesUnderWay, pull.announcing);
  return pull.error == ErrorCode::kOk &&
         pull.under_way <
             (staged ? pull.stage->pool->Window(StagingUse::kIncoming, pull.rank->rank(), usual)
                     : usual);
}

// Begins what can be begun, and ends the pull if that was all.
void Pulls::Step(PullId id, Pull& pull, uint64_t now_ns) {
  if (!pull.asked && !Ask(id, pull, now_ns)) {
    return;
  }
  while (HasNextPiece(pull) && MayBegin(pull)) {
    const Want want = BeginPiece(id, pull, now_ns);
    if (want != Want::kNothing) {
      if (want == Want::kSlot) {
        wants_slot_.push_back(static_cast<uint64_t>(id));
      } else {
        pull.stage->pool->waiters(StagingUse::kIncoming)
            .Push(pull.rank->rank(), static_cast<uint64_t>(id));
      }
      pull.queued = true;
      return;
    }
    pull.heard_ns = now_ns;
  }
  EndIfDone(id, pull, now_ns);
}

void Pulls::Advance(uint64_t now_ns) {
  if (seen_changes_ != registrations_.changes()) {
    seen_changes_ = registrations_.changes();
    ResumeAll(wants_memory_, now_ns);
  }
  Resume(wants_slot_, now_ns);
  for (const auto& pool : depot_.pools()) {
    Advance(*pool, now_ns);
  }
}

void Pulls::Advance(StagingPool& pool, uint64_t now_ns) {
  FairQueue& waiters = pool.waiters(StagingUse::kIncoming);
  if (!pool.failure().ok()) {
    for (const uint64_t waiter : waiters.PopAll()) {
      if (Pull* pull = pulls_.Find(PullId{waiter}); pull != nullptr) {
        pull->queued = false;
        Fail(PullId{waiter}, *pull, pool.failure().code(), now_ns);
      }
    }
  }
  while (!waiters.empty() && pool.HasFree(StagingUse::kIncoming)) {
    const PullId id{waiters.Pop()};
    if (Pull* pull = pulls_.Find(id); pull != nullptr) {
      pull->queued = false;
      pull->has_turn = true;
      Step(id, *pull, now_ns);
    }
    if (Pull* pull = pulls_.Find(id); pull != nullptr) {
      pull->has_turn = false;  // whether it took the block or could not
    }
  }
}

// Resumes pulls in order, until one of them is queued again.
void Pulls::Resume(std::deque<uint64_t>& queue, uint64_t now_ns) {
  for (size_t n = queue.size(); n > 0; --n) {
    const PullId id{queue.front()};
    queue.pop_front();
    Pull* pull = pulls_.Find(id);
    if (pull == nullptr) {
      continue;
    }
    pull->queued = false;
    Step(id, *pull, now_ns);
    pull = pulls_.Find(id);
    if (pull != nullptr && pull->queued) {
      return;
    }
  }
}

// Each: none of them waits for what another one gets.
void Pulls::ResumeAll(std::deque<uint64_t>& queue, uint64_t now_ns) {
  for (size_t n = queue.size(); n > 0; --n) {
    const PullId id{queue.front()};
    queue.pop_front();
    if (Pull* pull = pulls_.Find(id); pull != nullptr) {
      pull->queued = false;
      Step(id, *pull, now_ns);
    }
  }
}

void Pulls::Fail(PullId id, Pull& pull, ErrorCode error, uint64_t now_ns) {
  if (pull.error == ErrorCode::kOk) {
    pull.error = error;
  }
  EndIfDone(id, pull, now_ns);
}

void Pulls::EndIfDone(PullId id, Pull& pull, uint64_t now_ns) {
  if (pull.under_way == 0 && (pull.error != ErrorCode::kOk || pull.done_bytes >= pull.size_bytes)) {
    End(id, pull, now_ns);
  }
}

void Pulls::End(PullId id, Pull& pull, uint64_t now_ns) {
  ServedRank& rank = *pull.rank;
  if (rank.job->trace.on()) {
    Trace(pull, {}, RecordOf(pull, TraceKind::kPull, pull.begun_ns), pull.error);
  }
  if (pull.region != nullptr) {
    --pull.region->users;
  }
  if (pull.send_request != 0) {
    const WireResult result{pull.send_request, pull.send_generation,
                            static_cast<int32_t>(pull.error), 0};
    outbound_.Post(*rank.job, PacketKind::kSendDone, rank.rank(), pull.source, result, now_ns);
  }
  --rank.operations;
  rank.Answer(shm::DescriptorKind::kPullDone, pull.source, pull.request, pull.generation,
              pull.error);
  pulls_.Erase(id);
}

void Pulls::CheckDeadlines(uint64_t now_ns) {
  ResumeAll(wants_memory_, now_ns);
  pulls_.ForEach([&](PullId id, Pull& pull) {
    // A pull that waits for the network or for us ends by itself.
    if (pull.under_way == 0 && !pull.queued && now_ns - pull.heard_ns > timeout_ns_) {
      Fail(id, pull, ErrorCode::kTimeout, now_ns);
    }
  });
}

template <typename Predicate>
void Pulls::FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches) {
  pulls_.ForEach([&](PullId id, Pull& pull) {
    if (matches(pull)) {
      Fail(id, pull, error, now_ns);
    }
  });
}

void Pulls::FailOf(const ServedRank* rank, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [rank](const Pull& pull) { return pull.rank == rank; });
}

void Pulls::FailFrom(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [job, source](const Pull& pull) {
    return pull.rank->job == job && pull.source == source && pull.kind != Incoming::Kind::kParked;
  });
}

void Pulls::FailInto(const ServedRegion* region, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [region](const Pull& pull) { return pull.region == region; });
}

}  // namespace ferry::daemon
