#include "tests/client/direct/linked_rank.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/version.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

constexpr uint32_t kRequestLimit = 4096;
constexpr uint32_t kUnexpectedLimit = 16384;

engine::SegmentPlan PlanFor(uint32_t rank, uint32_t job_size) {
  return {rank, job_size, 1, kRequestLimit, kUnexpectedLimit};
}

engine::SessionView ViewOf(uint32_t rank, uint32_t job_size, const shm::SharedMemory& session,
                           const shm::SharedMemory& inbox) {
  const engine::SegmentPlan plan = PlanFor(rank, job_size);
  engine::InitializeSegments(plan, static_cast<uint32_t>(getpid()), session.base(), inbox.base());
  StatusOr<engine::SessionView> view =
      engine::ViewSession(session.base(), plan.session_bytes(), inbox.base(), plan.inbox_bytes());
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  return *view;
}

uint32_t ThreadId() {
  thread_local const auto id = static_cast<uint32_t>(gettid());
  return id;
}

bool IsKind(const Descriptor& descriptor, DescriptorKind kind) {
  return descriptor.kind == static_cast<uint8_t>(kind);
}

// Of an eager message's data, that follows the descriptor between two paths.
size_t DataBytes(const Descriptor& descriptor) {
  const bool in_cell =
      IsKind(descriptor, DescriptorKind::kEager) && (descriptor.flags & shm::kFlagCell) != 0;
  return in_cell ? descriptor.size_bytes : 0;
}

}  // namespace

const DirectApi* OpenDirectLibrary() {
  if (direct_entry != nullptr) {
    return direct_entry();
  }
  void* library = dlopen(direct_library, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  const auto entry = reinterpret_cast<DirectEntry>(dlsym(library, kDirectEntryName));
  if (entry == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  const DirectApi* api = entry();
  EXPECT_EQ(api->version, kDirectApiVersion);
  EXPECT_EQ(api->layout_version, kLayoutVersion);
  return api;
}

std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  uint32_t value = seed * 2'654'435'761U + 1;
  for (std::byte& byte : bytes) {
    value = value * 1'664'525U + 1'013'904'223U;
    byte = static_cast<std::byte>(value >> 24);
  }
  return bytes;
}

// ---- DaemonPath --------------------------------------------------------------------------------

DaemonPath::DaemonPath(const engine::SessionView& view, std::vector<int> sockets)
    : view_(view),
      sockets_(std::move(sockets)),
      commands_(&view.layout->to_daemon),
      lane_(view.inbox.lane(shm::DaemonLane(view.inbox.local_size))),
      waiting_(sockets_.size()) {
  lane_.Open(~uint32_t{0});
}

bool DaemonPath::Turn() {
  bool any = false;
  while (TakeCommand()) {
    any = true;
  }
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    while (sockets_[peer] >= 0) {
      std::unique_ptr<Carried>& carried = waiting_[peer];
      if (carried == nullptr) {
        carried = std::make_unique<Carried>();
        if (recv(sockets_[peer], carried.get(), sizeof(Carried), MSG_DONTWAIT) <= 0) {
          carried.reset();
          break;
        }
      }
      if (!Deliver(*carried)) {
        break;
      }
      carried.reset();
      any = true;
    }
  }
  return any;
}

