// A ferryd for the tests of the tools: the services Admin and Launcher, the attach socket's answer
// to launchers, the files and the flags of the real one, and nothing behind them. It notes its
// calls in RUN_DIRECTORY's parent, "NODE.calls".
//
// FAKE_FERRYD makes it misbehave: "crash" at once with two lines of log, "hang" before it serves,
// "old" (another protocol version), "stubborn" (ignores SIGTERM). "programs": it has three jobs of
// one launch. "large": its counters take 8 MB. "ranks": it has a hundred ranks of one job, each
// with a link.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/rank_table.h"
#include "common/version.h"
#include "config/environment.h"
#include "daemon/sockets/packet_socket.h"
#include "proto/control.grpc.pb.h"
#include "proto/error_details.h"

namespace ferry {
namespace {

std::string Behaviour() {
  return std::string(
      config::FindVariable(config::ProcessEnvironment(), "FAKE_FERRYD").value_or(""));
}

void FillStatus(const config::Options& options, control::StatusReply* reply) {
  control::NodeIdentity* node = reply->mutable_node();
  node->set_name(options.node_name);
  node->set_layout_version(kLayoutVersion);
  node->set_protocol_version(Behaviour() == "old" ? kProtocolVersion + 1 : kProtocolVersion);
  node->set_control_address("127.0.0.1:" + std::to_string(getpid()));
  node->set_provider("none");
  reply->set_pid(static_cast<uint32_t>(getpid()));
  reply->set_state("serving");
  reply->set_run_directory(options.run_directory);
  if (Behaviour() == "programs") {
    for (const char* const id : {"run", "run#10", "run#2"}) {
      reply->add_jobs()->set_job_id(id);
    }
  }
  if (Behaviour() == "ranks") {
    control::JobStatus* const job = reply->add_jobs();
    job->set_job_id("0badcafe");
    job->set_program("heat");
  }
}

// Gives every launcher the same token.
class FakeAttachSocket {
 public:
  explicit FakeAttachSocket(const std::string& path)
      : socket_(daemon::ListenUnix(path, SOCK_SEQPACKET, 0600)), thread_([this] { Serve(); }) {}
  ~FakeAttachSocket() {
    shutdown(socket_->get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void Serve() {
    pollfd waiting{socket_->get(), POLLIN, 0};
    while (poll(&waiting, 1, -1) > 0 && (waiting.revents & POLLHUP) == 0) {
      UniqueFd launcher(accept4(socket_->get(), nullptr, nullptr, SOCK_CLOEXEC));
      attach::UserRequest request{};
      if (read(launcher.get(), &request, sizeof(request)) == sizeof(request)) {
        attach::UserReply reply{};
        reply.header = request.header;
        reply.header.kind = static_cast<uint32_t>(attach::Kind::kUserReply);
        (void)daemon::SendPacket(launcher.get(), reply).ok();
        launchers_.push_back(std::move(launcher));
      }
    }
  }

  StatusOr<UniqueFd> socket_;
  std::vector<UniqueFd> launchers_;
  std::thread thread_;
};

class FakeLauncher : public control::Launcher::Service {
 public:
  explicit FakeLauncher(const config::Options& options)
      : options_(options), calls_(options.run_directory + ".calls", std::ios::app) {}

  // NOLINTBEGIN: names and signatures are gRPC's
  grpc::Status Status(grpc::ServerContext*, const control::StatusRequest*,
                      control::StatusReply* reply) override {
    FillStatus(options_, reply);
    return grpc::Status::OK;
  }

  grpc::Status CreateJob(grpc::ServerContext*, const control::CreateJobRequest* request,
                         control::CreateJobReply*) override {
    std::string text = "create node " + std::to_string(request->node()) + " size " +
                       std::to_string(request->size()) + " secret_bytes " +
                       std::to_string(request->secret().size()) + " placed";
    const StatusOr<std::vector<uint32_t>> nodes =
        UnpackNodes(request->packed_nodes(), request->size());
    for (const uint32_t node : nodes.ok() ? *nodes : std::vector<uint32_t>()) {
      text += " " + std::to_string(node);
    }
    text += " nodes " + std::to_string(request->node_addresses_size());
    Note(text);
    return grpc::Status::OK;
  }

  grpc::Status DestroyJob(grpc::ServerContext*, const control::DestroyJobRequest*,
                          control::DestroyJobReply*) override {
    Note("destroy");
    return grpc::Status::OK;
  }
  // NOLINTEND

 private:
  void Note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    calls_ << text << std::endl;
  }

  const config::Options options_;
  std::mutex mutex_;
  std::ofstream calls_;
};

class FakeAdmin : public control::Admin::Service {
 public:
  explicit FakeAdmin(const config::Options& options) : options_(options) {}

