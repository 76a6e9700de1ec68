// The pieces of a pull: reads, staging blocks and copies.
#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/progress/pulls.h"
#include "daemon/progress/records.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kReadsUnderWay = 64;   // of all: the transport's other slots are for messages
constexpr uint64_t kReadBytes = 1 << 20;  // longest read straight into a heap

uint64_t ContextOf(const void* piece) { return reinterpret_cast<uint64_t>(piece) | kReadContext; }

}  // namespace

bool Pulls::HasNextPiece(const Pull& pull) const {
  return pull.kind == Incoming::Kind::kPrivate ? !pull.announced.empty()
                                               : pull.begun_bytes < pull.size_bytes;
}

Pulls::Piece Pulls::NextPiece(const Pull& pull) const {
  Piece piece;
  if (pull.kind == Incoming::Kind::kPrivate) {
    const WireBlock& block = pull.announced.front();
    piece.offset = block.offset;
    piece.size_bytes = block.size_bytes;
    piece.remote_address = block.address;
    piece.key = block.key;
    piece.remote_block = block.block;
    piece.owes_block = true;
    return piece;
  }
  if (pull.plan) {
    const engine::Block next = pull.plan->Next(pull.begun_bytes, pull.stage->block_bytes);
    piece.offset = next.offset_bytes;
    piece.size_bytes = next.size_bytes;
    piece.remote_address = pull.remote_address + piece.offset;
    piece.key = pull.key;
    return piece;
  }
  const uint64_t longest = pull.mapped != nullptr ? kReadBytes : pull.stage->block_bytes;
  // The first piece into private memory is short, so that the copy worker starts early.
  const uint64_t wanted = pull.mapped == nullptr && pull.begun_bytes == 0
                              ? std::max<uint64_t>(longest / 4, 1)
                              : longest;
  piece.offset = pull.begun_bytes;
  piece.size_bytes = std::min(wanted, pull.size_bytes - pull.begun_bytes);
  piece.remote_address = pull.remote_address + piece.offset;
  piece.key = pull.key;
  return piece;
}

Pulls::Want Pulls::BeginPiece(PullId id, Pull& pull, uint64_t now_ns) {
  if (pull.kind == Incoming::Kind::kParked) {
    return BeginParked(id, pull);
  }
  if (reads_ >= kReadsUnderWay) {
    return Want::kSlot;
  }
  StagingBlock* block = nullptr;
  if (pull.mapped == nullptr) {
    pull.error = depot_.Provide(*pull.stage);
    if (pull.error != ErrorCode::kOk) {
      return Want::kNothing;
    }
    block = TakeBlock(pull);
    if (block == nullptr) {
      return Want::kBlock;
    }
  }
  const PieceId piece_id = pieces_.Insert();
  Piece& piece = *pieces_.Find(piece_id);
  piece = NextPiece(pull);
  piece.self = piece_id;
  piece.pull = id;
  piece.block = block;
  piece.begun_ns = pull.rank->job->trace.Now(now_ns);
  transport::RmaRequest read;
  read.peer = pull.rank->job->RouteTo(pull.source).link->peer;
  read.local = block != nullptr ? block->base : pull.mapped + piece.offset;
  read.region = block != nullptr ? block->pinned.region().handle : pull.claim.handle();
  read.remote_address = piece.remote_address;
  read.key = piece.key;
  read.bytes = piece.size_bytes;
  read.context = ContextOf(&piece);
  read.rail = pull.rank->nearest_rail;
  const ErrorCode code = transport_.Read(read, now_ns);
  if (code == ErrorCode::kOk) {
    ++reads_;
    ++pull.reading;
    ++pull.under_way;
    pull.begun_bytes += piece.size_bytes;
    if (block != nullptr) {
      pull.stage->pool->Charge(*block, piece.size_bytes);
    }
    if (pull.kind == Incoming::Kind::kPrivate) {
      pull.announced.erase(pull.announced.begin());
    }
    return Want::kNothing;
  }
  pieces_.Erase(piece_id);
  if (block != nullptr) {
    pull.stage->pool->Give(block);
  }
  if (code == ErrorCode::kWouldBlock) {
    return Want::kSlot;
  }
  pull.error = code;
  return Want::kNothing;
}

// None past those who wait.
StagingBlock* Pulls::TakeBlock(Pull& pull) {
  StagingPool* const pool = pull.stage->pool;
  if (!std::exchange(pull.has_turn, false) && !pool->waiters(StagingUse::kIncoming).empty()) {
    return nullptr;
  }
  return pool->Take(StagingUse::kIncoming, pull.rank->rank());
}

