#include "tools/admin/daemon_client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <type_traits>

#include "client/bootstrap/daemon_socket.h"
#include "common/hex_text.h"
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

// A connection for gRPC, which reports every failure to connect alike, and would not look whom it
// speaks to. kNoDaemon, kPermissionDenied (the socket is closed to this user), kRunDirectory.
StatusOr<UniqueFd> OpenSocket(const DaemonPlace& place) {
  int error = 0;
  StatusOr<UniqueFd> socket = client::ConnectToDaemon(
      {place.run_directory, place.socket, SOCK_STREAM, place.timeout_ms, place.daemon_user},
      &error);
  FERRY_RETURN_IF_ERROR(socket.status());
  switch (error) {
    case 0:
      if (fcntl(socket->get(), F_SETFL, O_NONBLOCK) != 0) {
        return StatusFromErrno(errno, "fcntl");
      }
      return socket;
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
      return StatusFromErrno(error, "cannot connect to " + place.SocketPath());
  }
}

// Translates a call's status: the daemon's own ErrorCode and sentence, or gRPC's status in our
// words.
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

// The counters of thousands of ranks take more than the 4 MiB that gRPC accepts as a rule. The
// daemon is one that OpenSocket has trusted.
constexpr int kMostAnswerBytes = 1 << 30;

std::shared_ptr<grpc::Channel> ChannelOver(UniqueFd socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostAnswerBytes);
  return grpc::CreateCustomInsecureChannelFromFd("localhost", socket.Release(), arguments);
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

}  // namespace

template <typename Service>
DaemonClient<Service>::DaemonClient(DaemonPlace place, UniqueFd socket)
    : place_(std::move(place)), stub_(Service::NewStub(ChannelOver(std::move(socket)))) {}

template <typename Service>
StatusOr<DaemonClient<Service>> DaemonClient<Service>::Connect(const std::string& run_directory,
                                                               uint64_t timeout_ms,
                                                               const std::string& daemon_user) {
  constexpr bool kOfUser = std::is_same_v<Service, control::Launcher>;
  const DaemonPlace place{run_directory, kOfUser ? "control.sock" : "admin.sock", timeout_ms,
                          daemon_user};
  StatusOr<UniqueFd> socket = OpenSocket(place);
  FERRY_RETURN_IF_ERROR(socket.status());
  DaemonClient client(place, std::move(*socket));
  if (kOfUser) {
    FERRY_RETURN_IF_ERROR(client.Identify());
  }
  FERRY_RETURN_IF_ERROR(client.Call(&Stub::Status, control::StatusRequest(), &client.daemon_));
  FERRY_RETURN_IF_ERROR(CompareVersions(place, client.daemon_));
  return client;
}

template <typename Service>
Status DaemonClient<Service>::Identify() {
  attach_ = std::make_unique<client::AttachConnection>();
  FERRY_RETURN_IF_ERROR(
      attach_->Connect(place_.run_directory, place_.timeout_ms, place_.daemon_user));
  const StatusOr<attach::UserReply> user = attach_->IdentifyUser();
  FERRY_RETURN_IF_ERROR(user.status());
  token_ = HexText(user->token);
  return {};
}

template <typename Service>
Status DaemonClient<Service>::FromGrpc(const grpc::Status& status) const {
  return StatusOfCall(place_, status);
}

template class DaemonClient<control::Admin>;
template class DaemonClient<control::Launcher>;

StatusOr<Observer> Observer::Connect(const std::string& run_directory, uint64_t timeout_ms,
                                     const std::string& daemon_user) {
  StatusOr<AdminClient> admin = AdminClient::Connect(run_directory, timeout_ms, daemon_user);
  if (admin.ok()) {
    return Observer(run_directory, std::move(*admin));
  }
  if (admin.status().code() != ErrorCode::kPermissionDenied) {
    return admin.status();
  }
  StatusOr<LauncherClient> user = LauncherClient::Connect(run_directory, timeout_ms, daemon_user);
  FERRY_RETURN_IF_ERROR(user.status());
  return Observer(run_directory, std::move(*user));
}

}  // namespace ferry::tools
