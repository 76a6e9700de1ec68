// The connections of a tool to a ferryd, over the Unix sockets of its run directory.
//
// Any thread; calls block for at most the time given to Connect. Errors are sentences for the user:
// what is wrong with that directory and what to do. kNoDaemon: no daemon serves it (or not any
// more); kPermissionDenied: this user is not its administrator, or that daemon serves others;
// kVersionMismatch: names both versions; kTimeout; kRunDirectory: another user's server
// (client/bootstrap/daemon_socket.h); and the daemon's own errors.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "client/bootstrap/attach_connection.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "proto/control.grpc.pb.h"

namespace ferry::tools {

// The place that a client calls, and its timeout.
struct DaemonPlace {
  std::string run_directory;
  const char* socket = "";  // file name
  uint64_t timeout_ms = 0;
  std::string daemon_user;  // the option

  std::string SocketPath() const { return run_directory + "/" + socket; }
};

template <typename Service>
class DaemonClient {
 public:
  using Stub = typename Service::Stub;

  // Finds the daemon of `run_directory`, which must be root's, this user's or `daemon_user`'s, and
  // compares versions with it.
  static StatusOr<DaemonClient> Connect(const std::string& run_directory, uint64_t timeout_ms,
                                        const std::string& daemon_user = "");

  // Makes one call: client.Call(&AdminClient::Stub::Status, request, &reply).
  template <typename Request, typename Reply>
  Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply* reply) const {
    grpc::ClientContext context;
    return Call(method, request, reply, &context);
  }
  // Likewise, with a fresh context, by which another thread may break the call off.
  template <typename Request, typename Reply>
  Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
              const Request& request, Reply* reply, grpc::ClientContext* context) const {
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::milliseconds(place_.timeout_ms));
    if (!token_.empty()) {
      context->AddMetadata("ferry-token", token_);
    }
    return FromGrpc((stub_.get()->*method)(context, request, reply));
  }

  // Makes one call that is answered by a stream: calls take(part) for each part, until it returns
  // false: client.Read(&AdminClient::Stub::JobProfile, request, take). The timeout is for all of
  // it.
  template <typename Request, typename Part, typename Take>
  Status Read(std::unique_ptr<grpc::ClientReader<Part>> (Stub::*method)(grpc::ClientContext*,
                                                                        const Request&),
              const Request& request, Take&& take) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(place_.timeout_ms));
    if (!token_.empty()) {
      context.AddMetadata("ferry-token", token_);
    }
    const std::unique_ptr<grpc::ClientReader<Part>> reader =
        (stub_.get()->*method)(&context, request);
    Part part;
    while (reader->Read(&part)) {
      if (!take(static_cast<const Part&>(part))) {
        context.TryCancel();
        (void)reader->Finish();
        return {};
      }
    }
    return FromGrpc(reader->Finish());
  }

  // The stub, for streaming calls of administrators, which have no deadline.
  Stub& stub() const { return *stub_; }
  // Turns the status that ends a stream into an error, with the sentence that Call would return.
  Status FromGrpc(const grpc::Status& status) const;

  // Returns the daemon's status, with its words about this user, as of Connect.
  const control::StatusReply& daemon() const { return daemon_; }

 private:
  DaemonClient(DaemonPlace place, UniqueFd socket);
  Status Identify();

  DaemonPlace place_;
  // The connection that tells the daemon who the user is; administrators need none.
  std::unique_ptr<client::AttachConnection> attach_;
  std::string token_;
  std::unique_ptr<Stub> stub_;
  control::StatusReply daemon_;
};

// An administrator's client: calls the Admin service, over admin.sock.
using AdminClient = DaemonClient<control::Admin>;
// A user's client, for jobs of his own: calls the Launcher service, over control.sock. It holds the
// connection to the attach socket that says who the user is: jobs made through it end when it is
// destroyed, or its process dies.
using LauncherClient = DaemonClient<control::Launcher>;

// Asks a daemon for its state. Administrators see all of it, others what concerns their own jobs.
class Observer {
 public:
  // Connects as DaemonClient::Connect does.
  static StatusOr<Observer> Connect(const std::string& run_directory, uint64_t timeout_ms,
                                    const std::string& daemon_user = "");

  const std::string& run_directory() const { return run_directory_; }
  // Returns the daemon's status as of Connect.
  const control::StatusReply& daemon() const {
    return std::visit(
        [](const auto& client) -> const control::StatusReply& { return client.daemon(); }, client_);
  }

  Status Ask(const control::StatusRequest& request, control::StatusReply* reply) const {
    return Call(&Admin::Status, &Launcher::Status, request, reply);
  }
  Status Ask(const control::SessionsRequest& request, control::SessionsReply* reply) const {
    return Call(&Admin::Sessions, &Launcher::Sessions, request, reply);
  }
  Status Ask(const control::CountersRequest& request, control::CountersReply* reply) const {
    return Call(&Admin::Counters, &Launcher::Counters, request, reply);
  }
  Status Ask(const control::LinksRequest& request, control::LinksReply* reply) const {
    return Call(&Admin::Links, &Launcher::Links, request, reply);
  }
  Status Ask(const control::NicsRequest& request, control::NicsReply* reply) const {
    return Call(&Admin::Nics, &Launcher::Nics, request, reply);
  }
  Status Ask(const control::GpusRequest& request, control::GpusReply* reply) const {
    return Call(&Admin::Gpus, &Launcher::Gpus, request, reply);
  }
  Status Ask(const control::WhyRequest& request, control::WhyReply* reply) const {
    return Call(&Admin::Why, &Launcher::Why, request, reply);
  }
  // Reads what measured ranks have written, in parts: as DaemonClient::Read.
  template <typename Take>
  Status Read(const control::JobProfileRequest& request, Take&& take) const {
    if (const auto* const admin = std::get_if<AdminClient>(&client_); admin != nullptr) {
      return admin->Read(&Admin::JobProfile, request, take);
    }
    return std::get<LauncherClient>(client_).Read(&Launcher::JobProfile, request, take);
  }

 private:
  using Admin = AdminClient::Stub;
  using Launcher = LauncherClient::Stub;
  template <typename Stub, typename Request, typename Reply>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Reply*);

  Observer(std::string run_directory, std::variant<AdminClient, LauncherClient> client)
      : run_directory_(std::move(run_directory)), client_(std::move(client)) {}

  template <typename Request, typename Reply>
  Status Call(Method<Admin, Request, Reply> admin, Method<Launcher, Request, Reply> launcher,
              const Request& request, Reply* reply) const {
    if (const auto* client = std::get_if<AdminClient>(&client_)) {
      return client->Call(admin, request, reply);
    }
    return std::get<LauncherClient>(client_).Call(launcher, request, reply);
  }

  std::string run_directory_;
  std::variant<AdminClient, LauncherClient> client_;
};

}  // namespace ferry::tools