  // NOLINTBEGIN: names and signatures are gRPC's
  grpc::Status Status(grpc::ServerContext*, const control::StatusRequest*,
                      control::StatusReply* reply) override {
    FillStatus(options_, reply);
    return grpc::Status::OK;
  }

  grpc::Status Sessions(grpc::ServerContext*, const control::SessionsRequest*,
                        control::SessionsReply* reply) override {
    control::SessionStatus* session = reply->add_sessions();
    session->set_job_id("abc");
    session->set_rank(3);
    session->set_bytes_sent(5'000'000'000);
    reply->add_sessions()->set_job_id("run#10");
    return grpc::Status::OK;
  }

  grpc::Status Links(grpc::ServerContext*, const control::LinksRequest*,
                     control::LinksReply* reply) override {
    for (uint32_t rank = 0; rank < HowManyRanks(); ++rank) {
      control::LinkStatus* const link = reply->add_links();
      link->set_job_id("0badcafe");
      link->set_rank(rank);
      link->set_peer(kFakeRanks + rank);
      link->set_state("up");
    }
    return grpc::Status::OK;
  }

  grpc::Status Counters(grpc::ServerContext*, const control::CountersRequest*,
                        control::CountersReply* reply) override {
    for (uint32_t rank = 0; rank < HowManyRanks(); ++rank) {
      control::CounterValue* const counter = reply->add_counters();
      counter->set_scope("job 0badcafe rank " + std::to_string(rank));
      counter->set_name("sends");
      counter->set_value(rank + 1);
    }
    for (const auto& [name, value] : {std::pair("busy", 7), std::pair("idle", 0)}) {
      control::CounterValue* counter = reply->add_counters();
      counter->set_name(name);
      counter->set_value(static_cast<uint64_t>(value));
    }
    for (int i = 0; i < (Behaviour() == "large" ? 8000 : 0); ++i) {
      control::CounterValue* counter = reply->add_counters();
      counter->set_name("many");
      counter->set_help(std::string(1000, 'h'));
    }
    return grpc::Status::OK;
  }

  grpc::Status Why(grpc::ServerContext*, const control::WhyRequest* request,
                   control::WhyReply*) override {
    return {grpc::StatusCode::NOT_FOUND,
            "no rank " + std::to_string(request->rank()) + " in job " + request->job_id(),
            control::EncodeErrorDetails(static_cast<int32_t>(ErrorCode::kNotFound))};
  }
  // NOLINTEND

 private:
  static constexpr uint32_t kFakeRanks = 100;
  static uint32_t HowManyRanks() { return Behaviour() == "ranks" ? kFakeRanks : 0; }

  const config::Options options_;
};

std::unique_ptr<grpc::Server> ServeAt(const std::string& socket, grpc::Service* service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "cannot serve %s\n", socket.c_str());
  }
  return server;
}

int Serve(const config::Options& options, int ready_fd, bool remove_parent) {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigprocmask(SIG_BLOCK, &ending, nullptr);

  const bool created = mkdir(options.run_directory.c_str(), 0700) == 0;
  const auto path = [&](const char* name) { return options.run_directory + "/" + name; };
  const std::string about = path("ferryd.json");
  FakeAdmin admin(options);
  FakeLauncher launcher(options);
  const FakeAttachSocket attach(path("attach.sock"));
  const auto user_server = ServeAt(path("control.sock"), &launcher);
  const auto admin_server = ServeAt(path("admin.sock"), &admin);
  if (user_server == nullptr || admin_server == nullptr) {
    return 1;
  }
  std::ofstream(about) << "{\"pid\": " << getpid()
                       << ", \"control_address\": \"127.0.0.1:" << getpid() << "\"}\n";
  if (ready_fd >= 0 && write(ready_fd, "ready\n", 6) != 6) {
    return 1;
  }
  close(ready_fd);
  int signal = 0;
  do {
    sigwait(&ending, &signal);
  } while (Behaviour() == "stubborn");
  user_server->Shutdown();
  admin_server->Shutdown();
  for (const char* name : {"attach.sock", "control.sock", "admin.sock", "ferryd.json"}) {
    unlink(path(name).c_str());
  }
  if (created) {
    rmdir(options.run_directory.c_str());
  }
  if (remove_parent) {
    unlink((options.run_directory + ".calls").c_str());
    rmdir(options.run_directory.substr(0, options.run_directory.rfind('/')).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  const int ready_fd = argc >= 3 ? std::atoi(argv[2]) : -1;
  const auto options = ferry::config::OptionsFromEnvironment(ferry::config::ProcessEnvironment());
  if (!options.ok()) {
    std::fprintf(stderr, "%s\n", options.status().message().c_str());
    return 1;
  }
  if (ferry::Behaviour() == "crash") {
    std::fprintf(stderr, "opening the fabric\nthere is no fabric\n");
    return 7;
  }
  if (ferry::Behaviour() == "hang") {
    pause();
  }
  return ferry::Serve(*options, ready_fd, argc == 4);
}
