// How the progress thread fills in the records of a trace.
#pragma once

#include <cstdint>

#include "daemon/staging/staging_pool.h"
#include "daemon/trace/tracer.h"
#include "daemon/traffic/directory.h"

namespace ferry::daemon {

// A record of something that `rank` of this node does with remote rank `peer`: it stands for a
// moment, until it is given an end. Only while job.trace.on().
inline TraceRecord RecordOf(const Job& job, TraceKind kind, uint32_t rank, uint32_t peer,
                            uint64_t begin_ns) {
  TraceRecord record;
  record.kind = kind;
  record.rank = rank;
  record.peer = peer;
  record.peer_node = job.plan.node_of_rank[peer];
  record.begin_ns = record.end_ns = begin_ns;
  return record;
}

inline uint16_t BlockNumber(const Stage* stage, const StagingBlock* block) {
  return block == nullptr ? kNoBlock : static_cast<uint16_t>(stage->pool->IndexOf(*block));
}

}  // namespace ferry::daemon
