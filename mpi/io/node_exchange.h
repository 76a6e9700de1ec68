// The messages by which the nodes that access a file together exchange the bytes of cells
// (cells.h): between their leaders, the first ranks of the file on each node, in the context of the
// file's own communicator, which no other message uses. There is one exchange for messages to the
// owners of cells, and another for the answers.
//
// A few messages are under way at a time in either direction. Those of two nodes stay in order, so
// none has to say which call it is of. A message that fails, though no rank has died, counts as an
// empty one, so that all nodes go on to the end.
//
// Calling thread: that of a collective call of the file, on leaders, or the one that works for it.
// Blocks: SetUp on the daemon, GiveUp for the time that messages under way take; the others never.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/api/message.h"
#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"
#include "mpi/io/cells.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

class NodeExchange {
 public:
  enum class Kind : uint8_t { kToOwners, kAnswers };

  explicit NodeExchange(Kind kind) : kind_(kind) {}
  ~NodeExchange();
  NodeExchange(const NodeExchange&) = delete;
  NodeExchange& operator=(const NodeExchange&) = delete;

  // Makes room for messages of cells of up to `cell_bytes`. `leaders`: the rank of the file that
  // leads each node. MPI_ERR_NO_MEM.
  Failure SetUp(const Comm& comm, std::vector<int> leaders, int64_t cell_bytes);

  // Begins a call: receives for its first messages. `cells` stays until the call is over.
  void Begin(const Cells& cells);

  // Returns where the next message may be written; null: all room is taken by messages under way.
  std::byte* RoomToSend();
  // Sends it.
  void Send(int node, int64_t bytes);

  // The oldest message that is expected. Null until it has come.
  struct Arrived {
    Cells::Incoming what;
    const std::byte* message = nullptr;
    int64_t bytes = 0;
    Failure failure;  // no rank has died; then the message is empty
  };
  const Arrived* Front();
  // Done with that one.
  void Pop();

  // Returns true if no message is under way, or expected.
  bool IsOver();
  // Why all messages fail, such as a death: after that, only GiveUp is left.
  const Failure& failure() const { return failure_; }
  // Takes the failure of a message that was sent, though no rank has died.
  Failure TakeLoss() { return std::exchange(loss_, Failure()); }
  // Ends the messages under way in vain.
  void GiveUp();

 private:
  static constexpr size_t kSends = 3;
  static constexpr size_t kReceives = 4;
  struct Transfer {
    std::byte* room = nullptr;
    client::RequestHandle handle = 0;  // 0: none is under way
    Cells::Incoming what;
  };

  client::Message MessageOf(int node, const std::byte* room, int64_t bytes) const;
  bool IsDone(Transfer* transfer, int64_t* bytes, Failure* lost);
  Cells::Incoming FirstExpected() const;
  Cells::Incoming ExpectedBehind(const Cells::Incoming& one) const;
  void Expect();

  const Kind kind_;
  const Comm* comm_ = nullptr;
  std::vector<int> leaders_;
  int64_t room_bytes_ = 0;
  WindowMemory memory_;
  std::array<Transfer, kSends> sends_;
  size_t next_send_ = 0;
  std::array<Transfer, kReceives> receives_;  // a ring
  size_t first_ = 0;                          // of the oldest one
  size_t expected_ = 0;                       // how many there are
  const Cells* cells_ = nullptr;
  Cells::Incoming next_;  // for which there is no receive yet
  Arrived arrived_;
  Failure failure_;
  Failure loss_;
};

}  // namespace ferry::mpi
