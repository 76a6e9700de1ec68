#include "tools/admin/admin_client.h"

#include <utility>

namespace ferry::tools {

AdminClient::AdminClient(DaemonPlace place)
    : place_(std::move(place)),
      stub_(control::Admin::NewStub(grpc::CreateChannel("unix:" + place_.SocketPath(),
                                                        grpc::InsecureChannelCredentials()))) {}

StatusOr<AdminClient> AdminClient::Connect(const std::string& run_directory, uint64_t timeout_ms) {
  const DaemonPlace place{run_directory, "admin.sock", timeout_ms};
  FERRY_RETURN_IF_ERROR(ProbeDaemon(place));
  AdminClient client(place);
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Status, control::StatusRequest(), &client.daemon_));
  FERRY_RETURN_IF_ERROR(CompareVersions(place, client.daemon_));
  return client;
}

std::chrono::system_clock::time_point AdminClient::Deadline() const {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(place_.timeout_ms);
}

Status AdminClient::FromGrpc(const grpc::Status& status) const {
  return StatusOfCall(place_, status);
}

}  // namespace ferry::tools
