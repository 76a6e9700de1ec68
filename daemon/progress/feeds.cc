#include "daemon/progress/feeds.h"

#include <algorithm>
#include <utility>

#include "daemon/progress/records.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kBlocksInUse = 4;  // of one feed, unless StagingPool::Window says otherwise

}  // namespace

// ---- Offers ------------------------------------------------------------------------------------

void Feeds::OnOffer(ServedRank& rank, uint32_t request, Offer offer) {
  if (request >= rank.offers.size()) {
    rank.offers.resize(request + 1);
  }
  Void(rank, &rank.offers[request], Peer::kMayRead);
  rank.carried_bytes += offer.carried_bytes;
  if (offer.region != nullptr) {
    ++offer.region->offered;
  }
  rank.offers[request] = std::move(offer);
}

void Feeds::Void(ServedRank& rank, Offer* offer, Peer peer) {
  rank.carried_bytes -= std::exchange(offer->carried_bytes, 0);
  if (offer->region != nullptr) {
    --offer->region->offered;
  }
  offer->region = nullptr;
  offer->state = Offer::State::kNone;
  offer->error = ErrorCode::kOk;
  if (peer == Peer::kIsThrough) {
    offer->claim.Drop();
  } else {
    offer->claim.DropLater();  // a key that it does not find would cost it the connection
  }
}

void Feeds::ForgetRegion(ServedRank& rank, const ServedRegion* region) {
  for (Offer& offer : rank.offers) {
    if (offer.region == region) {
      Void(rank, &offer, Peer::kMayRead);
    }
  }
}

void Feeds::OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns) {
  Offer* offer = pull.send_request < rank.offers.size() ? &rank.offers[pull.send_request] : nullptr;
  const bool offered = offer != nullptr && (offer->state == Offer::State::kPrivate ||
                                            offer->state == Offer::State::kDevice);
  if (!offered || offer->generation != pull.send_generation || offer->destination != destination ||
      pull.size_bytes > offer->size_bytes || pull.size_bytes == 0 ||
      pull.longest_bytes < kShortestBlockBytes) {
    const bool known = offer != nullptr && offer->generation == pull.send_generation &&
                       offer->destination == destination && offer->error != ErrorCode::kOk;
    Refuse(*rank.job, rank.rank(), destination, pull.pull,
           known ? offer->error : ErrorCode::kInvalidBuffer, now_ns);
    return;
  }
  Feed found;
  if (const ErrorCode error = FindSource(rank, *offer, pull, &found); error != ErrorCode::kOk) {
    Refuse(*rank.job, rank.rank(), destination, pull.pull, error, now_ns);
    return;
  }
  const FeedId id = feeds_.Insert();
  Feed& feed = *feeds_.Find(id);
  feed = found;
  feed.job = rank.job;
  feed.rank = &rank;
  feed.source = rank.rank();
  feed.destination = destination;
  feed.request = pull.send_request;
  feed.generation = pull.send_generation;
  feed.pull = pull.pull;
  feed.size_bytes = pull.size_bytes;
  feed.heard_ns = now_ns;
  feed.begun_ns = rank.job->trace.Now(now_ns);
  if (feed.region != nullptr) {
    ++feed.region->users;
  }
  Void(rank, offer, Peer::kIsThrough);  // one pull for each offer
  ++rank.operations;
  Step(id, feed, now_ns);
}

ErrorCode Feeds::FindSource(ServedRank& rank, const Offer& offer, const WirePull& pull,
                            Feed* feed) const {
  if (rank.ended) {
    return ErrorCode::kPeerDied;
  }
  uint32_t blocks = pull.blocks;
  if (offer.state == Offer::State::kDevice) {
    feed->stage = &rank.job->device_stage;
    const Region& memory = *offer.region->memory.region;
    feed->region = offer.region;
    feed->region_id = memory.id;
    feed->address = offer.address;
    feed->device =
        memory.device_memory == nullptr ? nullptr : memory.device_memory->base() + offer.address;
    blocks = std::max(blocks, rules_.blocks_to_host);
  } else if (!rank.session->private_memory_reachable) {
    return ErrorCode::kPermissionDenied;
  } else {
    feed->stage = &rank.job->private_stage;
    feed->address = offer.address;
  }
  if (blocks != 0) {
    feed->plan = rules_.Plan(pull.size_bytes, blocks);
  }
  feed->longest_bytes = std::min<uint64_t>(feed->stage->block_bytes, pull.longest_bytes);
  return ErrorCode::kOk;
}

void Feeds::Refuse(Job& job, uint32_t source, uint32_t destination, uint64_t pull, ErrorCode error,
                   uint64_t now_ns) {
  WireBlock block{};
  block.pull = pull;
  block.error = static_cast<int32_t>(error);
  outbound_.Post(job, PacketKind::kBlockReady, source, destination, block, now_ns);
}

