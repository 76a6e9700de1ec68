// The operations and connections of a TcpTransport, which all of its parts change.
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/operation_table.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_memory.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_stream.h"

namespace ferry::transport {

// See CompletionSink::OnConnectionEnded.
struct LostPeer {
  PeerId peer{};
  bool lossless = false;
};

// Memory for the frames of messages that have to wait.
class TcpCells {
 public:
  static StatusOr<std::unique_ptr<TcpCells>> Create(size_t bytes);
  ~TcpCells();
  TcpCells(const TcpCells&) = delete;
  TcpCells& operator=(const TcpCells&) = delete;
  std::byte* base() const { return base_; }

 private:
  TcpCells(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* const base_;
  const size_t bytes_;
};

struct TcpState {
  TcpState(const TransportOptions& options, std::unique_ptr<TcpCells> cells);

  static size_t CellBytes(const TransportOptions& options);
  static uint32_t OperationSlots(const TransportOptions& options);

  const TransportOptions options;
  const size_t cell_bytes;
  const size_t most_replies;  // see TcpReader
  const std::unique_ptr<TcpCells> cells;
  Statistics statistics;
  std::string last_error;

  TcpMemory memory;
  SlotMap<PeerId, TcpPeer> peers;
  OperationTable<TcpOperation> operations;
  intrusive::List<TcpOperation, intrusive::Queue> written;  // see TcpOperation::written
  std::vector<std::unique_ptr<TcpStream>> streams;
  std::vector<LostPeer> lost;  // of which the sink is to be told

  uint64_t now_ns = 0;
  uint64_t round = 1;
  uint64_t written_round = 0;      // in which a stream last wrote
  CompletionSink* sink = nullptr;  // within Poll
  int events = 0;                  // how many `sink` has got in this Poll
  bool has_moved = false;          // this Poll has moved a part of something long
};

}  // namespace ferry::transport
