#include "client/shmem/reach.h"

#include <string>

#include "client/shmem/fail.h"

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
           ", which is no symmetric memory: use memory of shmem_malloc, or static data of the "
           "program");
}

}  // namespace

std::byte* ReachSlowly(const char* call, const Context* context, const void* address, size_t bytes,
                       int pe) {
  CheckRunning(call);
  if (context == nullptr) {
    Fail(call, "the context is SHMEM_CTX_INVALID");
  }
  const Team& team = *context->team;
  if (team.size == 0) {
    Fail(call, "the context was destroyed, or its team was");
  }
  if (!team.Has(pe)) {
    Fail(call, "PE " + std::to_string(pe) + " is not between 0 and " +
                   std::to_string(team.size - 1) +
                   (team.size == job.size ? "" : ", those of the context's team"));
  }
  const Segment* const segment = job.FindSegment(address, bytes);
  if (segment == nullptr) {
    if (bytes == 0) {
      return const_cast<std::byte*>(static_cast<const std::byte*>(address));  // nobody looks there
    }
    FailNotSymmetric(call, "the address in the other PE's memory", address, bytes);
  }
  return const_cast<std::byte*>(static_cast<const std::byte*>(address)) +
         segment->shifts[static_cast<size_t>(team.pes[static_cast<size_t>(pe)])];
}

void CheckSymmetric(const char* call, const char* argument, const void* address, size_t bytes) {
  if (bytes != 0 && job.FindSegment(address, bytes) == nullptr) {
    FailNotSymmetric(call, argument, address, bytes);
  }
}

void* Translate(const char* call, Context* context, const void* dest, size_t bytes, int pe) {
  return Reach(call, context, dest, bytes, pe);
}

}  // namespace ferry::shmem