// ---- Blocks ------------------------------------------------------------------------------------

bool Feeds::MayBegin(const Feed& feed) {
  if (feed.cancelled || feed.begun_bytes >= feed.size_bytes) {
    return false;
  }
  StagingPool* const pool = feed.stage->pool;
  const uint32_t window = pool == nullptr
                              ? kBlocksInUse
                              : pool->Window(StagingUse::kOutgoing, feed.source, kBlocksInUse);
  return feed.copying + feed.announced < window;
}

// Begins as many blocks as there are and may be.
void Feeds::Step(FeedId id, Feed& feed, uint64_t now_ns) {
  if (feed.queued || !MayBegin(feed)) {
    return;
  }
  if (const ErrorCode error = depot_.Provide(*feed.stage); error != ErrorCode::kOk) {
    Cancel(id, feed, error, now_ns);
    return;
  }
  auto& waiters = feed.stage->pool->waiters(StagingUse::kOutgoing);
  while (!feed.queued && MayBegin(feed)) {
    if (!waiters.empty() || !BeginBlock(id, feed, now_ns)) {
      waiters.Push(feed.source, static_cast<uint64_t>(id));
      feed.queued = true;
    }
  }
}

engine::Block Feeds::NextBlock(const Feed& feed) const {
  const uint64_t longest = feed.longest_bytes;
  if (feed.plan) {
    return feed.plan->Next(feed.begun_bytes, longest);
  }
  const uint64_t wanted = feed.begun_bytes == 0 ? std::max<uint64_t>(longest / 4, 1) : longest;
  return {feed.begun_bytes, std::min(wanted, feed.size_bytes - feed.begun_bytes)};
}

bool Feeds::BeginBlock(FeedId id, Feed& feed, uint64_t now_ns) {
  StagingBlock* staging = feed.stage->pool->Take(StagingUse::kOutgoing, feed.source);
  if (staging == nullptr) {
    return false;
  }
  const engine::Block next = NextBlock(feed);
  feed.stage->pool->Charge(*staging, next.size_bytes);
  const FeedBlockId block_id = blocks_.Insert();
  Block& block = *blocks_.Find(block_id);
  block.self = block_id;
  block.feed = id;
  block.staging = staging;
  block.offset = next.offset_bytes;
  block.size_bytes = static_cast<uint32_t>(next.size_bytes);
  CopyTask task;
  task.direction = CopyTask::Direction::kFromProcess;
  task.lane = feed.rank->session->local_index;
  task.pid = feed.rank->session->pid;
  task.remote_address = feed.address + block.offset;
  task.region = feed.region_id;
  task.device = feed.device == nullptr ? nullptr : feed.device + block.offset;
  task.local = staging->base;
  task.size_bytes = block.size_bytes;
  task.context = &block;
  task.timed = feed.job->trace.on();
  (void)feed.stage->copier->Submit(task);  // there is room for every block
  ++feed.copying;
  feed.begun_bytes += block.size_bytes;
  feed.heard_ns = now_ns;
  return true;
}

void Feeds::OnCopied(const CopyTask& task, uint64_t now_ns) {
  Block& block = *static_cast<Block*>(task.context);
  const FeedId id = block.feed;
  Feed& feed = *feeds_.Find(id);
  feed.heard_ns = now_ns;
  --feed.copying;
  if (task.timed && feed.job->trace.on()) {
    TraceRecord record = RecordOf(feed, TraceKind::kCopyIn, task.begun_ns);
    record.end_ns = task.ended_ns;
    record.place = task.place;
    record.worker = task.worker;
    Trace(feed, block, record, task.result);
  }
  if (!feed.cancelled && task.result == ErrorCode::kOk) {
    block.announced = true;
    block.begun_ns = feed.job->trace.Now(now_ns);
    ++feed.announced;
    Announce(feed, block, now_ns);
    return;
  }
  if (!task.abandoned) {
    feed.stage->pool->Give(block.staging);
  }
  blocks_.Erase(block.self);
  Cancel(id, feed, task.result, now_ns);
}

void Feeds::Announce(const Feed& feed, const Block& block, uint64_t now_ns) {
  WireBlock wire{};
  wire.pull = feed.pull;
  wire.block = static_cast<uint64_t>(block.self);
  wire.offset = block.offset;
  wire.key = block.staging->pinned.region().key;
  wire.address = block.staging->pinned.region().remote_base;
  wire.size_bytes = block.size_bytes;
  outbound_.Post(*feed.job, PacketKind::kBlockReady, feed.source, feed.destination, wire, now_ns);
}

