#include "daemon/metrics/metrics_server.h"

#include <errno.h>
#include <netdb.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>
#include <thread>
#include <utility>

#include "common/net_address.h"
#include "common/thread.h"
#include "common/unique_fd.h"
#include "common/version.h"

namespace ferry::daemon {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using shm::Statistic;
using Labels = std::vector<ClientMetric::Label>;

// One counter of the ranks: exported for the node as ferry_NAME, by job as ferry_job_NAME.
struct TallyRow {
  Statistic id;
  const char* name;
  const char* help;
};
constexpr TallyRow kTallyRows[] = {
    {Statistic::kMessagesSent, "sent_messages_total", "Messages sent by ranks of this node."},
    {Statistic::kMessagesReceived, "received_messages_total",
     "Messages received by ranks of this node."},
    {Statistic::kBytesSent, "sent_bytes_total", "Payload sent by ranks of this node."},
    {Statistic::kBytesReceived, "received_bytes_total", "Payload received by ranks of this node."},
    {Statistic::kErrors, "request_errors_total", "Requests that ended with an error."},
    {Statistic::kSendsQueued, "queued_sends_total",
     "Sends that had to wait for room or credit at the receiver."},
    {Statistic::kUnexpectedMessages, "unexpected_messages_total",
     "Messages that arrived before their receive was posted."},
    {Statistic::kWorkerMatches, "worker_matches_total",
     "Messages matched by the progress worker while their receiver computed."},
    {Statistic::kChunksCopiedByRank, "rank_copied_chunks_total",
     "Chunks of large messages copied by the ranks."},
    {Statistic::kChunksCopiedByWorker, "worker_copied_chunks_total",
     "Chunks of large messages copied by the progress worker."},
    {Statistic::kLeaseHandovers, "lease_handovers_total",
     "Times a holder of a rank's progress lease gave way to a waiter."},
    {Statistic::kRtrs, "rtrs_total", "Receives that an RTR named to their source on another node."},
    {Statistic::kWrittenMessages, "written_messages_total",
     "Messages that their source wrote into a receive that an RTR had named."},
    {Statistic::kWrittenBytes, "written_bytes_total", "Payload of these."},
    {Statistic::kOffloadCopies, "offload_copies_total",
     "Copies of offloaded send buffers into bounce buffers in the ranks' heaps."},
    {Statistic::kOffloadBytes, "offload_bytes_total", "Bytes so copied."},
    {Statistic::kMatchedByRank, "matched_by_rank_total",
     "Messages of matched sends inside a node that ranks started."},
    {Statistic::kMatchedByStream, "matched_by_stream_total",
     "Messages of matched sends inside a node that streams started."},
    {Statistic::kMatchedByDaemon, "matched_by_daemon_total",
     "Messages of matched sends to other nodes that the daemon moved."},
    {Statistic::kMatchedByNic, "matched_by_nic_total",
     "Messages of matched sends to other nodes that the NIC moved."},
    {Statistic::kRingRequests, "ring_requests_total",
     "Requests of devices that were taken from rings."},
    {Statistic::kRingErrors, "ring_errors_total",
     "Of these, the ones that were refused or failed."},
    {Statistic::kOneSidedOperations, "one_sided_operations_total",
     "Puts, gets and atomic operations in memory of ranks of other nodes."},
    {Statistic::kOneSidedBytes, "one_sided_bytes_total", "What these have put or got."},
    {Statistic::kLinkMessagesSent, "link_sent_messages_total",
     "Packets that ranks have sent by direct links."},
    {Statistic::kLinkMessagesReceived, "link_received_messages_total",
     "Packets that have come to ranks by direct links."},
    {Statistic::kLinkBytesSent, "link_sent_bytes_total", "Bytes that left by direct links."},
    {Statistic::kLinkBytesReceived, "link_received_bytes_total", "Bytes that came by them."},
    {Statistic::kLinkErrors, "link_errors_total",
     "Direct links that broke while messages took them."},
};

struct PathRow {
  shm::Path path;
  const char* label;
};
constexpr PathRow kPathRows[] = {
    {shm::Path::kInline, "inline"},      {shm::Path::kCell, "cell"},
    {shm::Path::kHeapCopy, "heap_copy"}, {shm::Path::kProcessVm, "process_vm"},
    {shm::Path::kBounce, "bounce"},      {shm::Path::kRdma, "rdma"},
    {shm::Path::kStaged, "staged"},      {shm::Path::kPacket, "packet"},
};

struct LoadRow {
  uint64_t LoadSample::*value;
  const char* name;
  const char* help;
};
constexpr LoadRow kLoadRows[] = {
    {&LoadSample::sessions, "sessions", "Ranks that are attached."},
    {&LoadSample::regions, "regions", "Registered memory regions."},
    {&LoadSample::region_bytes, "region_bytes", "Registered memory."},
    {&LoadSample::unfinished_requests, "unfinished_requests", "Requests that are not complete."},
    {&LoadSample::posted_receives, "posted_receives", "Receives that wait for a message."},
    {&LoadSample::unexpected_messages, "unexpected_messages", "Messages that wait for a receive."},
    {&LoadSample::queued_sends, "queued_sends", "Sends that wait for room or credit."},
    {&LoadSample::credits_out, "credits_out",
     "Messages to other nodes that their receivers have not drained."},
    {&LoadSample::direct_links, "direct_links", "Ends of direct links that ranks here have."},
};

class Page {
 public:
  void Begin(const std::string& name, const char* help, MetricType type) {
    families_.push_back({"ferry_" + name, help, type, {}});
  }
  // `name` as it stands, without "ferry_".
  void BeginStandard(const char* name, const char* help, MetricType type) {
    families_.push_back({name, help, type, {}});
  }
  void Add(double value, Labels labels = {}) {
    MetricFamily& family = families_.back();
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  void Counter(const char* name, const char* help, uint64_t value) {
    Begin(name, help, MetricType::Counter);
    Add(static_cast<double>(value));
  }
  void Gauge(const char* name, const char* help, double value) {
    Begin(name, help, MetricType::Gauge);
    Add(value);
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

double Number(uint64_t value) { return static_cast<double>(value); }

void AddTallies(const MetricsSample& sample, Page* page) {
  for (const TallyRow& row : kTallyRows) {
    page->Counter(row.name, row.help, sample.tally.Read(row.id));
    page->Begin(std::string("job_") + row.name, row.help, MetricType::Counter);
    for (const JobSample& job : sample.jobs) {
      page->Add(Number(job.tally.Read(row.id)), {{"job", job.id}});
    }
  }
}

void AddPaths(const MetricsSample& sample, Page* page) {
  const std::pair<const char*, Statistic (*)(shm::Path)> kinds[] = {
      {"messages", shm::Statistics::MessagesOf}, {"bytes", shm::Statistics::BytesOf}};
  for (const auto& [unit, id_of] : kinds) {
    page->Begin(std::string("path_") + unit + "_total", "Traffic by the way that its data took.",
                MetricType::Counter);
    for (const PathRow& row : kPathRows) {
      page->Add(Number(sample.tally.Read(id_of(row.path))), {{"path", row.label}});
    }
    page->Begin(std::string("job_path_") + unit + "_total",
                "Traffic by job and the way that its data took.", MetricType::Counter);
    for (const JobSample& job : sample.jobs) {
      for (const PathRow& row : kPathRows) {
        page->Add(Number(job.tally.Read(id_of(row.path))), {{"job", job.id}, {"path", row.label}});
      }
    }
  }
}

void AddLoads(const MetricsSample& sample, Page* page) {
  for (const LoadRow& row : kLoadRows) {
    uint64_t sum = 0;
    for (const JobSample& job : sample.jobs) {
      sum += job.load.*row.value;
    }
    page->Gauge(row.name, row.help, Number(sum));
    page->Begin(std::string("job_") + row.name, row.help, MetricType::Gauge);
    for (const JobSample& job : sample.jobs) {
      page->Add(Number(job.load.*row.value), {{"job", job.id}});
    }
  }
}

void AddDaemon(const MetricsSample& sample, Page* page) {
  page->Begin("daemon_info", "What this daemon is; always 1.", MetricType::Gauge);
  page->Add(1, {{"node", sample.node_name},
                {"version", kFerryVersion},
                {"layout_version", std::to_string(kLayoutVersion)},
                {"protocol_version", std::to_string(kProtocolVersion)},
                {"provider", sample.nics.front().provider}});
  page->Gauge("draining", "1 once the daemon takes no new jobs.", sample.draining ? 1 : 0);
  page->Gauge("jobs", "Jobs that the daemon serves.", Number(sample.jobs.size()));
  page->Counter("jobs_created_total", "Jobs created.", sample.jobs_created);
  page->Counter("ranks_attached_total", "Ranks that attached.", sample.ranks_attached);
  page->Counter("ranks_died_total", "Ranks that ended without leaving their job.",
                sample.ranks_died);
  page->Begin("peer_up", "1 for a peer daemon that answers, else 0.", MetricType::Gauge);
  for (const PeerSample& peer : sample.peers) {
    page->Add(peer.up ? 1 : 0, {{"peer", peer.name}});
  }
  page->Begin("peer_silence_seconds", "How long ago a peer daemon was last heard.",
              MetricType::Gauge);
  for (const PeerSample& peer : sample.peers) {
    page->Add(peer.silent_seconds, {{"peer", peer.name}});
  }
}

struct NicRow {
  const char* name;
  const char* help;
  MetricType type;
  uint64_t (*value)(const NicStatistics& nic);
};

template <auto kMember>
uint64_t Of(const NicStatistics& nic) {
  return nic.*kMember;
}

constexpr NicRow kNicRows[] = {
    {"nic_sent_messages_total", "Messages the network took.", MetricType::Counter,
     Of<&NicStatistics::messages_sent>},
    {"nic_received_messages_total", "Messages the network brought.", MetricType::Counter,
     Of<&NicStatistics::messages_received>},
    {"nic_sent_bytes_total", "Bytes sent, messages and writes.", MetricType::Counter,
     Of<&NicStatistics::bytes_sent>},
    {"nic_received_bytes_total", "Bytes received, messages and reads.", MetricType::Counter,
     Of<&NicStatistics::bytes_received>},
    {"nic_reads_total", "Remote reads.", MetricType::Counter, Of<&NicStatistics::reads>},
    {"nic_writes_total", "Remote writes.", MetricType::Counter, Of<&NicStatistics::writes>},
    {"nic_errors_total", "Operations that failed and packets that were dropped.",
     MetricType::Counter, Of<&NicStatistics::errors>},
    {"deferred_entries", "Deferred operations that the NIC is given at a time at most.",
     MetricType::Gauge, Of<&NicStatistics::deferred_entries>},
    {"deferred_busy_entries", "Deferred operations that it has.", MetricType::Gauge,
     Of<&NicStatistics::deferred_busy>},
    {"deferred_operations_total", "Deferred operations that the NIC was given.",
     MetricType::Counter, Of<&NicStatistics::deferred_operations>},
    {"deferred_overflows_total",
     "Operations that the daemon did itself, as the NIC had no entry left.", MetricType::Counter,
     Of<&NicStatistics::deferred_overflows>},
    {"deferred_counters", "Counters that the NIC has for deferred operations.", MetricType::Gauge,
     Of<&NicStatistics::deferred_counters>},
    {"deferred_rings_total", "Times that the daemon added to one of these counters.",
     MetricType::Counter, Of<&NicStatistics::deferred_rings>},
};

void AddNics(const std::vector<NicStatistics>& nics, Page* page) {
  for (const NicRow& row : kNicRows) {
    page->Begin(row.name, row.help, row.type);
    for (size_t i = 0; i < nics.size(); ++i) {
      page->Add(Number(row.value(nics[i])),
                {{"nic", std::to_string(i)}, {"domain", nics[i].domain}});
    }
  }
  const NicStatistics& all = nics.front();
  page->Gauge("nic_outstanding_operations", "Operations the network has not completed.",
              all.outstanding);
  page->Gauge("staging_blocks", "Blocks of staging memory.", all.staging_blocks);
  page->Gauge("staging_most_blocks", "Blocks that staging memory may grow to.",
              all.staging_most_blocks);
  page->Counter("staging_grown_blocks_total", "Blocks of staging memory that were added.",
                all.staging_grown);
  page->Counter("staging_shrunk_blocks_total", "Blocks of staging memory that were given back.",
                all.staging_shrunk);
  page->Gauge("staging_busy_blocks", "Blocks of staging memory in use.", all.staging_busy);
  page->Gauge("staging_waiting_transfers", "Transfers that wait for a staging block.",
              all.staging_waits);
  page->Counter("device_direct_total",
                "Ends of messages in device memory that the network reached itself.",
                all.device_direct);
  page->Counter("device_staged_total",
                "Ends of messages in device memory that went by staging memory.",
                all.device_staged);
}

void AddRegistrations(const RegistrationStatistics& registered, Page* page) {
  page->Gauge("registrations", "Registrations of ranks' memory with the network.",
              registered.entries);
  page->Gauge("registered_bytes", "Memory of these registrations.", registered.bytes);
  page->Gauge("registration_waits", "Registrations under way, and transfers that wait for room.",
              registered.waiting);
  page->Counter("registration_hits_total", "Transfers that found their memory registered.",
                registered.hits);
  page->Counter("registration_misses_total", "Transfers whose memory was not registered.",
                registered.misses);
  page->Counter("registration_evictions_total", "Registrations that went for want of room.",
                registered.evictions);
  page->Counter("registration_refusals_total",
                "Memory that the network or the limits did not register.", registered.refusals);
  page->Counter("registration_device_refusals_total",
                "Device memory that the network did not register: it goes by staging memory.",
                registered.device_refusals);
}

// Under the names that every exporter has.
void AddProcess(const ProcessSample& process, Page* page) {
  page->BeginStandard("process_cpu_seconds_total", "CPU time used.", MetricType::Counter);
  page->Add(process.cpu_seconds);
  page->BeginStandard("process_start_time_seconds", "Start, since 1970.", MetricType::Gauge);
  page->Add(process.start_time_seconds);
  page->BeginStandard("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge);
  page->Add(Number(process.resident_bytes));
  page->BeginStandard("process_open_fds", "Open file descriptors.", MetricType::Gauge);
  page->Add(Number(process.open_files));
  page->BeginStandard("process_max_fds", "File descriptors that may be open.", MetricType::Gauge);
  page->Add(Number(process.max_files));
}

// ---- HTTP ----

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr std::chrono::seconds kPatience(5);  // for a request, and for its reader
constexpr uint32_t kMostRequestBytes = 8 << 10;
// Connections whose request has not come yet, and as many whose answer has not left, from one
// address and in all.
constexpr size_t kMostOfAddress = 16;
constexpr size_t kMost = 64;
constexpr std::chrono::milliseconds kRetry(100);  // while there is no descriptor for a connection

class Server final : public MetricsServer {
 public:
  Server(UniqueFd listener, const std::string& host, std::function<MetricsSample()> sample)
      : sample_(std::move(sample)),
        address_(HostPort{host, static_cast<uint16_t>(PortOf(listener.get()))}.Text()),
        listener_(context_, listener.Release()),
        retry_(context_) {
    AcceptSoon();
    thread_ = MakeThread("ferry-metrics", [this] { context_.run(); });
  }
  ~Server() override {
    context_.stop();
    thread_.join();
  }
  const std::string& address() const override { return address_; }

 private:
  class Connection;

  void AcceptSoon() {
    listener_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (!error) {
                             Accept();
                           }
                         });
  }
  void Accept();
  static void MakeRoomFor(const std::string& from, std::list<Connection*>& connections);
  std::string Page() const {
    return prometheus::TextSerializer().Serialize(MetricFamilies(sample_()));
  }

  const std::function<MetricsSample()> sample_;
  const std::string address_;
  boost::asio::io_context context_{1};
  // Oldest first.
  std::list<Connection*> waiting_;    // for a request
  std::list<Connection*> answering_;  // until the answer has left
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer retry_;
  std::thread thread_;
};

// One request, and its answer.
class Server::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, UniqueFd socket, const tcp& protocol, std::string from)
      : from(std::move(from)),
        server_(server),
        stream_(tcp::socket(server.context_, protocol, socket.Release())) {
    parser_.header_limit(kMostRequestBytes);
  }
  void Start() {
    server_.waiting_.push_back(this);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                       self->server_.waiting_.remove(self.get());
                       if (!error) {
                         self->Answer();
                       }
                     });
  }
  void HangUp() {
    server_.waiting_.remove(this);
    server_.answering_.remove(this);
    stream_.close();
  }

  const std::string from;

 private:
  void Answer() {
    const bool known = parser_.get().target() == "/metrics";
    const bool reads = parser_.get().method() == http::verb::get;
    answer_.version(parser_.get().version());
    answer_.result(!reads  ? http::status::method_not_allowed
                   : known ? http::status::ok
                           : http::status::not_found);
    answer_.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    answer_.body() = known && reads ? server_.Page() : "ferryd's metrics are at /metrics\n";
    answer_.keep_alive(false);
    answer_.prepare_payload();
    stream_.expires_after(kPatience);
    MakeRoomFor(from, server_.answering_);
    server_.answering_.push_back(this);
    KeepUnsent(false);
    http::async_write(stream_, answer_,
                      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                        self->server_.answering_.remove(self.get());
                        if (!error) {
                          boost::system::error_code ignored;
                          self->KeepUnsent(true);
                          self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                        }
                      });
  }
  // Makes the kernel keep, or drop, the bytes that the reader has not taken when the socket is
  // closed.
  void KeepUnsent(bool keeps) {
    boost::system::error_code ignored;
    stream_.socket().set_option(tcp::socket::linger(!keeps, 0), ignored);
  }

  Server& server_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{kMostRequestBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> answer_;
};

