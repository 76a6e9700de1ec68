#include "mpi/coll/collective_operation.h"

#include <algorithm>
#include <optional>
#include <string>

#include "coll/messages/front_messenger.h"
#include "mpi/base/connection.h"
#include "mpi/coll/scratch.h"
#include "mpi/coll/table.h"

namespace ferry::mpi {
namespace {

using collective::Block;
using collective::Collective;
using collective::DataRecord;
using collective::RunFailure;

char* FirstByte(const BlockArguments& block) {
  return static_cast<char*>(block.address) + block.type->true_lower_bound();
}

size_t BytesOf(const BlockArguments& block) {
  return static_cast<size_t>(block.count) * static_cast<size_t>(block.type->size_bytes());
}

}  // namespace

DataRecord RecordOf(int64_t count, const Datatype& type) {
  const Signature signature = RepeatSignature(type.signature(), count);
  const bool is_any = signature.basic != nullptr && signature.basic->handle == MPI_PACKED;
  return {static_cast<uint64_t>(signature.elements), is_any ? 0 : signature.hash,
          static_cast<uint64_t>(count * type.size_bytes())};
}

DataRecord CollectiveBuffer::RecordOfPart(int64_t times) const {
  return RecordOf(run_.count / std::max<int64_t>(times, 1), *run_.type);
}

void CollectiveBuffer::Free::operator()(void* memory) const { GiveStaging(memory); }

Failure CollectiveBuffer::MakeCopy(size_t size_bytes, bool of_device) {
  copy_.reset(static_cast<char*>(of_device ? TakeStaging(size_bytes)
                                           : collective::AllocateAligned(size_bytes)));
  base_ = copy_.get();
  is_by_stream_ = of_device;
  if (base_ == nullptr) {
    return {MPI_ERR_NO_MEM,
            "no memory for a packed copy of " + std::to_string(size_bytes) + " bytes"};
  }
  return {};
}

Failure CollectiveBuffer::Set(void* address, int64_t count, const Datatype& type, bool on_host) {
  run_ = {address, count, &type};
  const size_t bytes = BytesOf(run_);
  if (bytes == 0) {
    return {};
  }
  if (!is_apart_ && type.IsDense(count) && !(on_host && front_end->IsByStream(FirstByte(run_))))
      [[likely]] {
    base_ = FirstByte(run_);
    return {};
  }
  FERRY_RETURN_FAILURE(MakeCopy(bytes, front_end->IsByStream(FirstByte(run_))));
  pieces_.push_back({Payload(address, count, type), 0});
  return {};
}

Failure CollectiveBuffer::Set(const std::vector<BlockArguments>& blocks, std::vector<Block>* places,
                              bool on_host) {
  if (ComparesCalls()) [[unlikely]] {
    for (const BlockArguments& block : blocks) {
      block_records_.push_back(RecordOf(block.count, *block.type));
    }
  }
  places->resize(blocks.size());
  char* lowest = nullptr;
  bool is_dense = !is_apart_;
  size_t bytes = 0;
  for (const BlockArguments& block : blocks) {
    if (BytesOf(block) == 0) {
      continue;
    }
    is_dense = is_dense && block.type->IsDense(block.count) &&
               !(on_host && front_end->IsByStream(FirstByte(block)));
    lowest = lowest == nullptr ? FirstByte(block) : std::min(lowest, FirstByte(block));
    bytes += BytesOf(block);
  }
  if (!is_dense) {
    FERRY_RETURN_FAILURE(MakeCopy(bytes, lowest != nullptr && front_end->IsByStream(lowest)));
  } else {
    base_ = lowest;
  }
  size_t offset = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t size = BytesOf(blocks[i]);
    if (is_dense && size != 0) {
      offset = static_cast<size_t>(FirstByte(blocks[i]) - lowest);
    }
    (*places)[i] = {size == 0 ? 0 : offset, size};
    if (!is_dense) {
      pieces_.push_back({Payload(blocks[i].address, blocks[i].count, *blocks[i].type), offset});
      offset += size;
    }
  }
  return {};
}

void* CollectiveBuffer::OnDevice() const {
  const bool is_row = run_.type != nullptr && !is_apart_ && run_.type->IsDense(run_.count);
  char* const first = is_row ? FirstByte(run_) : nullptr;
  return is_row && front_end->IsByStream(first) ? first : nullptr;
}

