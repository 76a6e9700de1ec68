// A process at the attach socket says anything, with any descriptors. One thread: the fuzzer sends,
// then lets the server's handlers run.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/rank_table.h"
#include "common/version.h"
#include "daemon/attach/attach_server.h"
#include "daemon/jobs/launchers.h"
#include "daemon/sockets/disposal.h"
#include "daemon/sockets/packet_socket.h"
#include "engine/session_view.h"
#include "shm/segment.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/jobs/no_links.h"
#include "tests/daemon/test_rank.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/rank_calls.h"

namespace ferry::daemon {
namespace {

using fuzz::FuzzInput;

constexpr uint32_t kMaxSteps = 16;
constexpr uint32_t kRequests = 4;
constexpr char kSecret[] = "0123456789abcdef0123456789abcdef";

// The socket's path, for all inputs.
const std::string& SocketPath() {
  static const std::string path = [] {
    std::string directory = "/tmp/ferry-fuzz-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) {
      abort();
    }
    static std::string remembered = directory;
    atexit([] { std::filesystem::remove_all(remembered); });
    return directory + "/attach.sock";
  }();
  return path;
}

class AttachFuzz {
 public:
  AttachFuzz() : registry_(context_, plane_, RegistryLimits{1024, 4, 20'000}) {
    registry_.set_links(&links_);
    plane_.set_counter_pages(Segment(4096));
    server_ = std::make_unique<AttachServer>(context_, registry_, launchers_, 20'000,
                                             ConnectionLimits{8, 8});
    unlink(SocketPath().c_str());
    JobSpec spec;
    spec.id = "job";
    spec.secret = kSecret;
    spec.owner = geteuid();
    spec.node_addresses = {"127.0.0.1:1"};
    spec.node_of_rank = {0, 0};
    if (!server_->Listen(SocketPath(), true).ok() || !registry_.CreateJob(spec).ok()) {
      abort();
    }
    for (UniqueFd& client : clients_) {
      StatusOr<UniqueFd> socket = ConnectSeqpacket(SocketPath());
      if (!socket.ok()) {
        abort();
      }
      client = std::move(*socket);
    }
    context_.poll();
  }
  void Run(FuzzInput& input) {
    for (uint32_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
      Step(input);
      context_.restart();
      context_.poll();
      ReadAnswers();
    }
    server_->Stop();
    context_.restart();
    context_.poll();
  }

 private:
  void Step(FuzzInput& input) {
    const uint32_t rank = input.Below(2);
    switch (input.Below(13)) {
      case 0:
        Say(input, rank, AttachRequest(rank));
        break;
      case 1:
        SaySegments(input, rank);
        break;
      case 2: {
        attach::RegionRequest request{};
        request.header = Header(attach::Kind::kRegion);
        request.region = 1 + input.Below(3);
        request.kind = 1;
        request.size_bytes = 4096;
        Say(input, rank, request, {AnyFd(input)});
        break;
      }
      case 9:
        SayDevice(input, rank);
        break;
      case 10:
      case 11:
        Call(input, rank);
        break;
      case 3:
      case 4: {
        attach::PeerRequest request{};
        request.header =
            Header(input.Below(2) == 0 ? attach::Kind::kPeerInbox : attach::Kind::kPeerRegion);
        request.rank = 1 - rank;
        request.region = 1;
        Say(input, rank, request);
        break;
      }
      case 5: {
        attach::LinkReply reply{};
        reply.header = Header(attach::Kind::kLinkReply);
        reply.event = input.Below(9);
        reply.peer = input.Below(4);
        reply.link = input.Below(3);
        reply.address_bytes = input.Below(4) == 0 ? input.Take<uint32_t>() : 8;
        Say(input, rank, reply);
        break;
      }
      case 6: {
        attach::LifeQuestion question{};
        question.header = Header(attach::Kind::kLifeQuestion);
        question.number = input.Below(3);
        Say(input, rank, question);
        break;
      }
      case 8: {
        attach::NicRequest request{};
        request.header = Header(attach::Kind::kCounterPages);
        request.nic = input.Below(3);
        Say(input, rank, request);
        break;
      }
      case 7: {
        std::string noise = input.TakeText(input.Take<uint16_t>() % 1200);
        SendBytes(rank, noise.data(), noise.size(), {});
        break;
      }
      default:
        switch (input.Below(8)) {
          case 0:
            clients_[rank].Reset();
            break;
          case 1:
            SayJob(input, rank);
            break;
        }
        break;
    }
  }
  static attach::AttachHeader Header(attach::Kind kind) {
    return {attach::kMagic, static_cast<uint32_t>(kind), 1, kLayoutVersion, kProtocolVersion};
  }
  static attach::AttachRequest AttachRequest(uint32_t rank) {
    attach::AttachRequest request{};
    request.header = Header(attach::Kind::kAttach);
    request.pid = static_cast<uint32_t>(getpid());
    request.rank = rank;
    request.size = 2;
    std::memcpy(request.job_id, "job", 3);
    std::memcpy(request.job_secret, kSecret, sizeof(kSecret) - 1);
    request.job_secret_bytes = sizeof(kSecret) - 1;
    return request;
  }
  // Correct segments but for a spoilt header and capacity.
  void SaySegments(FuzzInput& input, uint32_t rank) {
    const engine::SegmentPlan plan{rank, 2, 2, kRequests, 8};
    UniqueFd session = Segment(plan.session_bytes());
    UniqueFd inbox = Segment(plan.inbox_bytes());
    StatusOr<shm::Mapping> session_map = shm::MapSegment(session.get(), 0);
    StatusOr<shm::Mapping> inbox_map = shm::MapSegment(inbox.get(), 0);
    engine::InitializeSegments(plan, 1, session_map->base(), inbox_map->base());
    input.Spoil(reinterpret_cast<shm::SegmentHeader*>(session_map->base()));
    input.Spoil(reinterpret_cast<shm::SegmentHeader*>(inbox_map->base()));
    auto* table = reinterpret_cast<shm::MatchTableLayout*>(
        session_map->base() + shm::PlacesOfSession(plan.job_size, kRequests).match);
    input.Spoil(&table->capacity);
    attach::SegmentsRequest request{};
    request.header = Header(attach::Kind::kSegments);
    request.session_bytes = plan.session_bytes();
    request.inbox_bytes = plan.inbox_bytes();
    Say(input, rank, request, {session.get(), inbox.get()});
  }
  // A launcher that starts a job, with its packed table of ranks and the addresses of its nodes;
  // some of either is spoilt.
  void SayJob(FuzzInput& input, uint32_t rank) {
    attach::UserRequest user{};
    user.header = Header(attach::Kind::kUser);
    SendBytes(rank, &user, sizeof(user), {});
    std::vector<uint32_t> node_of_rank(1 + input.Below(8));
    const uint32_t nodes = 1 + input.Below(3);
    for (uint32_t& node : node_of_rank) {
      node = input.Below(nodes);
    }
    std::string list = PackNodes(node_of_rank);
    attach::JobRequest request{};
    request.header = Header(attach::Kind::kCreateJob);
    request.table_bytes = static_cast<uint32_t>(list.size());
    for (uint32_t node = 0; node < nodes; ++node) {
      list += "127.0.0.1:" + std::to_string(1 + node) + '\0';
    }
    for (uint32_t n = input.Below(4); n > 0; --n) {
      list[input.Take<uint16_t>() % list.size()] = static_cast<char>(input.Take<uint8_t>());
    }
    request.size = static_cast<uint32_t>(node_of_rank.size());
    request.node_count = nodes;
    request.node = input.Below(nodes);
    request.list_bytes = static_cast<uint32_t>(list.size());
    const std::string id = "own" + std::to_string(input.Below(2));
    id.copy(request.job_id, sizeof(request.job_id));
    std::memcpy(request.job_secret, kSecret, sizeof(kSecret) - 1);
    request.job_secret_bytes = sizeof(kSecret) - 1;
    UniqueFd fd(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (write(fd.get(), list.data(), list.size()) != static_cast<ssize_t>(list.size()) ||
        fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
      abort();
    }
    Say(input, rank, request, {fd.get()});
  }
  // A call, mostly without a descriptor.
  void Call(FuzzInput& input, uint32_t rank) {
    const std::vector<std::byte> packet = fuzz::AnyRankCall(input, /*ends_jobs=*/true);
    std::vector<int> fds;
    if (input.Below(8) == 7) {
      fds.push_back(AnyFd(input));
    }
    SendBytes(rank, packet.data(), packet.size(), fds);
  }
  // Device memory, with a dma-buf as a rule.
  void SayDevice(FuzzInput& input, uint32_t rank) {
    attach::RegionRequest request{};
    request.header = Header(attach::Kind::kRegion);
    request.region = 1 + input.Below(3);
    request.kind = 2;
    request.flags = attach::kRegionByStream | (input.Below(4) == 0 ? 0 : attach::kRegionDmabuf);
    request.size_bytes = 1 + input.Take<uint16_t>() % 8192;
    request.dmabuf_offset = input.Take<uint16_t>() % 8192;
    std::memcpy(request.backend, "cuda", 5);
    std::vector<int> fds;
    for (uint32_t count = input.Below(3); count > 0; --count) {
      fds.push_back(AnyFd(input));
    }
    Say(input, rank, request, fds);
  }
  static UniqueFd Segment(uint64_t size_bytes) {
    return std::move(*shm::CreateSegment("fuzz", size_bytes));
  }
  // A sealed memfd, one that is not, one without bytes, or no memfd at all.
  int AnyFd(FuzzInput& input) {
    const uint32_t kind = input.Below(6);
    UniqueFd fd(kind == 3   ? open("/dev/null", O_RDWR | O_CLOEXEC)
                : kind == 4 ? eventfd(0, EFD_CLOEXEC)
                : kind == 5 ? epoll_create1(EPOLL_CLOEXEC)
                            : memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if ((kind < 2 && ftruncate(fd.get(), 4096) != 0) ||
        (kind == 0 && fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)) {
      abort();
    }
    fds_.push_back(std::move(fd));
    return fds_.back().get();
  }

  template <typename Request>
  void Say(FuzzInput& input, uint32_t rank, Request request, std::vector<int> fds = {}) {
    input.Spoil(&request);
    if (input.Below(8) == 0) {
      fds.resize(input.Below(6), AnyFd(input));
    }
    SendBytes(rank, &request, sizeof(request) - (input.Below(16) == 0 ? 1 : 0), fds);
  }
  void SendBytes(uint32_t rank, const void* bytes, size_t size, const std::vector<int>& fds) {
    if (clients_[rank].valid()) {
      (void)SendPacket(clients_[rank].get(), {static_cast<const std::byte*>(bytes), size}, fds)
          .ok();
    }
  }
  void ReadAnswers() {
    for (UniqueFd& client : clients_) {
      SocketPacket packet;
      while (client.valid()) {
        const StatusOr<Received> received = ReceivePacket(client.get(), &packet);
        if (!received.ok() || *received == Received::kHangUp) {
          client.Reset();
        } else if (*received == Received::kNothing) {
          break;
        }
      }
    }
  }

  boost::asio::io_context context_;
  FakeDataPlane plane_;
  NoLinks links_;
  JobRegistry registry_;
  Launchers launchers_{registry_};
  std::unique_ptr<AttachServer> server_;
  UniqueFd clients_[2];
  std::vector<UniqueFd> fds_;
};

}  // namespace
}  // namespace ferry::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    spdlog::set_level(spdlog::level::off);
    return true;
  }();
  (void)quiet;
  ferry::fuzz::FuzzInput input(data, size);
  static const std::string made_first = ferry::daemon::SocketPath();
  (void)ferry::daemon::Disposal::Instance();
  const size_t before = ferry::daemon::OpenDescriptors();
  ferry::daemon::AttachFuzz().Run(input);
  if (const size_t after = ferry::daemon::SettledDescriptors(before); after > before) {
    std::fprintf(stderr, "%zu descriptors before, and %zu after it\n", before, after);
    std::abort();
  }
  return 0;
}
