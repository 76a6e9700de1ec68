// A server of PMI-1 for the ranks of this machine that ask for it: programs of MPICH and of what
// comes of it, and tools that ask for their rank. Ranks of Ferry never do. Source: see
// client/bootstrap/pmi_wire.h.
//
// Each rank inherits one end of a socket (PMI_FD). Programs that follow each other in a slot use it
// in turn: each that finalizes ends a *round* of the rank, and each round has values and barriers
// of its own. Values travel at the barrier: to ferryrun, and from there once to every
// machine (exchange_hub.h).
//
// Main thread; nothing blocks. A client that breaks the rules is a fault, which ends the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/bootstrap/pmi_line.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/served_job.h"

namespace ferry::tools {

class PmiServer {
 public:
  // All pointers must outlive this object. `words`: where it adds what is to be passed on.
  PmiServer(const ServedJob& job, EventSet* events, std::vector<ExchangeMessage>* words);
  ~PmiServer();

  // Returns the descriptor that the program of a rank of this machine is to inherit. `app` and
  // `universe_size`: what it is told of itself.
  StatusOr<UniqueFd> Open(uint32_t rank, uint32_t app, uint32_t universe_size);
  // Takes a message of kind kWhole.
  void Take(const ExchangeMessage& message);

 private:
  struct Client {
    uint32_t rank = 0;
    uint32_t app = 0;
    uint32_t universe_size = 0;
    UniqueFd socket;
    std::string input;
    std::string output;
    uint32_t round = 0;     // this one if `inside`, else the next
    uint32_t barriers = 0;  // that it has entered in this round
    size_t bytes = 0;       // that it has put since its last barrier
    bool inside = false;
    bool waits = false;         // in a barrier
    std::string in_spawn = {};  // the rest of a spawn is being read: its first line
  };
  // A round, as ranks of this machine see it.
  struct Round {
    std::map<std::string, std::string, std::less<>> values;
    std::string put;         // since the last barrier, for the others: each text with a NUL behind
    uint32_t barriers = 0;   // that are complete
    uint32_t waiting = 0;    // clients
    uint32_t finalized = 0;  // clients
    uint32_t first_to_end = 0;  // the first rank that has finalized
  };

  void OnEvents(Client* client, uint32_t events);
  void Receive(Client* client);
  void Send(Client* client);
  void Watch(const Client& client);
  // Returns the answer to a line; "": none now.
  std::string Obey(Client* client, const std::string& line);
  std::string ObeyInside(Client* client, const std::string& command,
                         const client::PmiFields& fields);
  std::string Init(Client* client, const client::PmiFields& fields);
  std::string Put(Client* client, const client::PmiFields& fields);
  std::string Get(const Client& client, const client::PmiFields& fields);
  std::string EnterBarrier(Client* client);
  std::string Finalize(Client* client);
  void Fault(Client* client, const std::string& why);
  void FaultOfBarrier(const Round& round, uint32_t waiting_rank);
  std::string NameOf(uint32_t round) const;
  static std::string FenceOf(uint32_t round, uint32_t barrier);

  const ServedJob& job_;
  EventSet* const events_;
  std::vector<ExchangeMessage>* const words_;
  const std::string mapping_;
  std::map<uint32_t, std::unique_ptr<Client>> clients_;  // by rank
  std::map<uint32_t, Round> rounds_;                     // by their number
};

}  // namespace ferry::tools
