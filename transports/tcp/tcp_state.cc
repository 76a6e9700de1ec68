#include "transports/tcp/tcp_state.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/api/accounting.h"
#include "transports/tcp/tcp_frame.h"

namespace ferry::transport {
namespace {

constexpr size_t kCacheLine = 64;
// A connection for which so many answers wait, or twice as many as we ask of one peer ourselves, is
// not read on until it has taken half of them. Peers with the same options do not get there: so two
// that ask each other do not both stop.
constexpr size_t kMostReplies = 1024;

}  // namespace

StatusOr<std::unique_ptr<TcpCells>> TcpCells::Create(size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return StatusFromErrno(errno, "mmap of " + std::to_string(bytes) + " bytes for messages");
  }
  return std::unique_ptr<TcpCells>(new TcpCells(static_cast<std::byte*>(base), bytes));
}

TcpCells::~TcpCells() { munmap(base_, bytes_); }

size_t TcpState::CellBytes(const TransportOptions& options) {
  const size_t bytes =
      sizeof(FrameHeader) + std::max<size_t>(options.receive_buffer_bytes, kKeyBytes);
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

uint32_t TcpState::OperationSlots(const TransportOptions& options) {
  return options.max_outstanding + OperationReserve(options);
}

TcpState::TcpState(const TransportOptions& options, std::unique_ptr<TcpCells> cells)
    : options(options),
      cell_bytes(CellBytes(options)),
      most_replies(std::max<size_t>(kMostReplies, size_t{2} * PerPeerLimit(options))),
      cells(std::move(cells)),
      operations({.slots = OperationSlots(options),
                  .outstanding = options.max_outstanding,
                  .outstanding_per_peer = PerPeerLimit(options),
                  .timeout_ns = options.post_timeout_ns},
                 &statistics) {}

}  // namespace ferry::transport
