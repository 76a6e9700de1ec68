// A user of the machine who has no job, no token and no certificate, and tries every door that is
// there: he writes HTTP/2's frames by hand, connects to every port, and looks for every name. See
// attacker.h for how it is called. Every listening port of the network that is not his own is a
// door: give him a network of the daemons' own.
//
// Attacks by name: `frames`: frames in any order; `floods`: those of tests/support/http2_floods.h;
// `ports`: greetings that are nearly right, and noise; `silent`: connections that begin to say
// something and stop; `steal`: asks a daemon for its address on the fabric, and takes other
// daemons' places there; `names`: files, sockets and memory of others; `places`: attaches and goes
// no further; `nodes`: jobs with nodes that are not there.
//
// Ends with 0 when its time is over, and says what it did; with 5, and which, when a door is open.
#include <dirent.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/version.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/test_rank.h"
#include "tests/hostile/attacker.h"
#include "tests/support/http2_floods.h"
#include "transports/tcp/tcp_frame.h"

namespace ferry::hostile {
namespace {

namespace fs = std::filesystem;
using daemon::TestLauncher;
using daemon::TestRank;
using std::chrono::milliseconds;
using tests::Http2Client;
namespace http2 = daemon::http2;

constexpr milliseconds kCall(1000);
constexpr milliseconds kFlood(400);
constexpr size_t kFloodConnections = 4;
constexpr size_t kMostSilent = 200;
constexpr uint32_t kMadeUpNodes = 63;

class Stranger {
 public:
  explicit Stranger(const Attacker& attacker) : attacker_(attacker), dice_(attacker.seed) {}

