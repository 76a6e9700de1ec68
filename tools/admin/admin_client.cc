#include "tools/admin/admin_client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/unique_fd.h"
#include "common/version.h"
#include "proto/error_details.h"

namespace ferry::tools {
namespace {

std::string SocketPath(const std::string& run_directory) { return run_directory + "/control.sock"; }

Status NoDaemon(const std::string& run_directory, const std::string& why) {
  return {ErrorCode::kNoDaemon, "no ferryd serves " + run_directory + " (" + why +
                                    "): start one with `ferryd --run_directory=" + run_directory +
                                    "`, or name another directory with --run_directory"};
}

Status NotAllowed(const std::string& run_directory) {
  return {ErrorCode::kPermissionDenied, "uid " + std::to_string(geteuid()) +
                                            " may not talk to the ferryd of " + run_directory +
                                            ": run this as the owner of that directory"};
}

// gRPC reports every failure to connect alike, so the reason is found out before it is used.
Status Probe(const std::string& run_directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = SocketPath(run_directory);
  if (path.size() >= sizeof(address.sun_path)) {
    return {ErrorCode::kRunDirectory,
            "the run directory's name is too long for a Unix socket: " + run_directory};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) {
    return StatusFromErrno(errno, "socket");
  }
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return {};
  }
  switch (errno) {
    case ENOENT:
      return NoDaemon(run_directory, access(run_directory.c_str(), F_OK) == 0
                                         ? "the directory holds no control.sock"
                                         : "the directory does not exist");
    case ENOTDIR:
      return NoDaemon(run_directory, "it is not a directory");
    case ECONNREFUSED:
      return NoDaemon(run_directory, "a dead ferryd left its socket there");
    case EACCES:
    case EPERM:
      return NotAllowed(run_directory);
    default:
      return StatusFromErrno(errno, "cannot connect to " + path);
  }
}

std::string Versions(uint32_t layout, uint32_t protocol) {
  return "layout " + std::to_string(layout) + ", protocol " + std::to_string(protocol);
}

}  // namespace

AdminClient::AdminClient(std::string run_directory, uint64_t timeout_ms)
    : run_directory_(std::move(run_directory)),
      timeout_ms_(timeout_ms),
      stub_(control::Admin::NewStub(grpc::CreateChannel("unix:" + SocketPath(run_directory_),
                                                        grpc::InsecureChannelCredentials()))) {}

StatusOr<AdminClient> AdminClient::Connect(const std::string& run_directory, uint64_t timeout_ms) {
  FERRY_RETURN_IF_ERROR(Probe(run_directory));
  AdminClient client(run_directory, timeout_ms);
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Status, control::StatusRequest(), &client.daemon_));
  FERRY_RETURN_IF_ERROR(client.CompareVersions());
  return client;
}

std::chrono::system_clock::time_point AdminClient::Deadline() const {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms_);
}

Status AdminClient::CompareVersions() const {
  const control::NodeIdentity& node = daemon_.node();
  if (node.layout_version() == kLayoutVersion && node.protocol_version() == kProtocolVersion) {
    return {};
  }
  return {ErrorCode::kVersionMismatch,
          "the ferryd of " + run_directory_ + " has another version (" +
              Versions(node.layout_version(), node.protocol_version()) + ") than this program (" +
              Versions(kLayoutVersion, kProtocolVersion) + "): install both from one release"};
}

Status AdminClient::FromGrpc(const grpc::Status& status) const {
  const std::string& said = status.error_message();
  if (const int32_t code = control::DecodeErrorDetails(status.error_details()); code != 0) {
    return {static_cast<ErrorCode>(code), said};
  }
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return {};
    case grpc::StatusCode::UNAVAILABLE:
      return NoDaemon(run_directory_, "it went away: " + said);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ErrorCode::kTimeout, "the ferryd of " + run_directory_ + " did not answer within " +
                                       std::to_string(timeout_ms_) + " ms: is it stopped?"};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {ErrorCode::kVersionMismatch,
              "the ferryd of " + run_directory_ +
                  " does not know this request: install both from one release (this program: " +
                  Versions(kLayoutVersion, kProtocolVersion) + ")"};
    default:
      return {ErrorCode::kSystem, "the ferryd of " + run_directory_ + " said: " + said};
  }
}

}  // namespace ferry::tools
