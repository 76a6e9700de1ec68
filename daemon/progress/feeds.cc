#include "daemon/progress/feeds.h"

#include <algorithm>

namespace ferry::daemon {
namespace {

constexpr uint32_t kBlocksInUse = 4;  // of one feed

}  // namespace

void Feeds::OnOffer(ServedRank& rank, uint32_t request, const Offer& offer) {
  if (request >= rank.offers.size()) {
    if (!offer.valid) {
      return;
    }
    rank.offers.resize(request + 1);
  }
  rank.offers[request] = offer;
}

void Feeds::OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns) {
  const Offer* offer =
      pull.send_request < rank.offers.size() ? &rank.offers[pull.send_request] : nullptr;
  if (offer == nullptr || !offer->valid || offer->generation != pull.send_generation ||
      offer->destination != destination || pull.size_bytes > offer->size_bytes ||
      pull.size_bytes == 0) {
    Refuse(rank, destination, pull, ErrorCode::kInvalidBuffer, now_ns);
    return;
  }
  if (!rank.session->private_memory_reachable) {
    Refuse(rank, destination, pull, ErrorCode::kPermissionDenied, now_ns);
    return;
  }
  rank.offers[pull.send_request].valid = false;  // one pull for each offer
  const FeedId id = feeds_.Insert();
  Feed& feed = *feeds_.Find(id);
  feed.rank = &rank;
  feed.request = pull.send_request;
  feed.generation = pull.send_generation;
  feed.destination = destination;
  feed.pull = pull.pull;
  feed.address = offer->address;
  feed.size_bytes = pull.size_bytes;
  feed.heard_ns = now_ns;
  ++rank.operations;
  Step(id, feed, now_ns);
}

void Feeds::Refuse(ServedRank& rank, uint32_t destination, const WirePull& pull, ErrorCode error,
                   uint64_t now_ns) {
  WireBlock block{};
  block.pull = pull.pull;
  block.error = static_cast<int32_t>(error);
  outbound_.Post(*rank.job, PacketKind::kBlockReady, rank.rank(), destination, block, now_ns);
}

// Begins as many blocks as there are and may be.
void Feeds::Step(FeedId id, Feed& feed, uint64_t now_ns) {
  while (!feed.queued && !feed.cancelled && feed.begun_bytes < feed.size_bytes &&
         feed.blocks < kBlocksInUse) {
    if (!wants_block_.empty() || !BeginBlock(id, feed)) {
      wants_block_.push_back(id);
      feed.queued = true;
      return;
    }
    feed.heard_ns = now_ns;
  }
}

bool Feeds::BeginBlock(FeedId id, Feed& feed) {
  StagingBlock* staging = staging_.Take(StagingUse::kOutgoing);
  if (staging == nullptr) {
    return false;
  }
  const uint64_t longest = staging_.block_bytes();
  const uint64_t wanted = feed.begun_bytes == 0 ? std::max<uint64_t>(longest / 4, 1) : longest;
  const FeedBlockId block_id = blocks_.Insert();
  Block& block = *blocks_.Find(block_id);
  block.self = block_id;
  block.feed = id;
  block.staging = staging;
  block.offset = feed.begun_bytes;
  block.size_bytes = static_cast<uint32_t>(std::min(wanted, feed.size_bytes - feed.begun_bytes));
  CopyTask task;
  task.direction = CopyTask::Direction::kFromProcess;
  task.pid = feed.rank->session->pid;
  task.remote_address = feed.address + block.offset;
  task.local = staging->base;
  task.size_bytes = block.size_bytes;
  task.context = &block;
  if (!copies_.Submit(task)) {
    staging_.Give(staging);
    blocks_.Erase(block_id);
    return false;
  }
  ++feed.blocks;
  feed.begun_bytes += block.size_bytes;
  return true;
}

void Feeds::OnCopied(const CopyTask& task, uint64_t now_ns) {
  Block& block = *static_cast<Block*>(task.context);
  const FeedId id = block.feed;
  Feed& feed = *feeds_.Find(id);
  feed.heard_ns = now_ns;
  if (!feed.cancelled && task.result == ErrorCode::kOk) {
    block.announced = true;
    Announce(feed, block, ErrorCode::kOk, now_ns);
    return;
  }
  staging_.Give(block.staging);
  const Block failed = block;
  blocks_.Erase(failed.self);
  --feed.blocks;
  if (!feed.cancelled) {
    Announce(feed, failed, task.result, now_ns);
    Cancel(id, feed);
  } else {
    EndIfIdle(id, feed);
  }
}

