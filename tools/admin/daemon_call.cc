#include "tools/admin/daemon_call.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/unique_fd.h"
#include "common/version.h"
#include "proto/error_details.h"

namespace ferry::tools {
namespace {

Status NoDaemon(const std::string& run_directory, const std::string& why) {
  return {ErrorCode::kNoDaemon, "no ferryd serves " + run_directory + " (" + why +
                                    "): start one with `ferryd --run_directory=" + run_directory +
                                    "`, or name another directory with --run_directory"};
}

Status NotAllowed(const DaemonPlace& place) {
  return {ErrorCode::kPermissionDenied, "uid " + std::to_string(geteuid()) + " may not use " +
                                            place.SocketPath() +
                                            ", which is open only to root and to the user that "
                                            "this ferryd runs as"};
}

std::string Versions(uint32_t layout, uint32_t protocol) {
  return "layout " + std::to_string(layout) + ", protocol " + std::to_string(protocol);
}

}  // namespace

Status ProbeDaemon(const DaemonPlace& place) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = place.SocketPath();
  if (path.size() >= sizeof(address.sun_path)) {
    return {ErrorCode::kRunDirectory,
            "the run directory's name is too long for a Unix socket: " + place.run_directory};
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
      return NoDaemon(place.run_directory,
                      access(place.run_directory.c_str(), F_OK) == 0
                          ? "the directory holds no " + std::string(place.socket)
                          : "the directory does not exist");
    case ENOTDIR:
      return NoDaemon(place.run_directory, "it is not a directory");
    case ECONNREFUSED:
      return NoDaemon(place.run_directory, "a dead ferryd left its socket there");
    case EACCES:
    case EPERM:
      return NotAllowed(place);
    default:
      return StatusFromErrno(errno, "cannot connect to " + path);
  }
}

Status StatusOfCall(const DaemonPlace& place, const grpc::Status& status) {
  const std::string& said = status.error_message();
  const std::string ferryd = "the ferryd of " + place.run_directory;
  if (const int32_t code = control::DecodeErrorDetails(status.error_details()); code != 0) {
    return {static_cast<ErrorCode>(code), said};
  }
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return {};
    case grpc::StatusCode::UNAVAILABLE:
      return NoDaemon(place.run_directory, "it went away: " + said);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ErrorCode::kTimeout, ferryd + " did not answer within " +
                                       std::to_string(place.timeout_ms) + " ms: is it stopped?"};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {ErrorCode::kVersionMismatch,
              ferryd +
                  " does not know this request: install both from one release (this program: " +
                  Versions(kLayoutVersion, kProtocolVersion) + ")"};
    default:
      return {ErrorCode::kSystem, ferryd + " said: " + said};
  }
}

Status CompareVersions(const DaemonPlace& place, const control::StatusReply& daemon) {
  const control::NodeIdentity& node = daemon.node();
  if (node.layout_version() == kLayoutVersion && node.protocol_version() == kProtocolVersion) {
    return {};
  }
  return {ErrorCode::kVersionMismatch,
          "the ferryd of " + place.run_directory + " has another version (" +
              Versions(node.layout_version(), node.protocol_version()) + ") than this program (" +
              Versions(kLayoutVersion, kProtocolVersion) + "): install both from one release"};
}

}  // namespace ferry::tools
