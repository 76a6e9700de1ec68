// A PMIx server for the ranks of this machine that ask for it, such as programs of Open MPI; by
// libpmix, which is opened when the first of them knocks (pmix_door.h). Ranks of Ferry never do.
//
// Values of ranks travel by fences, and where one asks for a value before a fence, from the machine
// that has it (direct modex): by ferryrun (exchange_hub.h).
//
// Main thread. libpmix calls back from a thread of its own; such calls are queued, and carried out
// when the event set is dispatched. One object for each process at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/admin/private_directory.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/event_set.h"
#include "tools/ferryrun/pmix_door.h"
#include "tools/ferryrun/served_job.h"

namespace ferry::tools {

// Where libpmix keeps the values of ranks: in the memory of its processes. Servers read the
// variable, as do clients what Open tells them.
inline constexpr char kPmixStoreVariable[] = "PMIX_MCA_gds";
inline constexpr char kPmixStore[] = "hash";

class PmixServer {
 public:
  // All pointers must outlive this object. `words`: where it adds what is to be passed on.
  PmixServer(const ServedJob& job, EventSet* events, std::vector<ExchangeMessage>* words);
  ~PmixServer();

  // Adds to `variables` how a rank of this machine finds the server; nothing where it cannot.
  void Open(uint32_t rank, uint32_t app, uint32_t universe_size,
            std::vector<std::string>* variables);
  // Takes a message of kind kWhole, kAsk or kAnswer.
  void Take(const ExchangeMessage& message);

 private:
  struct Library;  // its functions, and the calls that wait for an answer

  StatusOr<uint16_t> Start();
  StatusOr<uint16_t> StartLibrary();
  Status Register();
  Status Explain(int status, const std::string& what) const;
  void OnCalls();

  const ServedJob& job_;
  EventSet* const events_;
  std::vector<ExchangeMessage>* const words_;
  PmixDoor door_;
  bool is_open_ = false;
  std::map<uint32_t, uint32_t> app_of_rank_;  // of this machine
  uint32_t universe_size_ = 0;
  std::optional<PrivateDirectory> folder_;  // for files of the ranks' library
  std::unique_ptr<Library> library_;        // null: not started
};

// Returns the port of a server's address such as "pmix-server:12.0;tcp4://127.0.0.1:40001". 0: it
// has none on the loopback address.
uint16_t PortOfPmixUri(const std::string& uri);

}  // namespace ferry::tools
