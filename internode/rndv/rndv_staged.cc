#include "internode/rndv/rndv_staged.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {
namespace {

constexpr uint32_t kPiecesUnderWay = 4;  // of one feed, unless StagingPool::Window says otherwise

}  // namespace

// ---- Offers ------------------------------------------------------------------------------------

void Feeds::OnOffer(ServedRank& rank, uint32_t request, Offer offer) {
  Offer& place = rank.OfferAt(request);
  Void(rank, &place, Peer::kMayRead);
  rank.carried_bytes += offer.carried_bytes;
  if (offer.region != nullptr) {
    ++offer.region->offered;
    if (offer.region->memory.by_stream) {
      depot_.CountDevice(offer.state == Offer::State::kHeap);
    }
  }
  rank.reached_offers += offer.is_reached() ? 1 : 0;
  place = std::move(offer);
}

void Feeds::Void(ServedRank& rank, Offer* offer, Peer peer) {
  rank.carried_bytes -= std::exchange(offer->carried_bytes, 0);
  rank.reached_offers -= offer->is_reached() ? 1 : 0;
  if (offer->region != nullptr) {
    --offer->region->offered;
  }
  offer->region = nullptr;
  offer->reached = {};
  offer->state = Offer::State::kNone;
  offer->error = ErrorCode::kOk;
  offer->use = {};
  if (offer->lent != 0) {
    rank.GiveOffer(std::exchange(offer->lent, 0));
  }
  if (peer == Peer::kIsThrough) {
    offer->claim.Drop();
  } else {
    offer->claim.DropLater();  // a key that it does not find would cost it the connection
  }
}

void Feeds::ForgetRegion(ServedRank& rank, const ServedRegion* region) {
  rank.ForEachOffer([&](Offer& offer) {
    if (offer.region == region) {
      Void(rank, &offer, Peer::kMayRead);
    }
  });
}

void Feeds::OnPull(ServedRank& rank, uint32_t destination, const WirePull& pull, uint64_t now_ns) {
  Offer* offer = rank.FindOffer(pull.send_request);
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
  const TransferId id = Insert(rank, now_ns);
  Feed& feed = *transfers_.Find(id);
  feed.peer = destination;
  feed.request = feed.send_request = pull.send_request;
  feed.generation = feed.send_generation = pull.send_generation;
  feed.pull = pull.pull;
  feed.size_bytes = pull.size_bytes;
  if (const ErrorCode error = FindSource(*offer, pull, &feed); error != ErrorCode::kOk) {
    Fail(id, feed, error, now_ns);
    return;
  }
  Void(rank, offer, Peer::kIsThrough);  // one pull for each offer
  Step(id, feed, now_ns);
}