Pulls::Want Pulls::BeginParked(PullId id, Pull& pull) {
  if (pull.mapped != nullptr) {
    std::memcpy(pull.mapped, pull.parked.data(), pull.size_bytes);
    pull.begun_bytes = pull.done_bytes = pull.size_bytes;
    return Want::kNothing;
  }
  pull.error = depot_.Provide(*pull.stage);
  if (pull.error != ErrorCode::kOk) {
    return Want::kNothing;
  }
  std::byte* cell = pull.stage->pool->TakeCell();
  if (cell == nullptr) {
    return Want::kSlot;
  }
  std::memcpy(cell, pull.parked.data(), pull.size_bytes);
  const PieceId piece_id = pieces_.Insert();
  Piece& piece = *pieces_.Find(piece_id);
  piece.self = piece_id;
  piece.pull = id;
  piece.size_bytes = pull.size_bytes;
  piece.cell = cell;
  ++pull.under_way;
  SubmitCopy(piece, pull, cell);
  pull.begun_bytes = pull.size_bytes;
  return Want::kNothing;
}

void Pulls::OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  Piece& piece = *reinterpret_cast<Piece*>(context & ~kReadContext);
  Pull& pull = *pulls_.Find(piece.pull);
  --reads_;
  --pull.reading;
  pull.heard_ns = now_ns;
  if (pull.rank->job->trace.on()) {
    TraceRecord record = RecordOf(pull, TraceKind::kRead, piece.begun_ns);
    record.place = TracePlace::kNic;
    Trace(pull, piece, record, code);
  }
  if (piece.block == nullptr) {
    EndPiece(piece, code, now_ns);
  } else if (code != ErrorCode::kOk) {
    pull.stage->pool->GiveTainted(piece.block);
    EndPiece(piece, code, now_ns);
  } else if (pull.error != ErrorCode::kOk) {
    pull.stage->pool->Give(piece.block);
    EndPiece(piece, pull.error, now_ns);
  } else {
    WriteOut(piece, pull, now_ns);
  }
}

void Pulls::WriteOut(Piece& piece, Pull& pull, uint64_t now_ns) {
  SubmitCopy(piece, pull, piece.block->base);
  if (std::exchange(piece.owes_block, false)) {
    // The sender's block may be used again while ours is written out.
    outbound_.Post(*pull.rank->job, PacketKind::kBlockDone, pull.rank->rank(), pull.source,
                   WireBlockDone{piece.remote_block}, now_ns);
  }
}

void Pulls::SubmitCopy(Piece& piece, const Pull& pull, std::byte* local) {
  const Session& session = *pull.rank->session;
  CopyTask task;
  task.direction = CopyTask::Direction::kToProcess;
  task.lane = session.local_index;
  task.pid = session.pid;
  task.remote_address = pull.address + piece.offset;
  task.region = pull.device_region;
  task.device = pull.device == nullptr ? nullptr : pull.device + piece.offset;
  task.local = local;
  task.size_bytes = piece.size_bytes;
  task.context = &piece;
  task.timed = pull.rank->job->trace.on();
  (void)pull.stage->copier->Submit(task);  // there is room for every block and cell
}

void Pulls::OnCopied(const CopyTask& task, uint64_t now_ns) {
  Piece& piece = *static_cast<Piece*>(task.context);
  const Pull& pull = *pulls_.Find(piece.pull);
  if (task.timed && pull.rank->job->trace.on()) {
    TraceRecord record = RecordOf(pull, TraceKind::kCopyOut, task.begun_ns);
    record.end_ns = task.ended_ns;
    record.place = task.place;
    record.worker = task.worker;
    Trace(pull, piece, record, task.result);
  }
  if (!task.abandoned) {
    pull.stage->pool->Return(task.local);
  }
  EndPiece(piece, task.result, now_ns);
}

void Pulls::EndPiece(Piece& piece, ErrorCode error, uint64_t now_ns) {
  const Piece ended = piece;
  pieces_.Erase(ended.self);
  Pull& pull = *pulls_.Find(ended.pull);
  --pull.under_way;
  if (error != ErrorCode::kOk) {
    Fail(ended.pull, pull, error, now_ns);
    return;
  }
  if (ended.owes_block && pull.error == ErrorCode::kOk) {
    outbound_.Post(*pull.rank->job, PacketKind::kBlockDone, pull.rank->rank(), pull.source,
                   WireBlockDone{ended.remote_block}, now_ns);
  }
  pull.done_bytes += ended.size_bytes;
  if (pull.queued) {
    EndIfDone(ended.pull, pull, now_ns);
  } else {
    Step(ended.pull, pull, now_ns);
  }
}

}  // namespace ferry::daemon
