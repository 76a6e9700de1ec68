#include "gpu_backends/driver/stream_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

#include "gpu_backends/device/kernels.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/layout/pair_layout.h"
#include "shm/pair_move.h"

namespace ferry::gpu {
namespace {

constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kLineWords = 128 / sizeof(uint64_t);  // no two streams share a cache line

// Up to this size a copy by one thread takes less time than three launches.
constexpr uint64_t kSmallMoveBytes = 512;
constexpr uint64_t kBytesOfThread = 64;
constexpr uint64_t kBytesOfUnit = 16;  // the widest access, of which blocks have few in a row

// Checks the offsets of an end's words in pair_move.h against the layout.
static_assert(offsetof(shm::PairLayout, done) + offsetof(shm::CounterLayout, value) ==
              FERRY_DEVICE_END_DONE * sizeof(uint64_t));
static_assert(offsetof(shm::PairLayout, done) + offsetof(shm::CounterLayout, error) ==
              FERRY_DEVICE_END_DONE_ERROR * sizeof(uint64_t));
static_assert(offsetof(shm::PairLayout, meet) + offsetof(shm::CounterLayout, value) ==
              FERRY_DEVICE_END_MEET * sizeof(uint64_t));
static_assert(offsetof(shm::PairLayout, gate) == FERRY_DEVICE_END_GATE * sizeof(uint64_t));
static_assert(shm::kGateInside == FERRY_DEVICE_GATE_INSIDE);
static_assert(shm::kGateClosed == FERRY_DEVICE_GATE_CLOSED);
static_assert(shm::kGateLifeShift == FERRY_DEVICE_GATE_LIFE_SHIFT);
static_assert(shm::kCounterFailure == FERRY_DEVICE_COUNTER_FAILURE);
static_assert(static_cast<int>(ErrorCode::kPeerDied) == FERRY_DEVICE_ERROR_PEER_DIED);
static_assert(static_cast<int>(ErrorCode::kNotFound) == FERRY_DEVICE_ERROR_NOT_FOUND);

}  // namespace

StreamControls::~StreamControls() {
  for (void* const block : blocks_) {
    (void)driver_->Free(PointerKind::kPinned, block);
  }
}

StatusOr<std::shared_ptr<uint64_t>> StreamControls::Take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const StatusOr<void*> block = driver_->AllocatePinned(kBlockBytes);
    FERRY_RETURN_IF_ERROR(block.status());
    blocks_.push_back(*block);
    auto* const words = static_cast<uint64_t*>(*block);
    for (uint64_t at = 0; at < kBlockBytes / sizeof(uint64_t); at += kLineWords) {
      free_.push_back(words + at);
    }
  }
  uint64_t* const line = free_.back();
  free_.pop_back();
  std::fill_n(line, kLineWords, 0);
  return std::shared_ptr<uint64_t>(
      line, [pool = shared_from_this()](uint64_t* given) { pool->Give(given); });
}

void StreamControls::Give(uint64_t* line) {
  std::lock_guard lock(mutex_);
  free_.push_back(line);
}

Status StreamKernels::Prepare() {
  if (control_ != nullptr) {
    return {};
  }
  FERRY_RETURN_IF_ERROR(driver_->LoadKernels(device_));
  powers_ = driver_->kernel_powers(device_);
  StatusOr<std::shared_ptr<uint64_t>> control = controls_->Take();
  FERRY_RETURN_IF_ERROR(control.status());
  control_ = std::move(*control);
  return {};
}

Status StreamKernels::Launch(Kernel kernel, uint64_t threads,
                             std::span<const KernelArgument> arguments) {
  std::array<KernelArgument, kMostKernelArguments> all{};
  all[0] = control_.get();
  std::copy(arguments.begin(), arguments.end(), all.begin() + 1);
  return driver_->Launch(device_, stream_, kernel, threads, {all.data(), arguments.size() + 1});
}

Status StreamKernels::WriteWord(uint64_t* word, uint64_t value) {
  return Launch(Kernel::kWriteWord, 1, {word, value});
}

Status StreamKernels::WaitWord(const uint64_t* word, uint64_t value, WaitCondition condition) {
  return Launch(Kernel::kWaitWord, 1,
                {word, value, uint64_t{condition == WaitCondition::kEqual ? 1U : 0U}});
}