void Server::Accept() {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  UniqueFd fd(accept4(listener_.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                      SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) {
    char text[NI_MAXHOST] = "";
    getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
                NI_NUMERICHOST);
    MakeRoomFor(text, waiting_);
    const tcp protocol = address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
    std::make_shared<Connection>(*this, std::move(fd), protocol, text)->Start();
  } else if (errno == EMFILE || errno == ENFILE) {
    retry_.expires_after(kRetry);
    return retry_.async_wait([this](const boost::system::error_code&) { AcceptSoon(); });
  }
  AcceptSoon();
}

// Hangs up on the connection that has been silent for longest, so that new ones always find room.
void Server::MakeRoomFor(const std::string& from, std::list<Connection*>& connections) {
  const auto is_from = [&](const Connection* connection) { return connection->from == from; };
  if (std::count_if(connections.begin(), connections.end(), is_from) >=
      static_cast<ptrdiff_t>(kMostOfAddress)) {
    (*std::find_if(connections.begin(), connections.end(), is_from))->HangUp();
  } else if (connections.size() >= kMost) {
    connections.front()->HangUp();
  }
}

Status Refuse(const std::string& why) { return {ErrorCode::kConfiguration, why}; }

}  // namespace

// ---- MetricsPage ----

std::vector<MetricFamily> MetricFamilies(const MetricsSample& sample) {
  Page page;
  AddDaemon(sample, &page);
  AddTallies(sample, &page);
  AddPaths(sample, &page);
  AddLoads(sample, &page);
  AddNics(sample.nics, &page);
  AddRegistrations(sample.registered, &page);
  AddProcess(sample.process, &page);
  return page.Take();
}

// ---- MetricsServer ----

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsOptions& options, std::function<MetricsSample()> sample) {
  StatusOr<HostPort> address = ParseHostPort(options.address, PortZero::kAllow);
  if (!address.ok()) {
    return Refuse("metrics_address: " + address.status().message());
  }
  if (address->host == "localhost") {
    address->host = "127.0.0.1";
  }
  if (options.loopback_only && !CheckLoopback(address->host).ok()) {
    return Refuse("metrics_address " + options.address +
                  " can be read from other machines, without a password: use a loopback address "
                  "(127.0.0.1), or allow it with metrics_access = \"anyone\"");
  }
  StatusOr<UniqueFd> listener = ListenTcp(*address, "metrics_address");
  FERRY_RETURN_IF_ERROR(listener.status());
  return std::unique_ptr<MetricsServer>(
      std::make_unique<Server>(std::move(*listener), address->host, std::move(sample)));
}

}  // namespace ferry::daemon
