// The messages by which the nodes that access a file together exchange the bytes of cells
// (cells.h): between their leaders, the first ranks of the file on each node, in the context of the
// file's own communicator, which no other message uses. There is one exchange for messages to the
// owners of cells, and another for the answers.
//
// A few messages are under way at a time in either direction. Those of two nodes stay in order, so
// none has to say which call it is of. Each begins with a header, which says whether it has bytes
// or why it has none. A message that fails, though no rank has died, counts as one without bytes,
// so that all nodes go on to the end; one that cannot even start goes as its header alone.
//
// A leader that cannot go on, since a rank is gone or a link is cut, tells all others by a *notice*
// (Leave), and each leader that hears of it does the same: so the call ends on all nodes, also on
// those that see nothing wrong. The nodes may be out of step after that, so they exchange no more.
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

  // To be called before the ranks agree on a call: links that are cut from then on end it.
  void NoteCuts();
  // Begins a call: receives for its first messages. `cells` stays until the call is over.
  void Begin(const Cells& cells);

  // Returns where the next message may be written; null: all room is taken by messages under way.
  std::byte* RoomToSend();
  // Sends it; `failure`: why it has no bytes.
  void Send(int node, int64_t bytes, const Failure& failure = {});

  // The oldest message that is expected. Null until it has come.
  struct Arrived {
    Cells::Incoming what;
    const std::byte* message = nullptr;
    int64_t bytes = 0;
    Failure failure;  // why it has none, though no rank has died
  };
  const Arrived* Front();
  // Done with that one.
  void Pop();

  // Returns true if no message is under way, or expected.
  bool IsOver();
  // Why the call cannot go on, such as a death; else kOk. After that, only Leave and GiveUp are
  // left. Look looks for notices, and for links that are cut.
  ErrorCode end() const { return end_; }
  ErrorCode Look();
  // False: the nodes have to move their bytes in another way from now on.
  bool is_in_step() const { return end_ == ErrorCode::kOk; }
  // Starts messages that could not start before.
  void StartSends();
  // Takes the failure of a message that was sent, though no rank has died.
  Failure TakeLoss() { return std::exchange(loss_, Failure()); }
  // Tells the other leaders that the call has ended here, for this reason.
  void Leave(ErrorCode why);
  // Ends the messages under way in vain.
  void GiveUp();

 private:
  static constexpr size_t kSends = 3;
  static constexpr size_t kReceives = 4;
  struct Transfer {
    std::byte* room = nullptr;
    client::RequestHandle handle = 0;  // 0: none is under way
    Cells::Incoming what;              // of a send: the node alone
    int64_t bytes = 0;                 // with the header
    bool is_waiting = false;           // it has not started
  };
  // At the beginning of each message, and all of a notice.
  struct Header {
    uint32_t error = 0;       // of a notice: why its sender has left
    int32_t error_class = 0;  // why there are no bytes
    int64_t bytes = 0;        // that follow
  };

  client::Message MessageOf(int node, const std::byte* room, int64_t bytes) const;
  client::Message NoticeTo(int32_t peer, Header* notice) const;
  bool Start(Transfer* transfer, bool is_send);
  bool IsDone(Transfer* transfer, int64_t* bytes, Failure* lost);
  bool IsCut();
  bool IsCutOff() const;
  void End(ErrorCode why);
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
  ErrorCode end_ = ErrorCode::kOk;
  Failure loss_;
  // When IsCut looked last: the front end's count of changes for the worse, and the dead.
  uint32_t changes_ = 0;
  uint32_t dead_ = 0;
  Header notice_;
  std::vector<client::RequestHandle> notices_;  // under way
};

}  // namespace ferry::mpi
