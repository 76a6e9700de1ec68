#include "client/direct/direct_home.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/clock.h"

namespace ferry::client {
namespace {

// A core here has only one job, so its packets need no name for it.
constexpr uint64_t kJobKey = 1;

// Turns after a cut: by then everything under way has ended that can end at once. They are bounded
// since what is there in the meantime, of other links, may be without end.
constexpr uint32_t kTurnsAfterCut = 16;

// Staging memory, where the network pins memory: enough for a few long messages at a time.
constexpr uint64_t kStagingBlockBytes = 256 << 10;
constexpr uint32_t kStagingBlocks = 16;
// And what stays registered of the program's memory.
constexpr uint64_t kKeptEntries = 1024;
constexpr uint64_t kKeptBytes = uint64_t{4} << 30;

// A packet has room for 64 bits of the key. A rank that can send a packet at all has proved itself
// by the 128 random bits of the endpoint's address.
uint64_t Fold(const LinkKey& key) { return key.words[0] ^ key.words[1]; }

progress::JobPlan PlanOf(const DirectSetup& setup) {
  progress::JobPlan plan;
  plan.job_id = setup.job_id;
  plan.key = kJobKey;
  plan.node = setup.view.rank;
  plan.node_of_rank.resize(setup.view.job_size);
  std::iota(plan.node_of_rank.begin(), plan.node_of_rank.end(), 0U);
  plan.local_index.assign(setup.view.job_size, 0);
  return plan;
}

// The mappings are libferry's, and stay when these go.
std::shared_ptr<const progress::ServedSegments> SegmentsOf(const DirectSetup& setup) {
  const auto release = [](progress::ServedSegments* segments) {
    (void)segments->session_map.Release();
    (void)segments->inbox_map.Release();
    delete segments;
  };
  std::shared_ptr<progress::ServedSegments> segments(new progress::ServedSegments, release);
  const engine::SessionView& view = setup.view;
  segments->job_id = setup.job_id;
  segments->rank = view.rank;
  segments->local_size = view.inbox.local_size;
  segments->job_size = view.job_size;
  segments->request_limit = view.request_limit;
  segments->private_memory_reachable = true;
  segments->session_map = shm::Mapping(view.base(), view.size_bytes);
  segments->inbox_map = shm::Mapping(view.inbox.base(), view.inbox.size_bytes);
  return segments;
}

// Returns true if the error says that the other rank is gone for good.
bool IsEnd(ErrorCode error) {
  switch (error) {
    case ErrorCode::kPeerDied:
    case ErrorCode::kAborted:
    case ErrorCode::kWorkerDied:
    case ErrorCode::kDaemonDied:
    case ErrorCode::kNodeUnreachable:
      return true;
    default:
      return false;
  }
}

// As what a rank proves itself to the transport (Transport::AddressFor).
constexpr uint64_t GuestOf(uint32_t peer) { return uint64_t{peer} + 1; }

}  // namespace

StatusOr<std::unique_ptr<DirectLinks>> DirectHome::Create(
    const DirectSetup& setup, DirectHost* host, std::unique_ptr<transport::Transport> transport) {
  const transport::Capabilities& capabilities = transport->capabilities();
  if (!capabilities.wait_fd) {
    return Status(ErrorCode::kUnsupported, "direct links need a descriptor to wait for, and " +
                                               transport->Describe().provider + " has none");
  }
  if (transport->Address().size() > kLinkAddressBytes) {
    return Status(ErrorCode::kUnsupported, "an address of this transport is too long for a link: " +
                                               transport->Describe().provider);
  }
  std::unique_ptr<DirectHome> home(new DirectHome(setup, host));
  FERRY_RETURN_IF_ERROR(home->Start(setup, std::move(transport)));
  return std::unique_ptr<DirectLinks>(std::move(home));
}

DirectHome::DirectHome(const DirectSetup& setup, DirectHost* host)
    : host_(*host),
      job_id_(setup.job_id),
      rank_(setup.view.rank),
      commands_(&setup.view.layout->to_link),
      statistics_(setup.view.layout->counters),
      links_(setup.view.job_size) {}

Status DirectHome::Start(const DirectSetup& setup,
                         std::unique_ptr<transport::Transport> transport) {
  wait_fd_ = transport->WaitFd();
  ends_reads_ = transport->Describe().provider == transport::kTcpProvider;
  const bool pins = transport->capabilities().pins;
  if (pins) {
    FERRY_RETURN_IF_ERROR(HangBell(wait_fd_));
    copier_ = std::make_shared<LocalCopier>();
    if (auto monitor = MemoryMonitor::Create(); monitor.ok()) {
      monitor_ = std::move(*monitor);
    }
  }

  progress::CoreOptions options;
  options.staging_block_bytes = kStagingBlockBytes;
  options.staging_blocks = pins ? kStagingBlocks : 0;
  options.device_blocks = 0;
  options.registration_piece_bytes = 1;  // no more than the pages of a message
  options.registrations = {kKeptEntries, kKeptBytes};
  options.operation_timeout_ns = setup.operation_timeout_ns;
  options.nodes_are_ranks = true;
  options.push_max_bytes = setup.push_max_bytes;
  progress::CoreParts parts;
  parts.transport = std::move(transport);
  parts.home = this;
  parts.copies = copier_;
  // The registrar's thread rings, for memory that is pinned.
  auto core = progress::ProgressCore::Create(options, std::move(parts), Hooks(),
                                             [this] { (void)eventfd_write(bell_.get(), 1); });
  FERRY_RETURN_IF_ERROR(core.status());
  core_ = std::move(*core);
  FERRY_RETURN_IF_ERROR(core_->control().AddJob(PlanOf(setup)));
  const auto segments = SegmentsOf(setup);
  core_->control().AddSession(segments, progress::LinkSeat(*segments));
  return {};
}

Status DirectHome::HangBell(int transport_fd) {
  bell_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  waits_.Reset(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {transport_fd, bell_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(waits_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return StatusFromErrno(errno, "epoll_ctl");
    }
  }
  wait_fd_ = waits_.get();
  return {};
}

progress::CoreHooks DirectHome::Hooks() {
  progress::CoreHooks hooks;
  hooks.on_violation = [this](const std::string&, uint32_t, const std::string& text) {
    host_.OnViolation(text.c_str());
  };
  hooks.on_link_down = [this](uint64_t link, ErrorCode, const std::string& text) {
    links_down_.push_back({link, text});
  };
  // The daemon tells the rank who is gone, and libferry hears of links by OnLinkDown.
  hooks.on_rank_ended = [](const std::string&, uint32_t, ErrorCode) {};
  return hooks;
}

// ---- Calls of the core -------------------------------------------------------------------------

// The kernel reads and writes there for the transport: an address that is none is an error to it.
std::byte* DirectHome::Reach(const progress::ServedRank& /*rank*/, uint64_t address,
                             uint64_t /*bytes*/) {
  return reinterpret_cast<std::byte*>(address);
}

ErrorCode DirectHome::Locate(const progress::ServedRank& /*rank*/, uint64_t bytes,
                             progress::NamedBy by, shm::Location* where) {
  HostRegion region;
  if (!host_.FindRegion(where->region, &region) || where->address > region.size_bytes ||
      bytes > region.size_bytes - where->address ||
      (region.lent && by == progress::NamedBy::kPeer)) {
    return ErrorCode::kInvalidBuffer;
  }
  if (region.by_stream && bytes != 0) {
    return ErrorCode::kUnsupported;
  }
  *where = {0, 0, reinterpret_cast<uint64_t>(region.base) + where->address};
  return ErrorCode::kOk;
}

shm::ElementLock* DirectHome::LockOf(const progress::ServedRank& /*rank*/, uint32_t region) {
  HostRegion found;
  return host_.FindRegion(region, &found) ? found.lock : nullptr;
}

// Where a link ends, or begins, its caller takes no effects of the engine; it takes what has come
// later.
void DirectHome::LetMatch(progress::ServedRank& /*rank*/) {
  if (may_match_) {
    host_.LetMatch();
  }
}

// ---- Links -------------------------------------------------------------------------------------

LinkAddress DirectHome::AddressFor(uint32_t peer) const {
  const std::vector<std::byte> bytes = core_->transport().AddressFor(GuestOf(peer));
  LinkAddress address;
  std::copy(bytes.begin(), bytes.end(), address.bytes);
  address.size_bytes = static_cast<uint32_t>(bytes.size());
  return address;
}

Status DirectHome::Connect(uint32_t peer, const LinkRoute& route) {
  const std::string what = "a direct link to rank " + std::to_string(peer);
  if (peer >= links_.size() || peer == rank_) {
    return {ErrorCode::kInvalidRank, what + ": there is no such rank, or it is this one"};
  }
  if (links_[peer] != 0) {
    return {ErrorCode::kAlreadyExists, what + ": there is one"};
  }
  if (route.address.size_bytes > kLinkAddressBytes) {
    return {ErrorCode::kInvalidArgument, what + ": its address is too long"};
  }
  const uint64_t now_ns = MonotonicNs();
  for (uint32_t turn = 0; turn < kTurnsAfterCut && !IsSettled(); ++turn) {
    (void)core_->Turn(now_ns);
  }
  if (!IsSettled()) {
    return {ErrorCode::kWouldBlock, what + ": commands wait that may be about the one before it"};
  }
  progress::NodeRoute node;
  node.fabric_address.assign(route.address.bytes, route.address.bytes + route.address.size_bytes);
  node.send_key = Fold(route.send_key);
  node.receive_key = Fold(route.receive_key);
  node.link = ++links_begun_;  // each one is new to the core
  node.guest = GuestOf(peer);
  FERRY_RETURN_IF_ERROR(core_->control().AddNode(job_id_, peer, node));
  core_->ends().NodeReturned(job_id_, peer);
  links_[peer] = node.link;
  statistics_.Store(shm::Statistic::kLinksOpen, ++links_open_);
  return {};
}

ErrorCode DirectHome::ConnectionTo(uint32_t peer, bool calls, std::string* why) {
  if (peer >= links_.size() || links_[peer] == 0) {
    return ErrorCode::kLinkDown;
  }
  const ErrorCode code = core_->control().ConnectionTo(links_[peer], why);
  if (calls && code == ErrorCode::kWouldBlock) {
    core_->control().Connect(links_[peer], MonotonicNs());
  }
  return code == ErrorCode::kOk || code == ErrorCode::kWouldBlock ? code : ErrorCode::kLinkDown;
}

void DirectHome::End(uint32_t peer, ErrorCode error) {
  if (peer >= links_.size() || links_[peer] == 0) {
    return;
  }
  if (IsEnd(error)) {
    core_->ends().RankEnded(job_id_, peer, error);
  }
  Cut(peer, MonotonicNs());
  Count();
}

// Ends the link, and what is under way by it.
void DirectHome::Cut(uint32_t peer, uint64_t now_ns) {
  core_->ends().NodeFailed(std::exchange(links_[peer], 0), ErrorCode::kLinkDown);
  statistics_.Store(shm::Statistic::kLinksOpen, --links_open_);
  stale_until_ = *commands_.HeadWord() + commands_.Backlog();
  for (uint32_t turn = 0; turn < kTurnsAfterCut && !(IsIdle(peer) && IsSettled()); ++turn) {
    (void)core_->Turn(now_ns);
  }
}

// Returns true once the core has taken all commands that may be about a link that has ended.
bool DirectHome::IsSettled() const { return *commands_.HeadWord() >= stale_until_; }

bool DirectHome::IsIdle(uint32_t peer) const { return core_->control().IsIdleWith(job_id_, peer); }

bool DirectHome::WantsOf(uint32_t peer) const {
  return commands_.Peek() != nullptr || core_->control().WantsOf(job_id_, peer);
}

// Data of a put goes from the socket straight into the region. That end of the link is the only way
// to keep it out at once; libfabric's providers hold a read beyond that. A get of a peer is no
// danger to the memory: the kernel finds what is not there. Nor is a message of this rank's own:
// the program may not let go of its buffer.
void DirectHome::ForgetRegion(const HostRegion& region) {
  if (!ends_reads_) {
    return;
  }
  const auto begin = reinterpret_cast<uintptr_t>(region.base);
  for (uint32_t peer = 0; links_open_ != 0 && peer < links_.size(); ++peer) {
    if (links_[peer] != 0 &&
        core_->control().FetchesPutInto(job_id_, peer, {begin, begin + region.size_bytes})) {
      links_down_.push_back({links_[peer],
                             "a put of the peer was under way into memory that this "
                             "rank's program has freed"});
    }
  }
  if (FailLinksDown(MonotonicNs()) != 0) {
    Count();
  }
}

// ---- Turns -------------------------------------------------------------------------------------

uint32_t DirectHome::Turn(uint64_t now_ns) {
  if (may_sleep_) {
    may_sleep_ = false;
    core_->Wake();
    eventfd_t rings = 0;
    (void)(bell_.valid() && eventfd_read(bell_.get(), &rings) == 0);
  }
  may_match_ = true;
  uint32_t done = core_->Turn(now_ns);
  may_match_ = false;
  if (!links_down_.empty()) [[unlikely]] {
    done += FailLinksDown(now_ns);
  }
  if (done != 0) {
    Count();
  }
  return done;
}

// While it cuts a link, others may go down.
uint32_t DirectHome::FailLinksDown(uint64_t now_ns) {
  uint32_t failed = 0;
  for (; !links_down_.empty(); ++failed) {
    const LinkDown down = std::move(links_down_.back());
    links_down_.pop_back();
    uint32_t peer = 0;
    while (peer < links_.size() && links_[peer] != down.number) {
      ++peer;
    }
    if (peer == links_.size()) {
      continue;  // it has ended meanwhile
    }
    Cut(peer, now_ns);
    host_.OnLinkDown(peer, ErrorCode::kLinkDown, down.text.c_str());
  }
  return failed;
}

void DirectHome::Count() {
  const transport::Statistics& now = core_->transport().statistics();
  const auto add = [&](shm::Statistic id, uint64_t grown) {
    if (grown != 0) {
      statistics_.Add(id, grown);
    }
  };
  add(shm::Statistic::kLinkMessagesSent, now.messages_sent - counted_.messages_sent);
  add(shm::Statistic::kLinkMessagesReceived, now.messages_received - counted_.messages_received);
  add(shm::Statistic::kLinkBytesSent, now.message_bytes_sent - counted_.message_bytes_sent +
                                          now.write_bytes - counted_.write_bytes +
                                          now.served_bytes - counted_.served_bytes);
  add(shm::Statistic::kLinkBytesReceived, now.message_bytes_received -
                                              counted_.message_bytes_received + now.read_bytes -
                                              counted_.read_bytes);
  counted_ = now;
}

// Delivered messages that the rank has not read do not count as work: they are for its engine.
bool DirectHome::HasWork() const {
  return !links_down_.empty() || !core_->control().Idle() || core_->HasTransfers();
}

bool DirectHome::PrepareToSleep() {
  may_sleep_ = true;
  const bool has_copied = copier_ != nullptr && copier_->pending() != 0;
  if (!links_down_.empty() || has_copied || !core_->PrepareToSleep()) {
    return false;
  }
  next_turn_ns_.store(core_->NextTurnNs(MonotonicNs()), std::memory_order_relaxed);
  return true;
}

}  // namespace ferry::client
