// The servers by which ranks of this machine meet that use another library than Ferry's: PMI-1
// (pmi_server.h) and PMIx (pmix_server.h). ferryrun has them for its ranks, and each agent for the
// ranks of its host. To ranks of Ferry they cost a socket and a few variables.
//
// Main thread; nothing blocks but for the start of a PMIx server, once a rank asks for one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "proto/control.pb.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/pmi_server.h"
#include "tools/ferryrun/pmix_server.h"
#include "tools/ferryrun/served_job.h"

namespace ferry::tools {

class RankServers {
 public:
  explicit RankServers(ServedJob job)
      : job_(std::move(job)), pmi_(job_, &events_, &words_), pmix_(job_, &events_, &words_) {}

  // Adds to `environment`, in which the options of the rank are, what its program needs to find the
  // servers. Returns the descriptor that it is to inherit; the guard tells it the number (PMI_FD).
  StatusOr<UniqueFd> Open(uint32_t rank, std::vector<std::string>* environment);
  // Notes the process that the rank has become.
  void Started(uint32_t rank, pid_t pid) { pids_[rank] = pid; }

  // Readable when a rank wants something.
  int fd() const { return events_.fd(); }
  void Serve() { events_.Dispatch(); }
  // Takes a message of ferryrun's (exchange_hub.h).
  void Take(const ExchangeMessage& message);
  // Returns what is to be passed on to ferryrun, in the order in which it happened.
  std::vector<ExchangeMessage> TakeWords();

 private:
  const ServedJob job_;
  EventSet events_;
  std::vector<ExchangeMessage> words_;
  std::map<uint32_t, pid_t> pids_;
  std::set<uint32_t> wrapped_;  // ranks whose program was started by another in its slot
  PmiServer pmi_;
  PmixServer pmix_;
};

// The job of a request to one of its daemons, for the ranks of `nodes_here`. `node_of_rank`: in
// place of the request's.
ServedJob ServedJobOf(const control::CreateJobRequest& request, std::vector<uint32_t> node_of_rank,
                      std::string name_space, std::vector<uint32_t> nodes_here);

// Returns a name that cannot be guessed, by which ranks prove that they belong to a job of PMIx.
std::string DrawNameSpace();

// Returns this process's environment for its ranks: without Ferry's options, which they are told
// anew, and without what another launcher that started this ferryrun as a rank of its own has told
// it: servers to meet by, and numbers of ranks.
std::vector<std::string> EnvironmentForRanks();

}  // namespace ferry::tools
