#include "shm/counters.h"

namespace ferry::shm {
namespace {

using enum Statistic;

constexpr std::array<StatisticLabel, kStatisticCount> kLabels = {{
    {kMessagesSent, "messages_sent", "messages", "Messages sent by this rank"},
    {kMessagesReceived, "messages_received", "messages", "Messages received by this rank"},
    {kBytesSent, "bytes_sent", "bytes", "Payload sent by this rank"},
    {kBytesReceived, "bytes_received", "bytes", "Payload received by this rank"},
    {kPathInlineMessages, "path_inline_messages", "messages", "Messages inside their descriptor"},
    {kPathInlineBytes, "path_inline_bytes", "bytes", "Payload inside descriptors"},
    {kPathCellMessages, "path_cell_messages", "messages", "Messages through a slab cell"},
    {kPathCellBytes, "path_cell_bytes", "bytes", "Payload through slab cells"},
    {kPathHeapCopyMessages, "path_heap_copy_messages", "messages",
     "Messages of the node copied from a heap"},
    {kPathHeapCopyBytes, "path_heap_copy_bytes", "bytes", "Payload of the node copied from a heap"},
    {kPathProcessVmMessages, "path_process_vm_messages", "messages",
     "Messages of the node copied from private memory by process_vm_readv or process_vm_writev"},
    {kPathProcessVmBytes, "path_process_vm_bytes", "bytes",
     "Payload of the node copied from private memory by process_vm_readv or process_vm_writev"},
    {kPathBounceMessages, "path_bounce_messages", "messages",
     "Messages between nodes fetched into a heap block, then copied to private memory"},
    {kPathBounceBytes, "path_bounce_bytes", "bytes",
     "Payload between nodes that took such a block"},
    {kPathRdmaMessages, "path_rdma_messages", "messages",
     "Messages between nodes moved straight between the buffers"},
    {kPathRdmaBytes, "path_rdma_bytes", "bytes",
     "Payload between nodes moved straight between the buffers"},
    {kPathStagedMessages, "path_staged_messages", "messages",
     "Messages between nodes moved through pinned staging memory"},
    {kPathStagedBytes, "path_staged_bytes", "bytes",
     "Payload between nodes moved through pinned staging memory"},
    {kPathPacketMessages, "path_packet_messages", "messages",
     "Messages between nodes that came with the packet that announced them"},
    {kPathPacketBytes, "path_packet_bytes", "bytes",
     "Payload between nodes that came with the packet that announced it"},
    {kChunksCopiedByRank, "chunks_copied_by_rank", "chunks",
     "Chunks of large messages copied by the rank's own threads"},
    {kChunksCopiedByWorker, "chunks_copied_by_worker", "chunks",
     "Chunks of large messages copied by the progress worker"},
    {kSendsQueued, "sends_queued", "messages", "Sends that had to wait for room or credit"},
    {kUnexpectedMessages, "unexpected_messages", "messages",
     "Messages that arrived before their receive was posted"},
    {kWorkerMatches, "worker_matches", "messages",
     "Messages matched by the progress worker while the rank computed"},
    {kLeaseHandovers, "lease_handovers", "times", "Times a lease holder gave way to a waiter"},
    {kErrors, "errors", "requests", "Requests that ended with an error"},
    {kRtrs, "rtrs", "receives",
     "Receives that an RTR named to their source on another node (receiver-first)"},
    {kWrittenMessages, "written_messages", "messages",
     "Messages that their source wrote into a receive that an RTR had named; others were fetched"},
    {kWrittenBytes, "written_bytes", "bytes", "Payload of these"},
    {kOffloadCopies, "offload_copies", "copies",
     "Copies of offloaded send buffers into bounce buffers in the heap"},
    {kOffloadBytes, "offload_bytes", "bytes", "Bytes so copied"},
    {kMatchedByRank, "matched_by_rank", "messages",
     "Messages of matched sends inside the node that the rank itself started"},
    {kMatchedByStream, "matched_by_stream", "messages",
     "Messages of matched sends inside the node that a stream started: no CPU moves them"},
    {kMatchedByDaemon, "matched_by_daemon", "messages",
     "Messages of matched sends to other nodes that the daemon's software engine moved"},
    {kMatchedByNic, "matched_by_nic", "messages",
     "Messages of matched sends to other nodes that the NIC's deferred operations moved"},
    {kRingRequests, "ring_requests", "requests",
     "Requests of devices that ferryd took from this rank's rings"},
    {kRingErrors, "ring_errors", "requests", "Of those, the ones that were refused or failed"},
    {kOneSidedOperations, "one_sided_operations", "operations",
     "Puts, gets and atomic operations in memory of other nodes; long ones count by the piece"},
    {kOneSidedBytes, "one_sided_bytes", "bytes", "What these have put or got"},
    {kLinkMessagesSent, "link_messages_sent", "messages",
     "Packets that this rank has sent by direct links, protocol included"},
    {kLinkMessagesReceived, "link_messages_received", "messages",
     "Packets that have come by direct links"},
    {kLinkBytesSent, "link_bytes_sent", "bytes", "Bytes that have left by direct links"},
    {kLinkBytesReceived, "link_bytes_received", "bytes", "Bytes that have come by direct links"},
    {kLinksOpen, "links_open", "links", "Direct links that this rank has now"},
    {kLinkErrors, "link_errors", "errors", "Direct links that broke while messages took them"},
}};

constexpr bool EachLabelIsInItsPlace() {
  for (uint32_t i = 0; i < kStatisticCount; ++i) {
    if (static_cast<uint32_t>(kLabels[i].id) != i) {
      return false;
    }
  }
  return true;
}
static_assert(EachLabelIsInItsPlace());

}  // namespace

const std::array<StatisticLabel, kStatisticCount>& StatisticLabels() { return kLabels; }

}  // namespace ferry::shm