Status StreamKernels::CopyStrided(const StridedCopy& copy) {
  const auto stride = static_cast<uint64_t>(copy.stride_bytes);  // two's complement, as it counts
  const uint64_t threads = std::max<uint64_t>(copy.size_bytes() / kBytesOfUnit, 1);
  return copy.is_pack
             ? Launch(Kernel::kPack, threads,
                      {copy.packed, copy.blocks, copy.block_count, copy.block_bytes, stride})
             : Launch(Kernel::kUnpack, threads,
                      {copy.blocks, copy.packed, copy.block_count, copy.block_bytes, stride});
}

Status StreamKernels::CopySpread(const SpreadCopy& copy) {
  constexpr size_t kNumbers = 3;
  std::array<KernelArgument, kNumbers + 2 * SpreadCopy::kMost> arguments{};
  static_assert(std::size(arguments) + 1 == Describe(Kernel::kSpread).argument_count);
  arguments[0] = copy.block_bytes;
  arguments[1] = copy.source_count;
  arguments[2] = copy.destination_count;
  std::copy(copy.sources.begin(), copy.sources.end(), arguments.begin() + kNumbers);
  std::copy(copy.destinations.begin(), copy.destinations.end(),
            arguments.begin() + kNumbers + SpreadCopy::kMost);
  const uint64_t stored_bytes = copy.size_bytes() * copy.destination_count;
  return Launch(Kernel::kSpread, std::max<uint64_t>(stored_bytes / kBytesOfUnit, 1),
                std::span<const KernelArgument>(arguments));
}

Status StreamKernels::Reduce(const Reduction& reduction) {
  constexpr size_t kPlain = 5;  // of two operands
  constexpr size_t kOperands = std::tuple_size_v<decltype(Reduction::more_operands)>;
  constexpr size_t kResults = std::tuple_size_v<decltype(Reduction::more_results)>;
  std::array<KernelArgument, kPlain + kOperands + kResults> arguments{
      reduction.to, reduction.left, reduction.right, reduction.count, HowToReduce(reduction)};
  static_assert(std::size(arguments) + 1 == Describe(Kernel::kReduceI8).argument_count);
  const auto more = arguments.begin() + kPlain;
  std::copy(reduction.more_operands.begin(), reduction.more_operands.end(), more);
  std::copy(reduction.more_results.begin(), reduction.more_results.end(), more + kOperands);
  return Launch(ReductionKernel(reduction.type, reduction.op).value(), reduction.count,
                std::span<const KernelArgument>(arguments));
}

Status StreamKernels::LaunchMove(const MatchedMove& move) {
  const auto is_send = static_cast<uint64_t>(move.is_send);
  const auto meets = static_cast<uint64_t>(move.meets);
  if (move.size_bytes == 0) {  // then the memory may be any
    return Launch(Kernel::kMoveSmall, 1,
                  {move.own, move.other, is_send, meets, nullptr, nullptr, uint64_t{0}});
  }
  if (move.size_bytes <= kSmallMoveBytes) {
    return Launch(
        Kernel::kMoveSmall, 1,
        {move.own, move.other, is_send, meets, move.destination, move.source, move.size_bytes});
  }
  FERRY_RETURN_IF_ERROR(Launch(Kernel::kBeginMove, 1, {move.own, move.other, is_send, meets}));
  Status status = Launch(Kernel::kCopyMove, move.size_bytes / kBytesOfThread,
                         {move.destination, move.source, move.size_bytes});
  if (status.ok()) {
    status = Launch(Kernel::kCompleteMove, 1, {move.own, move.other});
  }
  if (!status.ok()) {
    // The round may have begun, and would never end.
    shm::Counter(&move.other->done).Fail(status.code());
    shm::Counter(&move.own->done).Fail(status.code());
    shm::WakeWaiting(*move.other);
  }
  return status;
}

Status StreamKernels::CloseFailedPair(const MatchedMove& move) {
  return Launch(Kernel::kCloseFailedPair, 1,
                {move.own, move.other, uint64_t{move.other_life}, move.round});
}

void StreamKernels::Abandon() {
  if (control_ != nullptr) {
    // Pairs with the kernels' looks (ferry_device_goes_on).
    shm::StoreRelease(control_.get()[FERRY_DEVICE_CONTROL_ABANDONED], 1);
  }
}

}  // namespace ferry::gpu
