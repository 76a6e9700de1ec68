#include "daemon/metrics/metrics_page.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "common/version.h"
#include "shm/call_record.h"

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
    {&LoadSample::unexpected_messages, "waiting_unexpected_messages",
     "Messages that wait for a receive."},
    {&LoadSample::queued_sends, "waiting_sends", "Sends that wait for room or credit."},
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
  void AddHistogram(ClientMetric::Histogram histogram, Labels labels = {}) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = std::move(labels);
    metric.histogram = std::move(histogram);
  }
  void Histogram(const char* name, const char* help, ClientMetric::Histogram histogram) {
    Begin(name, help, MetricType::Histogram);
    AddHistogram(std::move(histogram));
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

// Counts by powers of two: entry i those below 2^i of `unit`.
template <size_t kCount>
ClientMetric::Histogram HistogramOf(const std::array<uint64_t, kCount>& counts, double unit,
                                    double sum) {
  ClientMetric::Histogram histogram;
  for (size_t i = 0; i < kCount; ++i) {
    histogram.sample_count += counts[i];
    const double bound = i + 1 < kCount ? std::ldexp(unit, static_cast<int>(i))
                                        : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  histogram.sample_sum = sum;
  return histogram;
}

double Number(uint64_t value) { return static_cast<double>(value); }

// Empty messages, then those of at most 8 B, 16 B and so on.
ClientMetric::Histogram SizeHistogram(const shm::Histograms& histograms, uint64_t bytes) {
  constexpr uint32_t kFirst = 2;  // at most 2^(2+1) bytes
  constexpr uint32_t kLast = 30;  // at most 2 GiB
  ClientMetric::Histogram histogram;
  histogram.sample_count = histograms.sizes[shm::kEmptyMessages];
  histogram.bucket.push_back({histogram.sample_count, 0.0});
  for (uint32_t i = 0; i < shm::kEmptyMessages; ++i) {
    histogram.sample_count += histograms.sizes[i];
    if (i >= kFirst && i <= kLast) {
      histogram.bucket.push_back(
          {histogram.sample_count, std::ldexp(1.0, static_cast<int>(i) + 1)});
    }
  }
  histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  histogram.sample_sum = Number(bytes);
  return histogram;
}

// The text with what is no UTF-8 replaced: one label that is none would make Prometheus refuse the
// whole page, and launchers choose the names of their jobs.
std::string AsUtf8(std::string text) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80                    ? 1
                          : first >= 0xc2 && first < 0xe0 ? 2
                          : first >= 0xe0 && first < 0xf0 ? 3
                          : first >= 0xf0 && first < 0xf5 ? 4
                                                          : 0;
    bool is_whole = length != 0 && at + length <= text.size();
    for (size_t i = 1; is_whole && i < length; ++i) {
      is_whole = (static_cast<unsigned char>(text[at + i]) & 0xc0) == 0x80;
    }
    // Overlong forms, surrogates, and what is beyond Unicode.
    const auto second = static_cast<unsigned char>(length > 1 && is_whole ? text[at + 1] : 0x80);
    is_whole = is_whole && !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f) &&
               !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
    if (!is_whole) {
      text[at] = '?';
    }
    at += is_whole ? length : 1;
  }
  return text;
}

// A job that the reader may see, and the labels that its series begin with.
struct ShownJob {
  const JobSample* job;
  Labels labels;
};
using ShownJobs = std::vector<ShownJob>;

ShownJobs Select(const MetricsSample& sample, const MetricsReader& reader, UserNames* users) {
  ShownJobs shown;
  for (const JobSample& job : sample.jobs) {
    if (!reader.MaySee(job.uid)) {
      continue;
    }
    shown.push_back({&job, {{"job", job.id}, {"uid", std::to_string(job.uid)}}});
    const std::pair<const char*, std::string> names[] = {{"user", users->Find(job.uid)},
                                                         {"name", job.name},
                                                         {"program", job.program},
                                                         {"slurm_job", job.slurm_id}};
    for (const auto& [label, text] : names) {
      if (!text.empty()) {
        shown.back().labels.push_back({label, AsUtf8(text)});
      }
    }
  }
  return shown;
}

Labels With(Labels labels, const char* name, const char* value) {
  labels.push_back({name, value});
  return labels;
}