ErrorCode Feeds::FindSource(const Offer& offer, const WirePull& pull, Feed* feed) const {
  if (feed->rank->ended) {
    return ErrorCode::kPeerDied;
  }
  const bool is_device = offer.state == Offer::State::kDevice;
  const ErrorCode error =
      is_device ? LieIn(offer.region, offer.address, feed) : LieInPrivate(offer.address, feed);
  if (error != ErrorCode::kOk) {
    return error;
  }
  if (const uint32_t blocks = std::max(pull.blocks, is_device ? rules_.blocks_to_host : 0);
      blocks != 0) {
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

// ---- Pieces ------------------------------------------------------------------------------------

bool Feeds::MayBegin(const Feed& feed) {
  return feed.begun_bytes < feed.size_bytes && feed.under_way < Window(feed, kPiecesUnderWay);
}

ErrorCode Feeds::BeginPiece(TransferId id, Feed& feed, uint64_t now_ns) {
  StagingBlock* block = nullptr;
  if (const ErrorCode code = TakeBlock(depot_, feed, &block); code != ErrorCode::kOk) {
    return code;
  }
  const engine::Block next = NextRange(feed, feed.longest_bytes);
  feed.stage->pool->Charge(*block, next.size_bytes);
  FeedPiece& piece = InsertPiece(id, feed, now_ns);
  piece.block = block;
  piece.offset = next.offset_bytes;
  piece.size_bytes = next.size_bytes;
  ++feed.under_way;
  feed.begun_bytes += piece.size_bytes;
  SubmitCopy(CopyTask::Direction::kFromProcess, feed, &piece, block->base);
  return ErrorCode::kOk;
}

void Feeds::OnCopied(const CopyTask& task, uint64_t now_ns) {
  auto& piece = static_cast<FeedPiece&>(*static_cast<Piece*>(task.context));
  Feed& feed = *transfers_.Find(piece.transfer);
  feed.heard_ns = now_ns;
  TraceCopy(feed, piece, TraceKind::kCopyIn, task);
  if (!feed.stopped && task.result == ErrorCode::kOk) {
    piece.announced = true;
    piece.begun_ns = feed.job->trace.Now(now_ns);
    ++feed.lent;
    Announce(feed, piece, now_ns);
    return;
  }
  if (!task.abandoned) {
    feed.stage->pool->Give(piece.block);
  }
  EndPiece(piece, task.result, now_ns);
}

void Feeds::Announce(const Feed& feed, const FeedPiece& piece, uint64_t now_ns) {
  WireBlock wire{};
  wire.pull = feed.pull;
  wire.block = static_cast<uint64_t>(piece.self);
  wire.offset = piece.offset;
  wire.key = piece.block->pinned.region().key;
  wire.address = piece.block->pinned.region().remote_base;
  wire.size_bytes = static_cast<uint32_t>(piece.size_bytes);
  outbound_.Post(*feed.job, PacketKind::kBlockReady, feed.here, feed.peer, wire, now_ns);
}

void Feeds::OnBlockDone(const Job& job, uint32_t source, uint32_t destination,
                        const WireBlockDone& done, uint64_t now_ns) {
  FeedPiece* piece = pieces_.Find(PieceId{done.block});
  if (piece == nullptr || !piece->announced) {
    return;
  }
  Feed& feed = *transfers_.Find(piece->transfer);
  if (feed.job != &job || feed.here != source || feed.peer != destination) {
    return;
  }
  feed.heard_ns = now_ns;
  TracePiece(feed, *piece, TraceKind::kLent, ErrorCode::kOk);
  feed.stage->pool->Give(piece->block);
  --feed.lent;
  EndPiece(*piece, ErrorCode::kOk, now_ns);
}

void Feeds::Advance(uint64_t now_ns) {
  for (const auto& pool : depot_.pools()) {
    Resume(*pool, now_ns);
  }
}

// ---- Ending ------------------------------------------------------------------------------------

void Feeds::OnResult(Job& job, uint32_t source, uint32_t destination, const WireResult& result,
                     uint64_t now_ns) {
  ServedRank* rank = job.served[source];
  if (Offer* const offer = rank == nullptr ? nullptr : rank->FindOffer(result.send_request);
      offer != nullptr && offer->generation == result.send_generation &&
      offer->destination == destination) {
    TraceOffer(*rank, *offer, result);
    Void(*rank, offer, Peer::kIsThrough);
  }
  transfers_.ForEach([&](TransferId id, Feed& feed) {
    if (feed.job == &job && feed.here == source && feed.peer == destination &&
        feed.request == result.send_request && feed.generation == result.send_generation) {
      feed.stopped = true;
      if (feed.error == ErrorCode::kOk) {
        feed.error = static_cast<ErrorCode>(result.error);
      }
      TakeBack(id, feed, Reuse::kAtOnce, now_ns);  // the peer has nothing under way
    }
  });
}

void Feeds::OnStopped(Feed& feed, uint64_t now_ns) {
  feed.heard_ns = now_ns;
  Refuse(*feed.job, feed.here, feed.peer, feed.pull, feed.error, now_ns);
}

// Blocks that the peer knows of can be used again.
void Feeds::TakeBack(TransferId id, Feed& feed, Reuse reuse, uint64_t now_ns) {
  pieces_.ForEach([&](PieceId piece_id, FeedPiece& piece) {
    if (piece.transfer == id && piece.announced) {
      TracePiece(feed, piece, TraceKind::kLent, feed.error);
      if (reuse == Reuse::kAtOnce) {
        feed.stage->pool->Give(piece.block);
      } else {
        feed.stage->pool->GiveTainted(piece.block);
      }
      pieces_.Erase(piece_id);
      --feed.lent;
      --feed.under_way;
    }
  });
  EndIfDone(id, feed, now_ns);
}

void Feeds::CheckDeadlines(uint64_t now_ns) {
  transfers_.ForEach([&](TransferId id, Feed& feed) {
    // The peer's own deadline comes first.
    if (feed.lent != 0 && now_ns - feed.heard_ns > 2 * timeout_ns_) {
      Fail(id, feed, ErrorCode::kTimeout, now_ns);
      if (Feed* left = transfers_.Find(id); left != nullptr) {
        TakeBack(id, *left, Reuse::kUnderAnotherKey, now_ns);
      }
    }
  });
}

void Feeds::FailOf(ServedRank& rank, ErrorCode error, uint64_t now_ns) {
  rank.ForEachOffer([&](Offer& offer) {
    if (offer.state == Offer::State::kPrivate || offer.state == Offer::State::kDevice) {
      Void(rank, &offer, Peer::kIsThrough);
    }
  });
  Transfers::FailOf(&rank, error, now_ns);
}

void Feeds::FailBetween(ServedRank& rank, uint32_t destination, ErrorCode error, uint64_t now_ns) {
  rank.ForEachOffer([&](Offer& offer) {
    if (offer.destination == destination) {
      Void(rank, &offer, Peer::kMayRead);
    }
  });
  Transfers::FailBetween(&rank, destination, error, now_ns);
}

void Feeds::OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns) {
  for (ServedRank* rank : job.served) {
    if (rank != nullptr) {
      rank->ForEachOffer([&](Offer& offer) {
        if (offer.destination == destination) {
          Void(*rank, &offer, Peer::kMayRead);
        }
      });
    }
  }
  // The daemon of a dead rank still answers; one that is gone does not.
  const Link* link = job.RouteTo(destination).link;
  const bool answers = link != nullptr && link->failure == ErrorCode::kOk;
  // Its daemon tells our rank so, perhaps before it has heard of the end by itself.
  const ErrorCode ended = job.ended[destination];
  const ErrorCode error = ended == ErrorCode::kNotFound ? ErrorCode::kPeerDied : ended;
  transfers_.ForEach([&](TransferId id, Feed& feed) {
    if (feed.job != &job || feed.peer != destination) {
      return;
    }
    Fail(id, feed, error, now_ns);
    if (Feed* left = transfers_.Find(id); left != nullptr && !answers) {
      TakeBack(id, *left, Reuse::kUnderAnotherKey, now_ns);
    }
  });
}

void Feeds::Drop(const Job* job, uint64_t now_ns) {
  transfers_.ForEach([&](TransferId id, Feed& feed) {
    if (feed.job == job) {
      feed.stopped = true;
      TakeBack(id, feed, Reuse::kUnderAnotherKey, now_ns);
    }
  });
}

void Feeds::TraceOffer(const ServedRank& rank, const Offer& offer, const WireResult& result) {
  if (rank.job->trace.on()) {
    TraceRecord record = progress::RecordOf(*rank.job, TraceKind::kOffer, rank.rank(),
                                            offer.destination, offer.begun_ns);
    record.end_ns = MonotonicNs();
    record.message = TraceMessage(result.send_request, result.send_generation);
    record.bytes = offer.size_bytes;
    record.error = TraceError(static_cast<ErrorCode>(result.error));
    rank.job->trace.Put(record);
  }
}

}  // namespace ferry::progress
