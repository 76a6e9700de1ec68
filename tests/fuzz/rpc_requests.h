// Requests of every method of every gRPC service, right and wrong, as a fuzzer's input says.
//
// Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::fuzz {

// The names and secrets that a caller knows, and may use.
struct RpcWorld {
  std::vector<std::string> jobs;  // the caller's own, and others'
  std::string secret;             // for the caller's own jobs
  bool keeps_jobs = false;        // seldom makes a call that ends one of his own
  std::vector<std::string> tokens;
  std::vector<std::string> addresses;  // of daemons, some of which do not exist
  std::vector<uint64_t> incarnations;  // likewise
  control::NodeIdentity node;          // the caller's own daemon
  std::string node_token;              // by which that daemon greets
};

enum class RpcService { kLauncher, kPeer, kAdmin };

struct RpcMethod {
  RpcService service;
  const char* path;
  // The request's bytes: mostly a message, sometimes none.
  std::string (*request)(FuzzInput& input, const RpcWorld& world);
  bool ends_jobs = false;
};

std::span<const RpcMethod> RpcMethods();

// One that a daemon takes: a job of ranks 0 and 1 at the first address, and 2 at the second.
control::CreateJobRequest ThreeRanks(const RpcWorld& world, const std::string& job);

template <typename T>
const T& Pick(FuzzInput& input, const std::vector<T>& from) {
  return from[input.Below(static_cast<uint32_t>(from.size()))];
}

}  // namespace ferry::fuzz
