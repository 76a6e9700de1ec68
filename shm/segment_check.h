// Publishing and checking the header of a segment (shm/layout/segment_header.h).
//
// Calling thread: any; nothing blocks. The header lies in shared memory: a checked size or kind may
// be changed by a faulty peer afterwards, so callers copy what they go on using.
#pragma once

#include "common/status.h"
#include "shm/layout/segment_header.h"
#include "shm/segment.h"

namespace ferry::shm {

// Fills the header of zeroed memory from `fields` (its magic and version are set here), the version
// last with release: a reader that finds it finds all that was stored before.
void PublishHeader(SegmentHeader* header, const SegmentHeader& fields);

// kWouldBlock: not published yet, try again. kVersionMismatch: names both versions. kCorrupt: not a
// segment of Ferry, of another kind, or of another size than it says.
Status CheckHeader(const Mapping& mapping, SegmentKind kind);
// The same for a copy of the header of a segment of `size_bytes`.
Status CheckHeader(const SegmentHeader& header, uint64_t size_bytes, SegmentKind kind);

}  // namespace ferry::shm