bool DaemonPath::TakeCommand() {
  const Descriptor* const next = commands_.Peek();
  if (next == nullptr) {
    return false;
  }
  Carried carried;
  carried.descriptor = *next;
  const Descriptor& command = carried.descriptor;
  switch (static_cast<DescriptorKind>(command.kind)) {
    case DescriptorKind::kLinkWanted: {
      shm::LinkCommand words;
      std::memcpy(&words, command.payload, sizeof(words));
      told_.push_back({command.destination, static_cast<shm::LinkMatter>(words.matter)});
      commands_.Pop();
      return true;
    }
    case DescriptorKind::kEager:
    case DescriptorKind::kCredit:
    case DescriptorKind::kSwitch:
      break;
    default:
      ADD_FAILURE() << "rank " << view_.rank << " says something of kind " << int{command.kind}
                    << " to its daemon";
      commands_.Pop();
      return true;
  }
  const size_t data_bytes = DataBytes(command);
  if (data_bytes != 0) {
    std::memcpy(carried.data, commands_.Cell(command.cell), data_bytes);
  }
  const int socket = sockets_[command.destination];
  const size_t bytes = sizeof(Descriptor) + data_bytes;
  if (socket >= 0 && send(socket, &carried, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      errno == EAGAIN) {
    return false;
  }
  if (data_bytes != 0) {
    commands_.ReleaseCell(command.cell);
  }
  commands_.Pop();
  return true;
}

bool DaemonPath::Deliver(const Carried& carried) {
  Descriptor descriptor = carried.descriptor;
  if (!lane_.HasRoom()) {
    return false;
  }
  if (const size_t data_bytes = DataBytes(descriptor); data_bytes != 0) {
    const uint32_t cell = lane_.TryTakeCell();
    if (cell == shm::kNoCell) {
      return false;
    }
    std::memcpy(lane_.Cell(cell), carried.data, data_bytes);
    descriptor.cell = static_cast<uint16_t>(cell);
  }
  EXPECT_TRUE(lane_.TryPush(descriptor));
  shm::Wake(view_.inbox.wake()).PublishLane(shm::DaemonLane(view_.inbox.local_size));
  return true;
}

// ---- LinkedRank: links -------------------------------------------------------------------------

LinkedRank::LinkedRank(uint32_t rank, uint32_t job_size, std::vector<int> sockets,
                       const RankOptions& options)
    : session_memory_(PlanFor(rank, job_size).session_bytes()),
      inbox_memory_(PlanFor(rank, job_size).inbox_bytes()),
      heap_(kHeapBytes),
      options_(options),
      view_(ViewOf(rank, job_size, session_memory_, inbox_memory_)),
      lease_(&view_.layout->lease),
      daemon_(view_, std::move(sockets)) {
  peers_.by_rank = ZeroedArray<engine::Peer>(job_size);
  peers_.by_rank[rank].local = true;
  peers_.by_rank[rank].SetInbox(view_.inbox);
  peers_.rank_of_local = {rank};
  engine_ =
      std::make_unique<engine::RankEngine>(view_, peers_, options.engine, engine::Runner::kRank);
}

LinkedRank::~LinkedRank() { CloseLinks(); }

void LinkedRank::OpenLinks() {
  const DirectApi* api = OpenDirectLibrary();
  if (api == nullptr) {
    return;
  }
  DirectSetup setup;
  setup.view = view_;
  setup.job_id = "job";
  setup.provider = link_provider;
  setup.source_address = options_.source_address;
  setup.operation_timeout_ns = options_.operation_timeout_ns;
  StatusOr<std::unique_ptr<DirectLinks>> opened = api->open(setup, this);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  links_ = std::move(*opened);
}

void LinkedRank::CloseLinks() { links_.reset(); }

Status LinkedRank::Connect(uint32_t peer, const LinkRoute& route) {
  Status status;
  UnderLease([&] { status = links_->Connect(peer, route); });
  return status;
}

ErrorCode LinkedRank::ConnectionTo(uint32_t peer, bool calls, std::string* why) {
  ErrorCode code = ErrorCode::kOk;
  UnderLease([&] { code = links_->ConnectionTo(peer, calls, why); });
  return code;
}

void LinkedRank::End(uint32_t peer, ErrorCode error) {
  UnderLease([&] { links_->End(peer, error); });
}

ErrorCode LinkedRank::UseLink(uint32_t peer) {
  ErrorCode error = ErrorCode::kOk;
  UnderLease([&] { error = engine_->paths().UseLink(peer, *effects_); });
  return error;
}

void LinkedRank::LeaveLink(uint32_t peer) {
  UnderLease([&] { engine_->paths().LeaveLink(peer, *effects_); });
}

void LinkedRank::MarkDead(uint32_t peer, ErrorCode error) {
  if (error == ErrorCode::kLinkDown) {
    shm::FetchAdd(view_.by_rank.rtrs[peer].cuts, 1U, std::memory_order_release);
  }
  view_.by_rank.StoreDead(peer, error);
  shm::FetchAdd(view_.inbox.wake()->death_epoch, 1U, std::memory_order_release);
  shm::Wake(view_.inbox.wake()).Publish();
}

void LinkedRank::Revive(uint32_t peer) {
  view_.by_rank.StoreDead(peer, ErrorCode::kOk);
  shm::FetchAdd(view_.inbox.wake()->death_epoch, 1U, std::memory_order_release);
}

void LinkedRank::LetMatch() { (void)engine_->Progress(*effects_); }

void LinkedRank::OnLinkDown(uint32_t peer, ErrorCode error, const char* text) {
  losses_.push_back({peer, error, text});
  engine_->paths().FailLink(peer, *effects_);
}

void LinkedRank::OnViolation(const char* text) {
  violations_.emplace_back(text);
  shm::Wake(view_.inbox.wake()).Poison(ErrorCode::kCorrupt);
}

bool LinkedRank::FindRegion(uint32_t region, HostRegion* found) const {
  if (region == kHeapRegion || region == kLentRegion) {
    *found = {heap_.base(), heap_.size_bytes(), false, region == kLentRegion};
    return true;
  }
  if (region == kExposedRegion) {
    *found = {.base = heap_.base() + 1, .size_bytes = heap_.size_bytes() - 1, .lock = &elements_};
    return true;
  }
  if (region == kStreamRegion) {
    *found = {nullptr, kHeapBytes, true};
    return true;
  }
  return false;
}

ErrorCode LinkedRank::TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) {
  if (refuses_landings_) {
    return ErrorCode::kOutOfMemory;
  }
  std::vector<std::byte>& landing = landings_[request];
  EXPECT_TRUE(landing.empty()) << "request " << request << " has one";
  landing.resize(size_bytes);
  *where = Private(landing.data());
  return ErrorCode::kOk;
}

