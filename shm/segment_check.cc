#include "shm/segment_check.h"

#include <string>

#include "common/version.h"
#include "shm/atomic.h"

namespace ferry::shm {

void PublishHeader(SegmentHeader* header, const SegmentHeader& fields) {
  SegmentHeader filled = fields;
  filled.magic = kSegmentMagic;
  filled.layout_version = 0;
  *header = filled;
  StoreRelease(header->layout_version, kLayoutVersion);  // Pairs with CheckHeader.
}

Status CheckHeader(const Mapping& mapping, SegmentKind kind) {
  if (mapping.size_bytes() < sizeof(SegmentHeader)) {
    return {ErrorCode::kCorrupt, "segment of " + std::to_string(mapping.size_bytes()) +
                                     " bytes is too small for a header"};
  }
  return CheckHeader(*reinterpret_cast<const SegmentHeader*>(mapping.base()), mapping.size_bytes(),
                     kind);
}

Status CheckHeader(const SegmentHeader& header, uint64_t size_bytes, SegmentKind kind) {
  const uint32_t version = LoadAcquire(header.layout_version);  // Pairs with PublishHeader.
  if (version == 0) {
    return {ErrorCode::kWouldBlock, "segment is not ready yet"};
  }
  if (header.magic != kSegmentMagic) {
    return {ErrorCode::kCorrupt, "not a segment of Ferry: its magic number is wrong"};
  }
  if (version != kLayoutVersion) {
    return {ErrorCode::kVersionMismatch, "segment has layout version " + std::to_string(version) +
                                             ", this program " + std::to_string(kLayoutVersion) +
                                             ": use the same release of Ferry on both sides"};
  }
  if (header.kind != static_cast<uint32_t>(kind)) {
    return {ErrorCode::kCorrupt, "segment is of kind " + std::to_string(header.kind) +
                                     " instead of " + std::to_string(static_cast<uint32_t>(kind))};
  }
  if (header.size_bytes != size_bytes) {
    return {ErrorCode::kCorrupt, "segment says it has " + std::to_string(header.size_bytes) +
                                     " bytes, but has " + std::to_string(size_bytes)};
  }
  return {};
}

}  // namespace ferry::shm
