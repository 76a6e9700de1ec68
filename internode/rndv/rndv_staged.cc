#include "internode/rndv/rndv_staged.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {
namespace {

constexpr uint32_t kFragmentsUnderWay =
    4;  // of one staged send, unless StagingPool::Window says otherwise

}  // namespace

// ---- RTSs ------------------------------------------------------------------------------------

void StagedSends::OnRts(ServedRank& rank, uint32_t request, SentRts rts) {
  SentRts& place = rank.RtsAt(request);
  Void(rank, &place, Peer::kMayRead);
  rank.carried_bytes += rts.carried_bytes;
  if (rts.region != nullptr) {
    ++rts.region->announced;
    if (rts.region->memory.by_stream) {
      depot_.CountDevice(rts.state == SentRts::State::kHeap);
    }
  }
  rank.reached_rts += rts.is_reached() ? 1 : 0;
  place = std::move(rts);
}

void StagedSends::Void(ServedRank& rank, SentRts* rts, Peer peer) {
  rank.carried_bytes -= std::exchange(rts->carried_bytes, 0);
  rank.reached_rts -= rts->is_reached() ? 1 : 0;
  if (rts->region != nullptr) {
    --rts->region->announced;
  }
  rts->region = nullptr;
  rts->reached = {};
  rts->state = SentRts::State::kNone;
  rts->error = ErrorCode::kOk;
  rts->use = {};
  if (rts->lent != 0) {
    rank.GiveRts(std::exchange(rts->lent, 0));
  }
  if (peer == Peer::kIsThrough) {
    rts->claim.Drop();
  } else {
    rts->claim.DropLater();  // a key that it does not find would cost it the connection
  }
}

void StagedSends::ForgetRegion(ServedRank& rank, const ServedRegion* region) {
  rank.ForEachRts([&](SentRts& rts) {
    if (rts.region == region) {
      Void(rank, &rts, Peer::kMayRead);
    }
  });
}

void StagedSends::OnRndvGet(ServedRank& rank, uint32_t destination, const WireRndvGet& rndv_get,
                            uint64_t now_ns) {
  SentRts* rts = rank.FindRts(rndv_get.send_request);
  const bool announced = rts != nullptr && (rts->state == SentRts::State::kPrivate ||
                                            rts->state == SentRts::State::kDevice);
  if (!announced || rts->generation != rndv_get.send_generation ||
      rts->destination != destination || rndv_get.size_bytes > rts->size_bytes ||
      rndv_get.size_bytes == 0 || rndv_get.longest_bytes < kShortestBlockBytes) {
    const bool known = rts != nullptr && rts->generation == rndv_get.send_generation &&
                       rts->destination == destination && rts->error != ErrorCode::kOk;
    Refuse(*rank.job, rank.rank(), destination, rndv_get.rndv_get,
           known ? rts->error : ErrorCode::kInvalidBuffer, now_ns);
    return;
  }
  const TransferId id = Insert(rank, now_ns);
  StagedSend& staged_send = *transfers_.Find(id);
  staged_send.peer = destination;
  staged_send.request = staged_send.send_request = rndv_get.send_request;
  staged_send.generation = staged_send.send_generation = rndv_get.send_generation;
  staged_send.rndv_get = rndv_get.rndv_get;
  staged_send.size_bytes = rndv_get.size_bytes;
  if (const ErrorCode error = FindSource(*rts, rndv_get, &staged_send); error != ErrorCode::kOk) {
    Fail(id, staged_send, error, now_ns);
    return;
  }
  Void(rank, rts, Peer::kIsThrough);  // one rendezvous get for each RTS
  Step(id, staged_send, now_ns);
}

ErrorCode StagedSends::FindSource(const SentRts& rts, const WireRndvGet& rndv_get,
                                  StagedSend* staged_send) const {
  if (staged_send->rank->ended) {
    return ErrorCode::kPeerDied;
  }
  const bool is_device = rts.state == SentRts::State::kDevice;
  const ErrorCode error = is_device ? LieIn(rts.region, rts.address, staged_send)
                                    : LieInPrivate(rts.address, staged_send);
  if (error != ErrorCode::kOk) {
    return error;
  }
  if (const uint32_t blocks = std::max(rndv_get.blocks, is_device ? rules_.blocks_to_host : 0);
      blocks != 0) {
    staged_send->plan = rules_.Plan(rndv_get.size_bytes, blocks);
  }
  staged_send->longest_bytes =
      std::min<uint64_t>(staged_send->stage->block_bytes, rndv_get.longest_bytes);
  return ErrorCode::kOk;
}