// ---- LinkedRank: messages ----------------------------------------------------------------------

bool LinkedRank::TryLock() {
  if (!lease_.TryAcquire(ThreadId())) {
    return false;
  }
  effects_.emplace();
  return true;
}

void LinkedRank::Lock() {
  while (!TryLock()) {
    sched_yield();
  }
}

// A thread that takes what the effects name looks by itself.
void LinkedRank::Unlock() {
  effects_.reset();
  lease_.Release(ThreadId());
}

// As client/p2p/progress.h.
uint32_t LinkedRank::Step() {
  const auto turn = [this] { return links_ == nullptr ? 0 : links_->Turn(MonotonicNs()); };
  effects_->to_link = false;
  uint32_t done = turn();
  done += engine_->Progress(*effects_);
  return effects_->to_link ? done + turn() : done;
}

bool LinkedRank::Progress() {
  if (!TryLock()) {
    return false;
  }
  (void)daemon_.Turn();
  (void)Step();
  Unlock();
  return true;
}

bool LinkedRank::ProgressLinks() {
  if (!TryLock()) {
    return false;
  }
  (void)Step();
  Unlock();
  return true;
}

bool LinkedRank::TryRest(uint64_t quiet_ns, uint64_t* next_ns) {
  if (!TryLock()) {
    return false;
  }
  uint64_t now_ns = 0;
  do {
    uint32_t done = 0;
    uint64_t moved_ns = MonotonicNs();
    do {  // ends with a round that has found nothing, however long the one before it took
      now_ns = MonotonicNs();
      done = Step();
      moved_ns = done != 0 ? now_ns : moved_ns;
    } while (done != 0 || now_ns - moved_ns < quiet_ns);
  } while (!links_->PrepareToSleep());
  *next_ns = links_->NextTurnNs(now_ns);
  Unlock();
  return true;
}

uint32_t LinkedRank::NewRequest(RequestKind kind, int32_t peer, int32_t tag,
                                const shm::Location& where, uint64_t size_bytes, uint32_t flags) {
  const uint32_t fresh = view_.layout->request_fresh;
  uint32_t request = 1;
  while (request < fresh &&
         shm::LoadRelaxed(Slot(request).state) != static_cast<uint32_t>(RequestState::kFree)) {
    ++request;
  }
  if (request == fresh) {
    EXPECT_LT(request, kRequestLimit);
    shm::StoreRelease(view_.layout->request_fresh, fresh + 1);
  }
  RequestLayout& slot = *view_.request(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(kind);
  slot.flags = flags;
  slot.context = 0;
  slot.peer = peer;
  slot.tag = tag;
  slot.buffer = where;
  slot.size_bytes = size_bytes;
  slot.error = 0;
  slot.descriptor_flags = 0;
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kInactive));
  return request;
}

