// Asks a daemon for its state. Administrators see all of it (admin.sock), others what concerns
// their own jobs (control.sock).
//
// Any thread; calls block for at most the time given to Connect. Errors are sentences for the user:
// kNoDaemon, kPermissionDenied (that daemon serves others), kVersionMismatch (names both),
// kTimeout, and the daemon's own errors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "common/status.h"
#include "tools/admin/admin_client.h"
#include "tools/admin/launcher_client.h"

namespace ferry::tools {

class Observer {
 public:
  // Finds the daemon of `run_directory` and compares versions with it.
  static StatusOr<Observer> Connect(const std::string& run_directory, uint64_t timeout_ms);

  const std::string& run_directory() const { return run_directory_; }
  // What the daemon said about itself when Connect met it.
  const control::StatusReply& daemon() const;

  Status Ask(const control::StatusRequest& request, control::StatusReply* reply) const {
    return Call(&Admin::Status, &Launcher::Status, request, reply);
  }
  Status Ask(const control::SessionsRequest& request, control::SessionsReply* reply) const {
    return Call(&Admin::Sessions, &Launcher::Sessions, request, reply);
  }
  Status Ask(const control::CountersRequest& request, control::CountersReply* reply) const {
    return Call(&Admin::Counters, &Launcher::Counters, request, reply);
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