// Some of the elements of the first form.
CollectiveBuffer::Piece CollectiveBuffer::PartOfRun(int64_t first, int64_t count) const {
  return {
      Payload(static_cast<char*>(run_.address) + first * run_.type->extent(), count, *run_.type),
      static_cast<size_t>(first * run_.type->size_bytes())};
}

Failure CollectiveBuffer::Fetch(int64_t first, int64_t count) {
  if (copy_ == nullptr) {
    return {};
  }
  if (run_.type != nullptr) {
    const Piece part = PartOfRun(first, count);
    return part.payload.CopyOut(copy_.get() + part.offset);
  }
  for (int64_t i = first; i < first + count; ++i) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    FERRY_RETURN_FAILURE(piece.payload.CopyOut(copy_.get() + piece.offset));
  }
  return {};
}

std::vector<gpu::StridedCopy> CollectiveBuffer::FetchCopies(int64_t first, int64_t count) const {
  if (run_.type != nullptr) {
    const Piece part = PartOfRun(first, count);
    return part.payload.CopiesWith(copy_.get() + part.offset, true);
  }
  return CopiesOf(first, count, true);
}

std::vector<gpu::StridedCopy> CollectiveBuffer::DeliverCopies() const {
  return CopiesOf(0, static_cast<int64_t>(pieces_.size()), false);
}

std::vector<gpu::StridedCopy> CollectiveBuffer::CopiesOf(int64_t first, int64_t count,
                                                         bool is_pack) const {
  std::vector<gpu::StridedCopy> copies;
  for (int64_t i = first; i < first + count; ++i) {
    const Piece& piece = pieces_[static_cast<size_t>(i)];
    const std::vector<gpu::StridedCopy> own =
        piece.payload.CopiesWith(copy_.get() + piece.offset, is_pack);
    copies.insert(copies.end(), own.begin(), own.end());
  }
  return copies;
}

Failure CollectiveBuffer::Deliver() {
  if (copy_ == nullptr) {
    return {};
  }
  for (const Piece& piece : pieces_) {
    FERRY_RETURN_FAILURE(
        piece.payload.CopyIn(copy_.get() + piece.offset, piece.payload.size_bytes()));
  }
  return {};
}

// Never destroyed: a program may leave MPI while its process ends.
const RunFailure& CollectiveOperation::NotFetched() {
  static const RunFailure& failure = *new RunFailure{.code = ErrorCode::kCancelled};
  return failure;
}

ErrorCode DeviceOperands::Fetch() {
  if (operation_.is_kept()) {
    operation_.FetchForRun();
  }
  return operation_.fetched_.ok() ? ErrorCode::kOk : ErrorCode::kCancelled;
}

bool CollectiveOperation::KeepOnDevice(DeviceOperands* operands) {
  if ((problem.collective != Collective::kReduce && problem.collective != Collective::kAllreduce) ||
      problem.block_bytes == 0) {
    return false;
  }
  void* const to = delivers ? output.OnDevice() : nullptr;
  const void* const from = problem.in_place ? to : input.OnDevice();
  if (from == nullptr || (delivers && to == nullptr)) {
    return false;
  }
  const int of = front_end->memory->DeviceOf(from);
  const std::optional<DeviceReduction> how =
      of != collective::kHostMemory
          ? reducer.FindOn(of, reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to))
          : std::nullopt;
  if (!how.has_value()) {
    return false;
  }
  operands->input = from;
  operands->output = to;
  operands->type = how->type;
  operands->op = how->op;
  is_kept_ = true;
  return true;
}

Failure CollectiveOperation::FetchCopies() {
  Failure failure = input.Fetch(input_read.first, input_read.count);
  return failure.ok() ? output.Fetch(output_read.first, output_read.count) : failure;
}

Failure CollectiveOperation::FinishCopies(const RunFailure& failure) {
  if (!fetched_.ok()) [[unlikely]] {
    return fetched_;
  }
  if (failure.code != ErrorCode::kOk) [[unlikely]] {
    return DescribeFailedRun(failure);
  }
  return delivers ? output.Deliver() : Failure();
}

}  // namespace ferry::mpi
