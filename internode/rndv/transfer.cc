#include "internode/rndv/transfer.h"

#include <algorithm>

namespace ferry::progress {

const char* NameOfWant(Want want) {
  switch (want) {
    case Want::kNothing:
      return nullptr;
    case Want::kSlot:
      return "a slot of the network";
    case Want::kBlock:
      return "a staging block";
    case Want::kMemory:
      return "its memory to be registered with the network";
    case Want::kArrival:
      return "the rest of the message";
  }
  return nullptr;
}

std::string WayOf(const Transfer& transfer) {
  if (transfer.region == nullptr || !transfer.region->memory.by_stream) {
    return "";
  }
  const ClaimableRegion& memory = transfer.region->memory;
  if (transfer.mapped != nullptr) {
    return "the network card reaches its device memory itself";
  }
  return std::string("its device memory goes by staging memory") +
         (memory.at_nic == nullptr ? ": the network card does not reach it"
          : memory.nic_refuses     ? ": the network card has refused it (ferryctl nics)"
                                   : "");
}

// ---- Fragments ----------------------------------------------------------------------------------

ErrorCode LieIn(ServedRegion* region, uint64_t offset, Transfer* transfer) {
  const ClaimableRegion& memory = region->memory;
  if (!memory.by_stream) {
    transfer->mapped = memory.base + offset;
  } else if (!memory.is_staged) {
    return ErrorCode::kUnsupported;  // its rank was told to stage by itself
  } else {
    transfer->stage = &transfer->job->device_stage;
    transfer->address = offset;
    transfer->device_region = memory.number;
    transfer->device = memory.device == nullptr ? nullptr : memory.device + offset;
  }
  UseRegion(region, transfer);
  return ErrorCode::kOk;
}

void UseRegion(ServedRegion* region, Transfer* transfer) {
  transfer->region = region;
  ++region->users;
}

ErrorCode LieInPrivate(uint64_t address, Transfer* transfer) {
  transfer->stage = &transfer->job->private_stage;
  transfer->address = address;
  const bool is_reached =
      transfer->size_bytes == 0 || transfer->rank->session->private_memory_reachable;
  return is_reached ? ErrorCode::kOk : ErrorCode::kPermissionDenied;
}

engine::Block NextRange(const Transfer& transfer, uint64_t longest_bytes) {
  const uint64_t begun = transfer.begun_bytes;
  if (transfer.plan) {
    return transfer.plan->Next(begun, longest_bytes);
  }
  const bool is_short = transfer.stage != nullptr && begun == 0;
  const uint64_t wanted = is_short ? std::max<uint64_t>(longest_bytes / 4, 1) : longest_bytes;
  return {begun, std::min(wanted, transfer.size_bytes - begun)};
}

transport::RmaRequest RmaOf(const Transfer& transfer, const Fragment& fragment) {
  const StagingBlock* const block = fragment.block;
  transport::RmaRequest request;
  request.peer = transfer.job->RouteTo(transfer.peer).link->peer;
  request.local = block != nullptr ? block->base : transfer.mapped + fragment.offset;
  const PinnedMemory& by_itself = block != nullptr ? block->pinned : transfer.reached;
  request.region = by_itself.is_pinned() ? by_itself.region().handle : transfer.claim.handle();
  request.bytes = fragment.size_bytes;
  request.rail = transfer.rank->nearest_rail;
  return request;
}

void SubmitCopy(CopyTask::Direction direction, const Transfer& transfer, Fragment* fragment,
                std::byte* local) {
  const ServedSegments& session = *transfer.rank->session;
  CopyTask task;
  task.direction = direction;
  task.lane = session.local_index;
  task.pid = session.pid;
  task.remote_address = transfer.address + fragment->offset;
  task.region = transfer.device_region;
  task.device = transfer.device == nullptr ? nullptr : transfer.device + fragment->offset;
  task.local = local;
  task.size_bytes = fragment->size_bytes;
  task.context = fragment;
  task.timed = transfer.job->trace.on();
  (void)transfer.stage->copier->Submit(task);  // there is room for every block and cell
}

// ---- Trace -------------------------------------------------------------------------------------

namespace {

// An empty fragment stands for the transfer as a whole.
void Trace(const Transfer& transfer, const Fragment& fragment, TraceRecord record,
           ErrorCode error) {
  record.message = TraceMessage(transfer.send_request, transfer.send_generation);
  record.offset = fragment.offset;
  record.bytes = fragment.size_bytes != 0 ? fragment.size_bytes : transfer.size_bytes;
  record.block = fragment.block == nullptr
                     ? kNoBlock
                     : static_cast<uint16_t>(transfer.stage->pool->IndexOf(*fragment.block));
  record.error = TraceError(error);
  transfer.job->trace.Put(record);
}

TraceRecord RecordOf(const Transfer& transfer, TraceKind kind, uint64_t begin_ns) {
  return RecordOf(*transfer.job, kind, transfer.here, transfer.peer, begin_ns);
}

}  // namespace

void TracePiece(const Transfer& transfer, const Fragment& fragment, TraceKind kind,
                ErrorCode error) {
  if (transfer.job->trace.on()) {
    TraceRecord record = RecordOf(transfer, kind, fragment.begun_ns);
    record.end_ns = MonotonicNs();
    record.place = TracePlace::kNic;
    Trace(transfer, fragment, record, error);
  }
}

void TraceCopy(const Transfer& transfer, const Fragment& fragment, TraceKind kind,
               const CopyTask& task) {
  if (task.timed && transfer.job->trace.on()) {
    TraceRecord record = RecordOf(transfer, kind, task.begun_ns);
    record.end_ns = task.ended_ns;
    record.place = task.place;
    record.worker = task.worker;
    Trace(transfer, fragment, record, task.result);
  }
}

void TraceWhole(const Transfer& transfer, TraceKind kind, ErrorCode error) {
  if (transfer.job->trace.on()) {
    TraceRecord record = RecordOf(transfer, kind, transfer.begun_ns);
    record.end_ns = MonotonicNs();
    Trace(transfer, {}, record, error);
  }
}

}  // namespace ferry::progress