void AddWaits(const shm::Histograms& histograms, const Labels& labels, Page* page) {
  for (const auto& [name, waits] : histograms.waits) {
    page->AddHistogram(
        HistogramOf(waits.counts, static_cast<double>(shm::kShortestWaitNs) / 1e9,
                    static_cast<double>(waits.waited_ns) / 1e9),
        With(labels, "call", name == shm::CallName::kNone ? "other" : shm::CallText(name)));
  }
}

// Sizes of the messages that ranks send, and lengths of their waits.
void AddHistograms(const MetricsSample& sample, const ShownJobs& shown, Page* page) {
  constexpr char kSizes[] = "Messages sent, by payload.";
  constexpr char kWaits[] = "Waits that are over, by the function that waited.";
  constexpr char kTime[] = "Time for which ranks were attached, all together.";
  page->Histogram("message_size_bytes", kSizes,
                  SizeHistogram(sample.histograms, sample.tally.Read(Statistic::kBytesSent)));
  page->Begin("job_message_size_bytes", kSizes, MetricType::Histogram);
  for (const auto& [job, labels] : shown) {
    page->AddHistogram(SizeHistogram(job->histograms, job->tally.Read(Statistic::kBytesSent)),
                       labels);
  }
  page->Begin("wait_seconds", kWaits, MetricType::Histogram);
  AddWaits(sample.histograms, {}, page);
  page->Begin("job_wait_seconds", kWaits, MetricType::Histogram);
  for (const auto& [job, labels] : shown) {
    AddWaits(job->histograms, labels, page);
  }
  page->Begin("rank_seconds_total", kTime, MetricType::Counter);
  page->Add(sample.rank_seconds);
  page->Begin("job_rank_seconds_total", kTime, MetricType::Counter);
  for (const auto& [job, labels] : shown) {
    page->Add(job->rank_seconds, labels);
  }
}

void AddTallies(const MetricsSample& sample, const ShownJobs& shown, Page* page) {
  for (const TallyRow& row : kTallyRows) {
    page->Counter(row.name, row.help, sample.tally.Read(row.id));
    page->Begin(std::string("job_") + row.name, row.help, MetricType::Counter);
    for (const auto& [job, labels] : shown) {
      page->Add(Number(job->tally.Read(row.id)), labels);
    }
  }
}

void AddPaths(const MetricsSample& sample, const ShownJobs& shown, Page* page) {
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
    for (const auto& [job, labels] : shown) {
      for (const PathRow& row : kPathRows) {
        page->Add(Number(job->tally.Read(id_of(row.path))), With(labels, "path", row.label));
      }
    }
  }
}

void AddLoads(const MetricsSample& sample, const ShownJobs& shown, Page* page) {
  for (const LoadRow& row : kLoadRows) {
    uint64_t sum = 0;
    for (const JobSample& job : sample.jobs) {
      sum += job.load.*row.value;
    }
    page->Gauge(row.name, row.help, Number(sum));
    page->Begin(std::string("job_") + row.name, row.help, MetricType::Gauge);
    for (const auto& [job, labels] : shown) {
      page->Add(Number(job->load.*row.value), labels);
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

}  // namespace

std::vector<MetricFamily> MetricFamilies(const MetricsSample& sample, const MetricsReader& reader,
                                         UserNames* users) {
  const ShownJobs shown = Select(sample, reader, users);
  Page page;
  AddDaemon(sample, &page);
  AddTallies(sample, shown, &page);
  AddPaths(sample, shown, &page);
  AddLoads(sample, shown, &page);
  AddHistograms(sample, shown, &page);
  AddNics(sample.nics, &page);
  page.Histogram(
      "progress_turn_seconds", "Turns of the progress thread: what a message may have to wait for.",
      HistogramOf(sample.turns.counts, 1e-6, static_cast<double>(sample.turns.sum_ns) / 1e9));
  AddRegistrations(sample.registered, &page);
  AddProcess(sample.process, &page);
  return page.Take();
}

std::string MetricsText(const MetricsSample& sample, const MetricsReader& reader,
                        UserNames* users) {
  return prometheus::TextSerializer().Serialize(MetricFamilies(sample, reader, users));
}

}  // namespace ferry::daemon
