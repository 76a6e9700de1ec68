// The messages of agent_protocol.h that hold more than a number or a sentence, as CBOR (RFC 8949).
//
// Pure functions; any thread. Reading fails with kCorrupt for data that the other end would never
// write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

// kSetUp.
struct AgentSetUp {
  std::string host;                  // as the user wrote it
  std::string network;               // --network
  std::vector<std::string> options;  // "FERRY_NAME=value"
  bool names_run_directory = false;
  bool private_daemon = false;  // do not look for a running daemon
  bool needs_address = false;   // other hosts take part
  std::string ferryd;           // empty: beside ferryrun
  uint64_t grace_ms = 0;
};
std::string ToText(const AgentSetUp& message);
StatusOr<AgentSetUp> ReadSetUp(const std::string& text);

// kFound.
struct AgentFound {
  std::string control_address;  // of the daemon that runs there; empty: none does
  std::string address;          // of the host
};
std::string ToText(const AgentFound& message);
StatusOr<AgentFound> ReadFound(const std::string& text);

// kServe.
struct AgentServe {
  bool private_daemon = false;
  uint32_t node = 0;
  std::string authority;  // PEM; empty: as options say
  std::string authority_key;
  Binding binding = Binding::kNone;
  uint64_t ranks = 0;  // there
};
std::string ToText(const AgentServe& message);
StatusOr<AgentServe> ReadServe(const std::string& text);

// kServing.
struct AgentServing {
  std::string run_directory;
  std::string control_address;
};
std::string ToText(const AgentServing& message);
StatusOr<AgentServing> ReadServing(const std::string& text);

// kStartRank; the rank's number stands in the frame.
struct AgentRank {
  std::vector<std::string> program;
  std::vector<std::string> variables;  // to be set in the agent's own environment
  std::string directory;               // absolute
  bool must = false;                   // the user named it: without it, nothing runs
};
std::string ToText(const AgentRank& message);
StatusOr<AgentRank> ReadRank(const std::string& text);

}  // namespace ferry::tools