std::byte* LinkedRank::At(const shm::Location& where) {
  return where.region == 0 ? reinterpret_cast<std::byte*>(where.address)
                           : heap_.base() + where.address;
}

uint32_t LinkedRank::Send(uint32_t destination, int32_t tag, const void* data,
                          uint64_t size_bytes) {
  const engine::SendArguments send{destination, 0, tag, size_bytes};
  (void)engine_->sends().OpenLane(destination);
  bool sent = false;
  UnderLease([&] {
    if (size_bytes <= shm::kInlineBytes) {
      sent = engine_->sends().TrySendInline(send, data, *effects_);
    } else if (size_bytes <= options_.engine.eager_max_bytes) {
      const uint32_t cell = engine_->sends().TryTakeCell(destination);
      if (cell != shm::kNoCell) {
        std::memcpy(engine_->sends().CellBytes(destination, cell), data, size_bytes);
        sent = engine_->sends().TrySendCell(send, cell, *effects_);
      }
    }
  });
  return sent ? 0 : SendFrom(destination, tag, Private(data), size_bytes);
}

uint32_t LinkedRank::SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                              uint64_t size_bytes, uint32_t flags) {
  (void)engine_->sends().OpenLane(destination);
  const uint32_t request = NewRequest(RequestKind::kSend, static_cast<int32_t>(destination), tag,
                                      where, size_bytes, flags);
  RequestLayout& slot = *view_.request(request);
  slot.descriptor_kind = static_cast<uint8_t>(DescriptorKind::kRts);
  if (size_bytes <= shm::kInlineBytes && (flags & shm::kRequestSynchronous) == 0) {
    slot.descriptor_kind = static_cast<uint8_t>(DescriptorKind::kEager);
    if (size_bytes != 0) {
      std::memcpy(slot.payload, At(where), size_bytes);
    }
  }
  UnderLease([&] { engine_->sends().StartSend(request, *effects_); });
  return request;
}

uint32_t LinkedRank::Receive(int32_t source, int32_t tag, const shm::Location& where,
                             uint64_t size_bytes) {
  const uint32_t request = NewRequest(RequestKind::kReceive, source, tag, where, size_bytes, 0);
  UnderLease(
      [&] { EXPECT_EQ(engine_->receives().StartReceive(request, *effects_), ErrorCode::kOk); });
  return request;
}

bool LinkedRank::Cancel(uint32_t request) {
  bool cancelled = false;
  UnderLease([&] { cancelled = engine_->Cancel(request, *effects_); });
  return cancelled;
}

bool LinkedRank::Probe(int32_t source, int32_t tag, engine::ProbeResult* result) {
  ErrorCode code = ErrorCode::kOk;
  UnderLease([&] { code = engine_->receives().Probe({0, source, tag}, result); });
  return code == ErrorCode::kOk;
}

void LinkedRank::FinishLanded(RequestLayout& slot) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  shm::LaneConsumer lane(view_.inbox.lane(slot.lane));
  const bool in_cell = (slot.descriptor_flags & shm::kFlagCell) != 0;
  if (size_bytes != 0) {
    std::memcpy(At(slot.buffer), in_cell ? lane.Cell(slot.cell) : slot.payload, size_bytes);
  }
  if (in_cell) {
    lane.ReleaseCells(slot.cell, slot.message_bytes);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

bool LinkedRank::Test(uint32_t request) {
  if (request == 0) {
    return true;
  }
  RequestLayout& slot = *view_.request(request);
  switch (static_cast<RequestState>(shm::LoadAcquire(slot.state))) {
    case RequestState::kLanded:
      FinishLanded(slot);
      return true;
    case RequestState::kComplete:
      return true;
    default:
      return false;
  }
}

ErrorCode LinkedRank::Finish(uint32_t request) {
  if (request == 0) {
    return ErrorCode::kOk;
  }
  RequestLayout& slot = *view_.request(request);
  EXPECT_TRUE(Test(request)) << "rank " << rank() << ", request " << request;
  const auto error = static_cast<ErrorCode>(shm::LoadRelaxed(slot.error));
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kFree));
  return error;
}

}  // namespace ferry::client
