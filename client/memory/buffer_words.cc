#include "client/memory/buffer_words.h"

#include <cstdio>

namespace ferry::client {

std::string AddressText(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

std::string RangeText(const OwnRegion& region) {
  char text[64];
  std::snprintf(text, sizeof(text), " bytes at %p", static_cast<void*>(region.base));
  return std::to_string(region.size_bytes) + text;
}

Status CheckEnd(const OwnRegion& region, const void* pointer, uint64_t size_bytes) {
  const auto left = static_cast<uint64_t>(region.base + region.size_bytes -
                                          static_cast<const std::byte*>(pointer));
  return size_bytes <= left
             ? Status()
             : Status(ErrorCode::kInvalidBuffer,
                      "a buffer of " + std::to_string(size_bytes) +
                          " bytes runs past the end of its device memory (" + RangeText(region) +
                          "), of which " + std::to_string(left) + " bytes are left there");
}

}  // namespace ferry::client