void Feeds::Announce(const Feed& feed, const Block& block, ErrorCode error, uint64_t now_ns) {
  WireBlock wire{};
  wire.pull = feed.pull;
  wire.block = static_cast<uint64_t>(block.self);
  wire.offset = block.offset;
  wire.key = block.staging->registration.key;
  wire.address = block.staging->registration.remote_base;
  wire.size_bytes = block.size_bytes;
  wire.error = static_cast<int32_t>(error);
  outbound_.Post(*feed.rank->job, PacketKind::kBlockReady, feed.rank->rank(), feed.destination,
                 wire, now_ns);
}

void Feeds::OnBlockDone(const ServedRank& rank, uint32_t destination, const WireBlockDone& done,
                        uint64_t now_ns) {
  const FeedBlockId block_id{done.block};
  Block* block = blocks_.Find(block_id);
  if (block == nullptr || !block->announced) {
    return;
  }
  const FeedId id = block->feed;
  Feed& feed = *feeds_.Find(id);
  if (feed.rank != &rank || feed.destination != destination) {
    return;
  }
  feed.heard_ns = now_ns;
  feed.done_bytes += block->size_bytes;
  staging_.Give(block->staging);
  blocks_.Erase(block_id);
  --feed.blocks;
  Step(id, feed, now_ns);
  EndIfIdle(id, feed);
}

void Feeds::OnResult(ServedRank& rank, uint32_t destination, const WireResult& result) {
  if (result.send_request < rank.offers.size()) {
    Offer& offer = rank.offers[result.send_request];
    if (offer.generation == result.send_generation && offer.destination == destination) {
      offer.valid = false;
    }
  }
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.rank == &rank && feed.request == result.send_request &&
        feed.generation == result.send_generation && feed.destination == destination) {
      Cancel(id, feed);
    }
  });
}

void Feeds::Advance(uint64_t now_ns) {
  while (!wants_block_.empty() && staging_.HasFree(StagingUse::kOutgoing)) {
    const FeedId id = wants_block_.front();
    wants_block_.pop_front();
    Feed* feed = feeds_.Find(id);
    if (feed == nullptr) {
      continue;
    }
    feed->queued = false;
    if (!feed->cancelled && BeginBlock(id, *feed)) {
      feed->heard_ns = now_ns;
      // The next one waits its turn behind the other feeds.
      if (feed->begun_bytes < feed->size_bytes && feed->blocks < kBlocksInUse) {
        feed->queued = true;
        wants_block_.push_back(id);
      }
    }
  }
}

void Feeds::CheckDeadlines(uint64_t now_ns) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.blocks != 0 && now_ns - feed.heard_ns > timeout_ns_) {
      Cancel(id, feed);
    }
  });
}

// Announced blocks may be being read by the peer this very moment.
void Feeds::Cancel(FeedId id, Feed& feed) {
  feed.cancelled = true;
  blocks_.ForEach([&](FeedBlockId block_id, Block& block) {
    if (block.feed == id && block.announced) {
      staging_.GiveTainted(block.staging);
      blocks_.Erase(block_id);
      --feed.blocks;
    }
  });
  EndIfIdle(id, feed);
}

void Feeds::EndIfIdle(FeedId id, Feed& feed) {
  if (feed.blocks == 0 && (feed.cancelled || feed.done_bytes >= feed.size_bytes)) {
    --feed.rank->operations;
    feeds_.Erase(id);
  }
}

void Feeds::CancelOf(const ServedRank* rank) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.rank == rank) {
      Cancel(id, feed);
    }
  });
}

void Feeds::CancelTo(const Job* job, uint32_t destination) {
  feeds_.ForEach([&](FeedId id, Feed& feed) {
    if (feed.rank->job == job && feed.destination == destination) {
      Cancel(id, feed);
    }
  });
}

}  // namespace ferry::daemon
