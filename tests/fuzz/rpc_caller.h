// Makes gRPC calls as any process of the machine may: to any method at any port, with any bytes,
// tokens and order of a call's steps.
//
// One thread.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/rpc_requests.h"

namespace ferry::fuzz {

// How a call has ended.
struct RpcOutcome {
  const RpcMethod* method = nullptr;
  bool over = false;  // false: it is still open
  grpc::Status status;
  std::string reply;  // the last one
};

class RpcCaller {
 public:
  // `socket` is control.sock in gRPC's form; `port` is the one for daemons.
  RpcCaller(const std::string& socket, const std::string& port);
  // Drops open calls.
  ~RpcCaller();
  RpcCaller(const RpcCaller&) = delete;
  RpcCaller& operator=(const RpcCaller&) = delete;

  // Blocks for the answer, at most for some seconds.
  RpcOutcome Call(FuzzInput& input, const RpcWorld& world);
  void DropOpenCalls();

 private:
  struct Open;

  bool Step();
  static void AddMetadata(FuzzInput& input, const RpcWorld& world, grpc::ClientContext* context);
  void Finish(Open& call, grpc::Status* status);

  grpc::CompletionQueue queue_;
  grpc::GenericStub socket_;
  grpc::GenericStub port_;
  std::vector<std::unique_ptr<Open>> open_;
};

}  // namespace ferry::fuzz
