// Says which ranks keep a collective waiting: a rank that has waited for long (option
// mpi_warn_after_ms) asks the others of the communicator where they are, and writes to its standard
// error which ranks have not come, or are in another collective. It only reports: the wait goes on.
//
// A rank that waits in a collective of the communicator answers; one that computes, or waits for
// something else, does not. On a board (coll/board) no rank has to be asked: absence can be seen
// there.
//
// A report must cost the program nothing. Questions and answers are small messages that leave at
// once, or wait for a later look: they hold no request of the rank's (request_limit), and no rank
// asks all the others of a large communicator, or of one with many nodes (PlanQuestions). Each
// question doubles the time before the next one, so that a rank that never listens has to keep few
// of them. Calling thread: any. Nothing blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "common/clock.h"
#include "common/number_list.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/line_to_members.h"

namespace ferry::mpi {

class CallWatch {
 public:
  // `world_ranks`: of the peers of the communicator's channel, of which `self` is this one's.
  // `comm` outlives it.
  CallWatch(const Comm& comm, NumberList world_ranks, int self);
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // The call in which a rank waits: its number among the communicator's collectives, and the
  // function.
  struct Call {
    uint64_t number = 0;
    const char* name = "";
  };
  // Notes the blocking call under way. There is one at a time.
  void SetBlockingCall(const Call& call) { blocking_call_ = call; }
  const Call& blocking_call() const { return blocking_call_; }

  // One wait.
  class Wait : public LongWait {
   public:
    Wait(CallWatch* watch, const Call& call);
    ~Wait() override;
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    uint64_t end_ns() const override { return end_ns_; }
    void Look() override { Look(nullptr); }
    void Listen() override { watch_.Listen(); }
    // Reports a long wait, if it is time. `absent` tells which ranks have not come, where that can
    // be seen: then no rank is asked.
    void Look(const std::function<bool(int peer)>* absent) {
      if (CoarseMonotonicNs() >= end_ns_) [[unlikely]] {
        LookNow(absent);
      }
    }

   private:
    friend class CallWatch;
    enum class Next { kListen, kAsk, kTell };
    void LookNow(const std::function<bool(int peer)>* absent);
    std::vector<int> FindMissing(const std::function<bool(int peer)>* absent) const;
    std::string Tell(const std::vector<int>& absent) const;

    CallWatch& watch_;
    const Call call_;
    const uint64_t begin_ns_;
    Next next_ = Next::kListen;
    bool has_shown_ = false;  // who is missing
    uint64_t end_ns_;
  };

  // Takes questions and answers of other ranks. To be called while waiting.
  void Listen() {
    if (is_listening_.load(std::memory_order_relaxed)) [[unlikely]] {
      ListenNow();
    }
  }

 private:
  struct Notice {
    uint64_t number = 0;
    uint32_t is_question = 0;
    uint32_t reserved = 0;
    char name[48] = {};
  };
  struct Heard {
    uint64_t number = 0;
    std::string name;
  };

  void ShowMissing(const std::vector<int>& missing) const;
  void StartAsking(const Call& call);
  void ListenNow();
  void SendWaiting();
  bool Receive(const client::Completion& found);
  void Take(int peer);
  bool Send(int peer, bool is_question, const Call& call);
  bool IsSpeaker(const Call& call) const;
  // Returns the wait for the earliest call; null: there is none.
  const Wait* First() const;
  client::Message MessageTo(int peer, void* buffer) const;

  const Comm& comm_;
  const NumberList world_ranks_;
  const int self_;
  Call blocking_call_;
  std::atomic<bool> is_listening_{false};
  std::mutex mutex_;      // guards what follows
  uint64_t patience_ns_;  // 0: no questions, no reports
  std::vector<Wait*> waits_;
  Notice received_;
  Call asked_call_;             // what the questions are about
  std::vector<int> speakers_;   // Questions::speakers
  std::deque<int> to_ask_;      // that have not been asked yet
  std::vector<int> asked_;      // since the last report
  std::map<int, Heard> heard_;  // by peer, since then
  std::deque<int> to_answer_;   // each once
};

// The plan of a rank's questions.
struct Questions {
  std::vector<int> peers;  // whom it asks
  std::vector<int>
      speakers;  // in the place of this rank, the first of these reports that waits, too
};

// Plans the questions of rank `self` of a communicator whose ranks live on the nodes `node_of`.
//
// In one of up to kGridRow ranks on up to kMostNodesInRow nodes each rank asks all the others, and
// reports. In any other, ranks ask those of their own node, and the first rank of each node asks
// the first ranks of other nodes: of all, if these are few, else of those that follow and precede
// its node by 1, 2, 4 and so on. So the number of questions that leave a node grows with the
// logarithm of the number of nodes, and most go where collectives send messages, too: each way
// between two daemons that opens for a question alone takes their time, and a job of many nodes in
// which all ranks wait would open all ways at once.
//
// The ranks of a node stand in a grid, row after row, and each asks those of its row and of its
// column; up to kGridRow are one row. The first rank of a row that waits in a call reports for the
// row. So a rank that is missing is missed by those of its row and column, or, if it is the first
// one of its node, by those of other nodes. A rank that is asked asks the asker as well.
inline constexpr int kGridRow = 64;
inline constexpr size_t kMostNodesInRow = 16;
Questions PlanQuestions(int self, const NumberList& node_of);

// Returns "1, 2 and 5"; long lists end with the number of ranks left out.
std::string RankList(const std::vector<int>& ranks);

}  // namespace ferry::mpi