void Feeds::OnBlockDone(const Job& job, uint32_t source, uint32_t destination,
                        const WireBlockDone& done, uint64_t now_ns) {
  const FeedBlockId block_id{done.block};
  Block* block = blocks_.Find(block_id);
  if (block == nullptr || !block->announced) {
    return;
  }
  const FeedId id = block->feed;
  Feed& feed = *feeds_.Find(id);
  if (feed.job != &job || feed.source != source || feed.destination != destination) {
    return;
  }
  feed.heard_ns = now_ns;
  feed.done_bytes += block->size_bytes;
  TraceLent(feed, *block, ErrorCode::kOk);
  feed.stage->pool->Give(block->staging);
  blocks_.Erase(block_id);
  --feed.announced;
  Step(id, feed, now_ns);
  EndIfDone(id, feed);
}

void Feeds::Advance(uint64_t now_ns) {
  for (const auto& pool : depot_.pools()) {
    Advance(*pool, now_ns);
  }
}

void Feeds::Advance(StagingPool& pool, uint64_t now_ns) {
  auto& waiters = pool.waiters(StagingUse::kOutgoing);
  if (!pool.failure().ok()) {
    for (const uint64_t waiter : waiters.PopAll()) {
      if (Feed* feed = feeds_.Find(FeedId{waiter}); feed != nullptr) {
        feed->queued = false;
        Cancel(FeedId{waiter}, *feed, pool.failure().code(), now_ns);
      }
    }
  }
  while (!waiters.empty() && pool.HasFree(StagingUse::kOutgoing)) {
    const FeedId id{waiters.Pop()};
    Feed* feed = feeds_.Find(id);
    if (feed == nullptr) {
      continue;
    }
    feed->queued = false;
    if (MayBegin(*feed) && BeginBlock(id, *feed, now_ns) && MayBegin(*feed)) {
      feed->queued = true;  // for the next one, behind the other feeds of its rank
      waiters.Push(feed->source, static_cast<uint64_t>(id));
    }
  }
}

// ---- Ending ------------------------------------------------------------------------------------

void Feeds::OnResult(Job& job, uint32_t source, uint32_t destination, const WireResult& result) {
  ServedRank* rank = job.served[source];
  if (rank != nullptr && result.send_request < rank->offers.size()) {
    Offer& offer = rank->offers[result.send_request];
    if (offer.generation == result.send_generation && offer.destination == destination) {
      TraceOffer(*rank, offer, result);
      Void(*rank, &offer, Peer::kIsThrough);
    }
  }
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.job == &job && feed.source == source && feed.destination == destination &&
        feed.request == result.send_request && feed.generation == result.send_generation) {
      feed.cancelled = true;
      NoteError(static_cast<ErrorCode>(result.error), &feed);
      TakeBack(id, feed, Reuse::kAtOnce);  // the peer has nothing under way
    }
  });
}

void Feeds::Cancel(FeedId id, Feed& feed, ErrorCode error, uint64_t now_ns) {
  if (!feed.cancelled) {
    feed.cancelled = true;
    NoteError(error, &feed);
    feed.heard_ns = now_ns;
    Refuse(*feed.job, feed.source, feed.destination, feed.pull, error, now_ns);
  }
  EndIfDone(id, feed);
}

void Feeds::NoteError(ErrorCode error, Feed* feed) {
  feed->error = feed->error == ErrorCode::kOk ? error : feed->error;
}

// Blocks that the peer knows of can be used again.
void Feeds::TakeBack(FeedId id, Feed& feed, Reuse reuse) {
  blocks_.ForEach([&](FeedBlockId block_id, Block& block) {
    if (block.feed == id && block.announced) {
      TraceLent(feed, block, feed.error);
      if (reuse == Reuse::kAtOnce) {
        feed.stage->pool->Give(block.staging);
      } else {
        feed.stage->pool->GiveTainted(block.staging);
      }
      blocks_.Erase(block_id);
      --feed.announced;
    }
  });
  EndIfDone(id, feed);
}

void Feeds::EndIfDone(FeedId id, Feed& feed) {
  const bool all_begun = feed.cancelled || feed.begun_bytes >= feed.size_bytes;
  if (all_begun && feed.copying == 0 && feed.rank != nullptr) {
    --feed.rank->operations;
    feed.rank = nullptr;
    if (feed.region != nullptr) {
      --std::exchange(feed.region, nullptr)->users;
    }
  }
  if (feed.rank == nullptr && feed.announced == 0) {
    if (feed.job->trace.on()) {
      Trace(feed, {}, RecordOf(feed, TraceKind::kFeed, feed.begun_ns), feed.error);
    }
    feeds_.Erase(id);
  }
}