  int Run() {
    const struct {
      const char* attack;
      void (Stranger::*act)();
    } acts[] = {{"frames", &Stranger::SayFrames},   {"floods", &Stranger::Flood},
                {"ports", &Stranger::CallPorts},    {"silent", &Stranger::StaySilent},
                {"steal", &Stranger::Steal},        {"names", &Stranger::TryNames},
                {"places", &Stranger::TakePlaces},  {"nodes", &Stranger::NameNodes},
                {"others' memory", &Stranger::Look}};
    for (size_t turn = 0; attacker_.Goes(); ++turn) {
      const auto& [attack, act] = acts[turn % std::size(acts)];
      if (attacker_.Dares(attack)) {
        (this->*act)();
        ++done_[attack];
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    for (const auto& [attack, times] : done_) {
      std::printf("%s: %d; ", attack.c_str(), times);
    }
    std::printf("%zu ports\n", ports_seen_.size());
    for (const std::string& door : open_) {
      std::printf("open: %s\n", door.c_str());
    }
    return open_.empty() ? 0 : 5;
  }

 private:
  const std::string& AnyDirectory() {
    return dice_.OneIn(2) ? attacker_.run_directory : attacker_.other_run_directory;
  }
  Http2Client AnyDoor() {
    const std::vector<uint16_t> ports = Ports();
    return ports.empty() || dice_.OneIn(2) ? Http2Client::ToSocket(AnyDirectory() + "/control.sock")
                                           : Http2Client::ToPort(ports[dice_.Below(ports.size())]);
  }
  // Where others listen, in this network.
  std::vector<uint16_t> Ports() {
    std::vector<uint16_t> ports;
    std::ifstream file("/proc/net/tcp");
    std::string line;
    std::getline(file, line);  // the titles
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits;
      uid_t uid = 0;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid;
      constexpr char kListens[] = "0A";
      if (state == kListens && uid != geteuid()) {
        ports.push_back(
            static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
        ports_seen_.insert(ports.back());
      }
    }
    return ports;
  }

  // -- HTTP/2 by hand --

  void SayFrames() {
    Http2Client client = AnyDoor();
    if (!client.connected()) {
      return;
    }
    std::string bytes = dice_.OneIn(8) ? "" : tests::Http2Greeting();
    uint32_t call = 0;
    for (uint64_t count = 1 + dice_.Below(64); count > 0; --count) {
      switch (dice_.Below(6)) {
        case 0:
          bytes += tests::BeginCall(call++, tests::CallFields(AnyMethod(), dice_.Text(20)),
                                    static_cast<uint8_t>(dice_.Below(2)));
          break;
        case 1:
          bytes += tests::ResetCall(dice_.Mostly<uint32_t>(call));
          break;
        case 2:
          bytes += http2::Frame(http2::FrameType::kSettings, http2::kAck, 0, {});
          break;
        default:
          bytes += http2::Frame(static_cast<http2::FrameType>(dice_.Below(12)),
                                static_cast<uint8_t>(dice_.Any()),
                                dice_.Mostly<uint32_t>(2 * call + 1) & 0x7fffffff,
                                dice_.Text(dice_.OneIn(8) ? 20'000 : 64));
      }
    }
    if (dice_.OneIn(4)) {
      bytes.resize(dice_.Below(bytes.size() + 1));
    }
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = 1 + dice_.Below(2000);
      const ssize_t sent = client.SendSome(std::string_view(bytes).substr(at, piece));
      if (sent < 0) {
        return;
      }
      if (sent == 0) {
        pollfd waiting{client.fd(), POLLOUT, 0};
        if (poll(&waiting, 1, 100) <= 0) {
          return;
        }
      }
      at += static_cast<size_t>(sent);
    }
  }
  std::string AnyMethod() {
    const char* const services[] = {"Launcher", "Peer", "Admin"};
    const char* const methods[] = {"Status", "CreateJob", "Hello", "Joined", "Shutdown"};
    return std::string("/ferry.control.") + services[dice_.Below(std::size(services))] + "/" +
           methods[dice_.Below(std::size(methods))];
  }
  void Flood() {
    const std::vector<tests::Http2Flood> floods = tests::Http2Floods();
    const std::string socket = AnyDirectory() + "/control.sock";
    const std::vector<uint16_t> ports = Ports();
    const uint16_t port = ports.empty() || dice_.OneIn(2) ? 0 : ports[dice_.Below(ports.size())];
    tests::Http2Flooder flooder(
        floods[dice_.Below(floods.size())], kFloodConnections, [socket, port] {
          return port == 0 ? Http2Client::ToSocket(socket) : Http2Client::ToPort(port);
        });
    std::this_thread::sleep_for(kFlood);
  }

  // -- Ports --

  void CallPorts() {
    for (const uint16_t port : Ports()) {
      const Http2Client client = Http2Client::ToPort(port);
      if (!client.connected()) {
        continue;
      }
      // All right but for the secrets that no daemon has told the stranger.
      transport::TcpHello hello;
      const std::string guess = dice_.Text(sizeof(hello));
      const size_t known = sizeof(hello.magic) + sizeof(hello.version);
      if (guess.size() > known) {
        std::memcpy(reinterpret_cast<char*>(&hello) + known, guess.data() + known,
                    guess.size() - known);
      }
      if (dice_.OneIn(4)) {
        dice_.Spoil(&hello);
      }
      std::string bytes(reinterpret_cast<const char*>(&hello), sizeof(hello));
      if (dice_.OneIn(3)) {
        bytes = dice_.Text(300);
      }
      (void)!send(client.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ExpectNoWelcome(port, client.fd());
    }
  }
  // A transport that takes a stranger for a peer says so at once.
  void ExpectNoWelcome(uint16_t port, int fd) {
    pollfd waiting{fd, POLLIN, 0};
    transport::TcpWelcome welcome{};
    if (poll(&waiting, 1, 5) == 1 &&
        recv(fd, &welcome, sizeof(welcome), MSG_DONTWAIT) == sizeof(welcome) &&
        welcome.magic == transport::kTcpMagic) {
      open_.insert("port " + std::to_string(port) + " of the fabric");
    }
  }
  void StaySilent() {
    if (silent_.size() >= kMostSilent) {
      silent_.clear();
    }
    for (const uint16_t port : Ports()) {
      silent_.push_back(Http2Client::ToPort(port));
      const char* const beginnings[] = {"", "GET /metr", "PRI * HTTP/2.0\r\n", "ftcp"};
      const std::string beginning = beginnings[dice_.Below(std::size(beginnings))];
      if (silent_.back().connected()) {
        (void)!send(silent_.back().fd(), beginning.data(), beginning.size(),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  }

  // -- Another daemon's place on the fabric --

  // Returns the daemon's own description there, which it gives to any caller.
  std::optional<control::NodeIdentity> AskIdentity(const std::string& address) {
    const auto peer =
        control::Peer::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    control::HelloRequest request;
    request.mutable_from()->set_name("stranger");
    request.mutable_from()->set_incarnation(dice_.Any() | 1);
    request.mutable_from()->set_layout_version(kLayoutVersion);
    request.mutable_from()->set_protocol_version(kProtocolVersion);
    request.mutable_from()->set_provider(transport::kTcpProvider);
    request.mutable_from()->set_control_address("127.0.0.1:1");
    request.set_life(1);
    control::HelloReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    if (!peer->Hello(&context, request, &reply).ok()) {
      return std::nullopt;
    }
    return reply.from();
  }
  // Comes to the data plane as another daemon, by what anybody is told who asks.
  void Steal() {
    const auto victim = AskIdentity(IdentityOf(attacker_.run_directory).control_address);
    const auto other = AskIdentity(IdentityOf(attacker_.other_run_directory).control_address);
    if (!victim || !other) {
      return;
    }
    const auto to = AddressOf(*victim);
    if (!to) {
      return;  // as it should be: a caller that has proved nothing is not told
    }
    const Http2Client client = Http2Client::ToPort(to->port);
    transport::TcpHello hello;
    hello.guest = to->guest;
    hello.proof = to->calls;
    hello.from = AddressOf(*other).value_or(*to);
    if (client.connected() && send(client.fd(), &hello, sizeof(hello), MSG_NOSIGNAL) > 0) {
      ExpectNoWelcome(to->port, client.fd());
      std::this_thread::sleep_for(milliseconds(20));  // what others send comes here now
    }
  }
  static std::optional<transport::TcpAddress> AddressOf(const control::NodeIdentity& node) {
    const std::string& bytes = node.fabric_address();
    return transport::ParseTcpAddress(
        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  }

  // -- Names --

  void TryNames() {
    for (const char* place : {"/tmp", "/run", "/dev/shm", "/var/tmp"}) {
      Visit(place, 0);
    }
    for (const std::string& directory : {attacker_.run_directory, attacker_.other_run_directory}) {
      Visit(directory, 0);
      for (const char* name : {"admin.sock", "lock", "ferryd.json", "../secret"}) {
        TryFile(directory + "/" + name);
      }
    }
    TryAbstractSockets();
  }
  void Visit(const std::string& directory, int depth) {
    std::error_code error;
    for (const auto& entry :
         fs::directory_iterator(directory, fs::directory_options::skip_permission_denied, error)) {
      const std::string path = entry.path();
      if (path.find("ferry") == std::string::npos) {
        continue;
      }
      if (entry.is_directory(error) && !entry.is_symlink(error)) {
        if (access(path.c_str(), W_OK) == 0 && !IsOurs(path)) {
          open_.insert("directory " + path);
        }
        if (depth < 3) {
          Visit(path, depth + 1);
        }
      } else {
        TryFile(path);
      }
    }
  }
  static bool IsOurs(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) != 0 || info.st_uid == geteuid();
  }
  // To write to it, or, of the administrator's socket, to connect.
  void TryFile(const std::string& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || IsOurs(path) || S_ISLNK(info.st_mode)) {
      return;
    }
    if (S_ISSOCK(info.st_mode)) {
      const bool is_for_all = path.ends_with("/attach.sock") || path.ends_with("/control.sock");
      if (!is_for_all && Http2Client::ToSocket(path).connected()) {
        open_.insert("socket " + path);
      }
      return;
    }
    const int fd = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
      open_.insert("file " + path);
      close(fd);
    }
  }
  // In the network's own list of sockets, names that begin with @ are no files.
  void TryAbstractSockets() {
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      const size_t at = line.find(" @");
      if (at == std::string::npos || line.find("ferry", at) == std::string::npos) {
        continue;
      }
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string name = line.substr(at + 2);
      name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
      const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
        const UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0) {
          open_.insert("abstract socket " + name);
        }
      }
    }
  }
  // Looks at the memory and descriptors of other users' processes.
  void Look() {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      const std::string path = entry.path();
      std::ifstream comm(path + "/comm");
      std::string name;
      if (!std::getline(comm, name) || IsOurs(path) ||
          (name.find("ferry") == std::string::npos && name != "steady" && name != "mixed")) {
        continue;
      }
      for (const char* what : {"/mem", "/environ", "/maps"}) {
        const int fd = open((path + what).c_str(), O_RDONLY | O_CLOEXEC);
        char byte = 0;
        if (fd >= 0 && read(fd, &byte, 1) == 1) {
          open_.insert(name + what);
        }
        if (fd >= 0) {
          close(fd);
        }
      }
      if (fs::directory_iterator(path + "/fd", error) != fs::directory_iterator()) {
        open_.insert(name + "/fd");
      }
    }
  }

  // -- Jobs of his own --

  bool CreateJob(const TestLauncher& launcher, const std::string& id, uint32_t ranks,
                 const std::vector<std::string>& others) {
    const std::string& directory = attacker_.run_directory;
    const auto stub = control::Launcher::NewStub(grpc::CreateChannel(
        "unix:" + directory + "/control.sock", grpc::InsecureChannelCredentials()));
    control::CreateJobRequest request;
    request.set_job_id(id);
    request.set_secret(daemon::kTestSecret);
    request.set_size(ranks);
    request.add_node_addresses(IdentityOf(directory).control_address);
    for (const std::string& other : others) {
      request.add_node_addresses(other);
    }
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      request.add_node_of_rank(rank <= others.size() ? rank : 0);
    }
    control::CreateJobReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCall);
    context.AddMetadata("ferry-token", launcher.token());
    return stub->CreateJob(&context, request, &reply).ok();
  }
  // As many ranks as one user can have attach, and send nothing more. They stay until the next
  // time.
  void TakePlaces() {
    waiting_.clear();
    waiting_launcher_ = std::make_unique<TestLauncher>(attacker_.run_directory + "/attach.sock");
    const std::string id = "places-" + std::to_string(getpid()) + "-" + std::to_string(++jobs_);
    constexpr uint32_t kPlaces = 16;
    if (!CreateJob(*waiting_launcher_, id, kPlaces, {})) {
      return;
    }
    for (uint32_t rank = 0; rank < kPlaces; ++rank) {
      auto attached = std::make_unique<TestRank>(id, rank, kPlaces, kPlaces);
      if (attached->Connect(attacker_.run_directory + "/attach.sock").ok()) {
        (void)daemon::SendPacket(attached->socket(), attached->AttachRequest(), {}).ok();
        waiting_.push_back(std::move(attached));
      }
    }
  }
  void NameNodes() {
    nodes_launcher_ = std::make_unique<TestLauncher>(attacker_.run_directory + "/attach.sock");
    std::vector<std::string> others;
    for (uint32_t node = 0; node < kMadeUpNodes; ++node) {
      others.push_back("127." + std::to_string(1 + dice_.Below(250)) + ".0." +
                       std::to_string(1 + node) + ":" + std::to_string(1 + dice_.Below(60'000)));
    }
    (void)CreateJob(*nodes_launcher_,
                    "nodes-" + std::to_string(getpid()) + "-" + std::to_string(++jobs_),
                    kMadeUpNodes + 1, others);
  }

  const Attacker& attacker_;
  Dice dice_;
  int jobs_ = 0;
  std::vector<Http2Client> silent_;
  std::unique_ptr<TestLauncher> waiting_launcher_;
  std::vector<std::unique_ptr<TestRank>> waiting_;
  std::unique_ptr<TestLauncher> nodes_launcher_;
  std::set<uint16_t> ports_seen_;
  std::set<std::string> open_;
  std::map<std::string, int> done_;
};

}  // namespace
}  // namespace ferry::hostile

int main(int argc, char** argv) {
  const ferry::hostile::Attacker attacker = ferry::hostile::BecomeAttacker(argc, argv);
  return ferry::hostile::Stranger(attacker).Run();
}
