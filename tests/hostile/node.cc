#include "tests/hostile/node.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "common/unique_fd.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry::hostile {
namespace {

using daemon::FerrydProcess;

constexpr std::chrono::milliseconds kBetweenLooks(20);
constexpr time_t kScrapeSeconds = 60;

}  // namespace

Node::Node(const std::string& name)
    : run_directory_(directory_.path() + "/run"),
      daemon_(run_directory_,
              {"--users=all", "--node_name=" + name, "--max_local_ranks=32", "--quota_sessions=8",
               "--metrics_address=127.0.0.1:0", "--log_level=warn"},
              CopyPrograms().c_str()) {
  EXPECT_TRUE(daemon_.WaitUntilReady()) << daemon_.Errors();
  admin_ = control::Admin::NewStub(grpc::CreateChannel("unix:" + run_directory_ + "/admin.sock",
                                                       grpc::InsecureChannelCredentials()));
  launcher_ = control::Launcher::NewStub(grpc::CreateChannel(
      "unix:" + run_directory_ + "/control.sock", grpc::InsecureChannelCredentials()));
  metrics_port_ = MetricsPort();
  memfds_ = CountMemfds();
  first_bytes_ = ResidentBytes();
  watch_ = std::thread([this] { WatchMemory(); });
}

Node::~Node() {
  is_watched_ = false;
  watch_.join();
}

void Node::WatchMemory() {
  while (is_watched_) {
    most_bytes_ = std::max(most_bytes_.load(), ResidentBytes());
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// Its own: ranks' memory that it maps is theirs.
uint64_t Node::ResidentBytes() const {
  const std::string text = tests::StatusOf(daemon_.pid(), "RssAnon");
  return text.empty() ? 0 : std::stoull(text) * 1024;
}

bool Node::Lives() const {
  return kill(daemon_.pid(), 0) == 0 && !tests::StatusOf(daemon_.pid(), "State").starts_with("Z");
}

bool Node::CreateJob(const std::string& id, uint32_t node, uint32_t ranks_of_node,
                     const std::vector<std::string>& addresses,
                     const daemon::TestLauncher& launcher) {
  control::CreateJobRequest request;
  request.set_job_id(id);
  request.set_secret(daemon::kTestSecret);
  request.set_size(static_cast<uint32_t>(addresses.size()) * ranks_of_node);
  for (uint32_t rank = 0; rank < request.size(); ++rank) {
    request.add_node_of_rank(rank / ranks_of_node);
  }
  for (const std::string& address : addresses) {
    request.add_node_addresses(address);
  }
  request.set_node(node);
  control::CreateJobReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + tests::kPatience);
  context.set_wait_for_ready(true);
  context.AddMetadata("ferry-token", launcher.token());
  const grpc::Status status = launcher_->CreateJob(&context, request, &reply);
  EXPECT_TRUE(status.ok()) << id << ": " << status.error_message();
  return status.ok();
}

void Node::ForbidLinks(const std::string& id) {
  control::TakeLinksRequest request;
  request.set_job_id(id);
  control::TakeLinksReply reply;
  grpc::ClientContext context;
  const grpc::Status status = admin_->TakeLinks(&context, request, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

NicCounts Node::Nics() {
  control::NicsReply nics;
  grpc::ClientContext context;
  EXPECT_TRUE(admin_->Nics(&context, control::NicsRequest(), &nics).ok());
  NicCounts counts;
  for (const control::NicStatus& nic : nics.nics()) {
    counts.received += nic.messages_received();
    counts.failed += nic.errors();
  }
  return counts;
}

uint16_t Node::MetricsPort() {
  control::StatusReply status;
  grpc::ClientContext context;
  EXPECT_TRUE(admin_->Status(&context, control::StatusRequest(), &status).ok());
  const std::string& address = status.metrics_address();
  return static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

bool Node::Scrape() const {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(metrics_port_);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{kScrapeSeconds, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  constexpr char kRequest[] = "GET /metrics HTTP/1.1\r\nHost: ferryd\r\nConnection: close\r\n\r\n";
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      send(fd.get(), kRequest, sizeof(kRequest) - 1, MSG_NOSIGNAL) < 0) {
    return false;
  }
  std::string answer;
  char piece[4096];
  ssize_t size = 0;
  while ((size = recv(fd.get(), piece, sizeof(piece), 0)) > 0) {
    answer.append(piece, static_cast<size_t>(size));
  }
  return size == 0 && answer.starts_with("HTTP/1.1 200") &&
         answer.find("ferry_") != std::string::npos;
}

std::string Node::Held() {
  control::StatusReply status;
  control::NicsReply nics;
  grpc::ClientContext status_call;
  grpc::ClientContext nics_call;
  if (!admin_->Status(&status_call, control::StatusRequest(), &status).ok() ||
      !admin_->Nics(&nics_call, control::NicsRequest(), &nics).ok()) {
    return "it does not answer";
  }
  std::string held;
  const auto note = [&held](const std::string& what, uint64_t count) {
    held += count == 0 ? "" : std::to_string(count) + " " + what + "; ";
  };
  for (const control::JobStatus& job : status.jobs()) {
    held += "job " + job.job_id() + " (" + job.state() + ", " + std::to_string(job.joined()) +
            " joined); ";
  }
  note("sessions", status.sessions());
  note("regions", status.regions());
  note("users", static_cast<uint64_t>(status.users_size()));
  for (const control::NicStatus& nic : nics.nics()) {
    note("operations", nic.outstanding());
    note("blocks in use", nic.staging_busy());
  }
  const size_t memfds = CountMemfds();
  note("memfds more than before", memfds > memfds_ ? memfds - memfds_ : 0);
  note("worker processes", tests::WorkersOf(daemon_.pid()).size());
  return held;
}

std::string Node::Stop() {
  daemon_.Signal(SIGTERM);
  const int code = daemon_.Wait();
  return code == 0 ? "" : "ended with " + std::to_string(code) + ": " + daemon_.Errors();
}

// To where every user can execute them, as workers are. The path of ferryd.
std::string Node::CopyPrograms() const {
  namespace fs = std::filesystem;
  fs::permissions(directory_.path(), fs::perms(0755));
  for (const char* program : {FerrydProcess::kReal, "daemon/ferry-worker"}) {
    fs::copy_file(program, directory_.path() + "/" + fs::path(program).filename().string());
  }
  return directory_.path() + "/ferryd";
}

size_t Node::CountMemfds() const { return tests::MemfdsOf(daemon_.pid()).size(); }

}  // namespace ferry::hostile