void Feeds::CheckDeadlines(uint64_t now_ns) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    // The peer's own deadline comes first.
    if (feed.announced != 0 && now_ns - feed.heard_ns > 2 * timeout_ns_) {
      Cancel(id, feed, ErrorCode::kTimeout, now_ns);
      if (Feed* left = feeds_.Find(id); left != nullptr) {
        TakeBack(id, *left, Reuse::kUnderAnotherKey);
      }
    }
  });
}

void Feeds::CancelOf(ServedRank& rank, ErrorCode error, uint64_t now_ns) {
  for (Offer& offer : rank.offers) {
    if (offer.state == Offer::State::kPrivate || offer.state == Offer::State::kDevice) {
      Void(rank, &offer, Peer::kIsThrough);
    }
  }
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.rank == &rank) {
      Cancel(id, feed, error, now_ns);
    }
  });
}

void Feeds::CancelFrom(const ServedRegion* region, ErrorCode error, uint64_t now_ns) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.region == region) {
      Cancel(id, feed, error, now_ns);
    }
  });
}

void Feeds::OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns) {
  for (ServedRank* rank : job.served) {
    for (uint32_t i = 0; rank != nullptr && i < rank->offers.size(); ++i) {
      if (rank->offers[i].destination == destination) {
        Void(*rank, &rank->offers[i], Peer::kMayRead);
      }
    }
  }
  // The daemon of a dead rank still answers; one that is gone does not.
  const Link* link = job.RouteTo(destination).link;
  const bool answers = link != nullptr && link->failure == ErrorCode::kOk;
  // Its daemon tells our rank so, perhaps before it has heard of the end by itself.
  const ErrorCode ended = job.ended[destination];
  const ErrorCode error = ended == ErrorCode::kNotFound ? ErrorCode::kPeerDied : ended;
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.job != &job || feed.destination != destination) {
      return;
    }
    Cancel(id, feed, error, now_ns);
    if (Feed* left = feeds_.Find(id); left != nullptr && !answers) {
      TakeBack(id, *left, Reuse::kUnderAnotherKey);
    }
  });
}

void Feeds::Drop(const Job* job) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.job == job) {
      feed.cancelled = true;
      TakeBack(id, feed, Reuse::kUnderAnotherKey);
    }
  });
}

// ---- Trace -------------------------------------------------------------------------------------

// Ends now, unless that is changed.
TraceRecord Feeds::RecordOf(const Feed& feed, TraceKind kind, uint64_t begin_ns) {
  TraceRecord record = daemon::RecordOf(*feed.job, kind, feed.source, feed.destination, begin_ns);
  record.end_ns = MonotonicNs();
  record.message = TraceMessage(feed.request, feed.generation);
  return record;
}

// An empty block stands for the feed as a whole.
void Feeds::Trace(const Feed& feed, const Block& block, TraceRecord record, ErrorCode error) {
  record.offset = block.offset;
  record.bytes = block.size_bytes != 0 ? block.size_bytes : feed.size_bytes;
  record.block = BlockNumber(feed.stage, block.staging);
  record.error = TraceError(error);
  feed.job->trace.Put(record);
}

void Feeds::TraceLent(const Feed& feed, const Block& block, ErrorCode error) {
  if (feed.job->trace.on()) {
    TraceRecord record = RecordOf(feed, TraceKind::kLent, block.begun_ns);
    record.place = TracePlace::kNic;
    Trace(feed, block, record, error);
  }
}

void Feeds::TraceOffer(const ServedRank& rank, const Offer& offer, const WireResult& result) {
  if (rank.job->trace.on()) {
    TraceRecord record = daemon::RecordOf(*rank.job, TraceKind::kOffer, rank.rank(),
                                          offer.destination, offer.begun_ns);
    record.end_ns = MonotonicNs();
    record.message = TraceMessage(result.send_request, result.send_generation);
    record.bytes = offer.size_bytes;
    record.error = TraceError(static_cast<ErrorCode>(result.error));
    rank.job->trace.Put(record);
  }
}

void Feeds::TraceUnfinished() {
  feeds_.ForEach([](FeedId, const Feed& feed) {
    if (feed.job->trace.on()) {
      Trace(feed, {}, RecordOf(feed, TraceKind::kFeed, feed.begun_ns), ErrorCode::kWouldBlock);
    }
  });
}

// ---- Looking in --------------------------------------------------------------------------------

void Feeds::Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports) {
  feeds_.ForEach([&](FeedId, const Feed& feed) {
    if (feed.rank != &rank) {
      return;
    }
    TransferReport report{false, feed.request, feed.destination, feed.done_bytes, feed.size_bytes};
    report.silent_ns = now_ns - std::min(now_ns, feed.heard_ns);
    report.wants = feed.queued ? "a staging block" : nullptr;
    reports->push_back(report);
  });
}

}  // namespace ferry::daemon
