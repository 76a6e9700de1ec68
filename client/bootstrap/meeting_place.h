// Where the ranks of a job meet that was started by a launcher without a server: torchrun,
// Kubernetes' jobs, scripts. It tells each rank its number, how many there are, and a host and
// a port: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (PyTorch's torch.distributed, "Environment
// variable initialization"), and with torchrun LOCAL_RANK, LOCAL_WORLD_SIZE.
//
// Rank 0 serves the meeting. MASTER_PORT itself is taken, by torchrun's store or by the program's
// own torch.distributed, so the meeting is at the port after it, or at FERRY_MEETING_PORT. Ranks of
// one node meet at a local socket, as processes of one user; all others need a secret.
//
// Any thread. Reads the file that holds the secret; nothing else blocks.
#pragma once

#include <cstdint>
#include <string>

#include "common/net_address.h"
#include "common/status.h"
#include "config/options.h"

namespace ferry::client {

struct MeetingPlace {
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t local_rank = 0;  // 0 also where the launcher does not tell it
  daemon::HostPort address;
  bool calls_locally = false;  // this rank shares rank 0's node, as far as the environment tells
  bool serves_port = false;    // of rank 0: ranks of other nodes may call
  std::string local_name;      // of the socket, in the abstract namespace (unix(7))
  std::string secret;          // empty: none
  std::string job;             // the launcher's name for it, which others at this port do not have
};

// Returns true if the environment names a place to meet, and this process's rank.
bool HasMeetingPlace(const char* const* environment);

// Returns true if torchrun started this process, or a process that started it.
bool IsUnderTorchrun(const char* const* environment);

// Reads it. kConfiguration, in words that say what to do: a variable that makes no sense; no secret
// where one is needed; a file of a secret that others may read.
StatusOr<MeetingPlace> ReadMeetingPlace(const char* const* environment,
                                        const config::Options& options);

}  // namespace ferry::client