void StagedSends::Refuse(Job& job, uint32_t source, uint32_t destination, uint64_t rndv_get,
                         ErrorCode error, uint64_t now_ns) {
  WireBlock block{};
  block.rndv_get = rndv_get;
  block.error = static_cast<int32_t>(error);
  outbound_.Post(job, PacketKind::kBlockReady, source, destination, block, now_ns);
}

// ---- Fragments ----------------------------------------------------------------------------------

bool StagedSends::MayBegin(const StagedSend& staged_send) {
  return staged_send.begun_bytes < staged_send.size_bytes &&
         staged_send.under_way < Window(staged_send, kFragmentsUnderWay);
}

ErrorCode StagedSends::BeginFragment(TransferId id, StagedSend& staged_send, uint64_t now_ns) {
  StagingBlock* block = nullptr;
  if (const ErrorCode code = TakeBlock(depot_, staged_send, &block); code != ErrorCode::kOk) {
    return code;
  }
  const engine::Block next = NextRange(staged_send, staged_send.longest_bytes);
  staged_send.stage->pool->Charge(*block, next.size_bytes);
  StagedSendFragment& fragment = InsertFragment(id, staged_send, now_ns);
  fragment.block = block;
  fragment.offset = next.offset_bytes;
  fragment.size_bytes = next.size_bytes;
  ++staged_send.under_way;
  staged_send.begun_bytes += fragment.size_bytes;
  SubmitCopy(CopyTask::Direction::kFromProcess, staged_send, &fragment, block->base);
  return ErrorCode::kOk;
}

void StagedSends::OnCopied(const CopyTask& task, uint64_t now_ns) {
  auto& fragment = static_cast<StagedSendFragment&>(*static_cast<Fragment*>(task.context));
  StagedSend& staged_send = *transfers_.Find(fragment.transfer);
  staged_send.heard_ns = now_ns;
  TraceCopy(staged_send, fragment, TraceKind::kCopyIn, task);
  if (!staged_send.stopped && task.result == ErrorCode::kOk) {
    fragment.announced = true;
    fragment.begun_ns = staged_send.job->trace.Now(now_ns);
    ++staged_send.lent;
    Announce(staged_send, fragment, now_ns);
    return;
  }
  if (!task.abandoned) {
    staged_send.stage->pool->Give(fragment.block);
  }
  EndFragment(fragment, task.result, now_ns);
}

void StagedSends::Announce(const StagedSend& staged_send, const StagedSendFragment& fragment,
                           uint64_t now_ns) {
  WireBlock wire{};
  wire.rndv_get = staged_send.rndv_get;
  wire.block = static_cast<uint64_t>(fragment.self);
  wire.offset = fragment.offset;
  wire.key = fragment.block->pinned.region().key;
  wire.address = fragment.block->pinned.region().remote_base;
  wire.size_bytes = static_cast<uint32_t>(fragment.size_bytes);
  outbound_.Post(*staged_send.job, PacketKind::kBlockReady, staged_send.here, staged_send.peer,
                 wire, now_ns);
}

void StagedSends::OnBlockDone(const Job& job, uint32_t source, uint32_t destination,
                              const WireBlockDone& done, uint64_t now_ns) {
  StagedSendFragment* fragment = fragments_.Find(FragmentId{done.block});
  if (fragment == nullptr || !fragment->announced) {
    return;
  }
  StagedSend& staged_send = *transfers_.Find(fragment->transfer);
  if (staged_send.job != &job || staged_send.here != source || staged_send.peer != destination) {
    return;
  }
  staged_send.heard_ns = now_ns;
  TracePiece(staged_send, *fragment, TraceKind::kLent, ErrorCode::kOk);
  staged_send.stage->pool->Give(fragment->block);
  --staged_send.lent;
  EndFragment(*fragment, ErrorCode::kOk, now_ns);
}

void StagedSends::Advance(uint64_t now_ns) {
  for (const auto& pool : depot_.pools()) {
    Resume(*pool, now_ns);
  }
}

// ---- Ending ------------------------------------------------------------------------------------

void StagedSends::OnResult(Job& job, uint32_t source, uint32_t destination,
                           const WireResult& result, uint64_t now_ns) {
  ServedRank* rank = job.served[source];
  if (SentRts* const rts = rank == nullptr ? nullptr : rank->FindRts(result.send_request);
      rts != nullptr && rts->generation == result.send_generation &&
      rts->destination == destination) {
    TraceRts(*rank, *rts, result);
    Void(*rank, rts, Peer::kIsThrough);
  }
  transfers_.ForEach([&](TransferId id, StagedSend& staged_send) {
    if (staged_send.job == &job && staged_send.here == source && staged_send.peer == destination &&
        staged_send.request == result.send_request &&
        staged_send.generation == result.send_generation) {
      staged_send.stopped = true;
      if (staged_send.error == ErrorCode::kOk) {
        staged_send.error = static_cast<ErrorCode>(result.error);
      }
      TakeBack(id, staged_send, Reuse::kAtOnce, now_ns);  // the peer has nothing under way
    }
  });
}

