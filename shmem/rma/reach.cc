#include "shmem/rma/reach.h"

#include <string>

#include "shmem/base/fail.h"
#include "shmem/rma/checks.h"

namespace ferry::shmem {
namespace {

std::string BytesText(size_t bytes) {
  return bytes == 1 ? "1 byte" : std::to_string(bytes) + " bytes";
}

[[noreturn]] void FailNotSymmetric(const char* call, const char* argument, const void* address,
                                   size_t bytes) {
  if (const Segment* const segment = job.FindSegment(address, 1); segment != nullptr) {
    const size_t left = static_cast<size_t>(segment->base + segment->size_bytes -
                                            static_cast<const std::byte*>(address));
    Fail(call, BytesText(bytes) + " from " + AddressText(address) + " on (" + argument +
                   ") run past the end of " + segment->name + ", where " + BytesText(left) +
                   " are left");
  }
  Fail(call,
       std::string(argument) + " is " + AddressText(address) +
           ", which is no symmetric memory: use memory of shmem_malloc or shmemx_space_malloc, or "
           "static data of the program");
}

[[noreturn]] void FailNoPe(const char* call, const Context* context, int pe) {
  CheckRunning(call);
  if (context == nullptr) {
    Fail(call, "the context is SHMEM_CTX_INVALID");
  }
  const int size = context->team->size;
  if (size == 0) {
    Fail(call, "the context was destroyed, or its team was");
  }
  Fail(call, "PE " + std::to_string(pe) + " is not between 0 and " + std::to_string(size - 1) +
                 (size == job.size ? "" : ", those of the context's team"));
}

}  // namespace

PeAddress ReachSlowly(const char* call, const Context* context, const void* address, size_t bytes,
                      int pe) {
  if (context == nullptr || !context->team->Has(pe)) [[unlikely]] {
    FailNoPe(call, context, pe);
  }
  auto* const place = const_cast<std::byte*>(static_cast<const std::byte*>(address));
  const Segment* const segment = job.FindSegment(address, bytes);
  if (segment == nullptr) [[unlikely]] {
    if (bytes != 0) {
      FailNotSymmetric(call, "the address in the other PE's memory", address, bytes);
    }
    return PeAddress::Local(place);  // no operation looks there
  }
  if (job.is_checking) {
    CheckGiven(call, {"the address in the other PE's memory", address, bytes});
  }
  const int world_pe = context->team->pes[static_cast<size_t>(pe)];
  const auto index = static_cast<size_t>(world_pe);
  if (segment->shifts[index] != kRemote) {
    std::byte* const there = place + segment->shifts[index];
    return segment->is_by_stream ? PeAddress::ByStream(there) : PeAddress::Local(there);
  }
  if (bytes == 0) {
    return PeAddress::Local(place);
  }
  const auto offset = static_cast<uint64_t>(place - segment->base);
  return PeAddress::Remote(world_pe, segment->numbers[index],
                           segment->first_offsets[index] + offset);
}

namespace {

void CheckCpusReach(const char* call, const char* argument, const void* address, size_t bytes) {
  const Segment* const segment = job.FindSegment(address, bytes);
  if (segment != nullptr && segment->is_by_stream) [[unlikely]] {
    Fail(call, AddressText(address) + " (" + argument + ") lies in " + segment->name +
                   ", which no CPU reaches: words of signals, atomics, waits and locks belong in "
                   "the heap in host memory (shmem_malloc)");
  }
}

}  // namespace

PeAddress ReachWordSlowly(const char* call, const Context* context, const char* argument,
                          const void* address, size_t bytes, int pe) {
  const PeAddress target = ReachSlowly(call, context, address, bytes, pe);
  CheckCpusReach(call, argument, address, bytes);
  return target;
}

void CheckWords(const char* call, const char* argument, const void* address, size_t bytes) {
  CheckSymmetric(call, argument, address, bytes);
  CheckCpusReach(call, argument, address, bytes);
}

void CheckSymmetric(const char* call, const char* argument, const void* address, size_t bytes) {
  if (bytes != 0 && job.FindSegment(address, bytes) == nullptr) {
    FailNotSymmetric(call, argument, address, bytes);
  }
  if (job.is_checking) [[unlikely]] {
    CheckGiven(call, {argument, address, bytes});
  }
}

}  // namespace ferry::shmem
