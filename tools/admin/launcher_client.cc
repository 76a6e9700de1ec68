#include "tools/admin/launcher_client.h"

#include <chrono>
#include <utility>

#include "common/hex_text.h"

namespace ferry::tools {
LauncherClient::LauncherClient(DaemonPlace place)
    : place_(std::move(place)),
      attach_(std::make_unique<client::AttachConnection>()),
      stub_(control::Launcher::NewStub(grpc::CreateChannel("unix:" + place_.SocketPath(),
                                                           grpc::InsecureChannelCredentials()))) {}

StatusOr<LauncherClient> LauncherClient::Connect(const std::string& run_directory,
                                                 uint64_t timeout_ms) {
  const DaemonPlace place{run_directory, "control.sock", timeout_ms};
  FERRY_RETURN_IF_ERROR(ProbeDaemon(place));
  LauncherClient client(place);
  FERRY_RETURN_IF_ERROR(client.Identify());
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Status, control::StatusRequest(), &client.daemon_));
  FERRY_RETURN_IF_ERROR(CompareVersions(place, client.daemon_));
  return client;
}

Status LauncherClient::Identify() {
  FERRY_RETURN_IF_ERROR(attach_->Connect(place_.run_directory, place_.timeout_ms));
  const StatusOr<attach::UserReply> user = attach_->IdentifyUser();
  FERRY_RETURN_IF_ERROR(user.status());
  token_ = HexText(user->token);
  return {};
}

void LauncherClient::Prepare(grpc::ClientContext* context) const {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(place_.timeout_ms));
  context->AddMetadata("ferry-token", token_);
}

}  // namespace ferry::tools