void StagedSends::OnStopped(StagedSend& staged_send, uint64_t now_ns) {
  staged_send.heard_ns = now_ns;
  Refuse(*staged_send.job, staged_send.here, staged_send.peer, staged_send.rndv_get,
         staged_send.error, now_ns);
}

// Blocks that the peer knows of can be used again.
void StagedSends::TakeBack(TransferId id, StagedSend& staged_send, Reuse reuse, uint64_t now_ns) {
  fragments_.ForEach([&](FragmentId fragment_id, StagedSendFragment& fragment) {
    if (fragment.transfer == id && fragment.announced) {
      TracePiece(staged_send, fragment, TraceKind::kLent, staged_send.error);
      if (reuse == Reuse::kAtOnce) {
        staged_send.stage->pool->Give(fragment.block);
      } else {
        staged_send.stage->pool->GiveTainted(fragment.block);
      }
      fragments_.Erase(fragment_id);
      --staged_send.lent;
      --staged_send.under_way;
    }
  });
  EndIfDone(id, staged_send, now_ns);
}

void StagedSends::CheckDeadlines(uint64_t now_ns) {
  transfers_.ForEach([&](TransferId id, StagedSend& staged_send) {
    // The peer's own deadline comes first.
    if (staged_send.lent != 0 && now_ns - staged_send.heard_ns > 2 * timeout_ns_) {
      Fail(id, staged_send, ErrorCode::kTimeout, now_ns);
      if (StagedSend* left = transfers_.Find(id); left != nullptr) {
        TakeBack(id, *left, Reuse::kUnderAnotherKey, now_ns);
      }
    }
  });
}

void StagedSends::FailOf(ServedRank& rank, ErrorCode error, uint64_t now_ns) {
  rank.ForEachRts([&](SentRts& rts) {
    if (rts.state == SentRts::State::kPrivate || rts.state == SentRts::State::kDevice) {
      Void(rank, &rts, Peer::kIsThrough);
    }
  });
  Transfers::FailOf(&rank, error, now_ns);
}

void StagedSends::FailBetween(ServedRank& rank, uint32_t destination, ErrorCode error,
                              uint64_t now_ns) {
  rank.ForEachRts([&](SentRts& rts) {
    if (rts.destination == destination) {
      Void(rank, &rts, Peer::kMayRead);
    }
  });
  Transfers::FailBetween(&rank, destination, error, now_ns);
}

void StagedSends::OnPeerEnded(Job& job, uint32_t destination, uint64_t now_ns) {
  job.ForEachServed([&](ServedRank& rank) {
    rank.ForEachRts([&](SentRts& rts) {
      if (rts.destination == destination) {
        Void(rank, &rts, Peer::kMayRead);
      }
    });
  });
  // The daemon of a dead rank still answers; one that is gone does not.
  const Link* link = job.RouteTo(destination).link;
  const bool answers = link != nullptr && link->failure == ErrorCode::kOk;
  // Its daemon tells our rank so, perhaps before it has heard of the end by itself.
  const ErrorCode ended = job.ended[destination];
  const ErrorCode error = ended == ErrorCode::kNotFound ? ErrorCode::kPeerDied : ended;
  transfers_.ForEach([&](TransferId id, StagedSend& staged_send) {
    if (staged_send.job != &job || staged_send.peer != destination) {
      return;
    }
    Fail(id, staged_send, error, now_ns);
    if (StagedSend* left = transfers_.Find(id); left != nullptr && !answers) {
      TakeBack(id, *left, Reuse::kUnderAnotherKey, now_ns);
    }
  });
}

void StagedSends::Drop(const Job* job, uint64_t now_ns) {
  transfers_.ForEach([&](TransferId id, StagedSend& staged_send) {
    if (staged_send.job == job) {
      staged_send.stopped = true;
      TakeBack(id, staged_send, Reuse::kUnderAnotherKey, now_ns);
    }
  });
}

void StagedSends::TraceRts(const ServedRank& rank, const SentRts& rts, const WireResult& result) {
  if (rank.job->trace.on()) {
    TraceRecord record =
        progress::RecordOf(*rank.job, TraceKind::kRts, rank.rank(), rts.destination, rts.begun_ns);
    record.end_ns = MonotonicNs();
    record.message = TraceMessage(result.send_request, result.send_generation);
    record.bytes = rts.size_bytes;
    record.error = TraceError(static_cast<ErrorCode>(result.error));
    rank.job->trace.Put(record);
  }
}

}  // namespace ferry::progress
