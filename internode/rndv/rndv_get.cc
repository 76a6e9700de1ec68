#include "internode/rndv/rndv_get.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/rndv_get_end.h"
#include "shm/atomic.h"
#include "shm/word_copy.h"

namespace ferry::progress {
namespace {

constexpr uint32_t kFragmentsUnderWay =
    4;  // of one rendezvous get, unless StagingPool::Window says otherwise
constexpr size_t kMaxAnnounced = 64;      // far more than a correct sender's window
constexpr uint32_t kReadsUnderWay = 64;   // of all: the transport's other slots are for messages
constexpr uint64_t kReadBytes = 1 << 20;  // longest read straight into a heap

// Copies what a rendezvous get needs of a transfer slot; the words that claimants contend for stay
// out of it.
shm::TransferLayout CopyDescription(const shm::TransferLayout& slot) {
  shm::TransferLayout copy{};
  copy.generation = shm::LoadAcquire(slot.generation);
  copy.source = {shm::LoadAcquire(slot.source.region), 0, shm::LoadAcquire(slot.source.address)};
  copy.destination = {shm::LoadAcquire(slot.destination.region), 0,
                      shm::LoadAcquire(slot.destination.address)};
  copy.size_bytes = shm::LoadAcquire(slot.size_bytes);
  copy.source_rank = shm::LoadAcquire(slot.source_rank);
  copy.remote_key = slot.remote_key;
  copy.remote_request = slot.remote_request;
  copy.remote_generation = slot.remote_generation;
  copy.remote_flags = slot.remote_flags;
  return copy;
}

}  // namespace

RndvGets::RndvGets(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
                   Registrations& registrations, const PrivateMemory& private_memory,
                   const PipelineRules& rules, uint64_t timeout_ns)
    : Transfers(kReadsUnderWay),
      transport_(transport),
      outbound_(outbound),
      depot_(depot),
      registrations_(registrations),
      private_memory_(private_memory),
      rules_(rules),
      timeout_ns_(timeout_ns) {}

std::optional<std::string> RndvGets::Start(ServedRank& rank, const shm::RndvGetCommand& command,
                                           uint64_t now_ns) {
  const ServedSegments& session = *rank.session;
  if (command.transfer == 0 || command.transfer >= session.request_limit) {
    return "a rendezvous get names transfer " + std::to_string(command.transfer) + " of " +
           std::to_string(session.request_limit);
  }
  if (rank.operations - rank.one_sided.rndv_gets >= session.request_limit) {
    return "more rendezvous gets than requests";
  }
  const auto* transfers = reinterpret_cast<const shm::TransferLayout*>(
      session.inbox_map.base() + shm::InboxTransferOffset(session.local_size));
  // Pairs with RndvGetCommands::Describe. Copied once, then checked: others can write to it.
  const uint32_t state = shm::LoadAcquire(transfers[command.transfer].state);
  const shm::TransferLayout transfer = CopyDescription(transfers[command.transfer]);
  if (state != static_cast<uint32_t>(shm::TransferState::kMatched) ||
      transfer.generation != command.generation) {
    return std::nullopt;  // the rank has given it up meanwhile: its source died
  }
  if (!rank.job->IsRank(transfer.source_rank) || rank.job->IsLocal(transfer.source_rank)) {
    return "the source of a rendezvous get, rank " + std::to_string(transfer.source_rank) +
           ", is not on another node";
  }
  const TransferId id = Insert(rank, now_ns);
  RndvGet& rndv_get = *transfers_.Find(id);
  rndv_get.request = command.transfer;
  rndv_get.generation = command.generation;
  rndv_get.peer = transfer.source_rank;
  rndv_get.size_bytes = transfer.size_bytes;
  ErrorCode error = FindSource(transfer, &rndv_get);
  shm::Location destination = transfer.destination;
  if (error == ErrorCode::kOk) {
    error = FindDestination(destination, &rndv_get);
  }
  if (error == ErrorCode::kUnsupported) {
    error = private_memory_.Land(rank, rndv_get.request, rndv_get.size_bytes, &destination);
    error = error == ErrorCode::kOk ? FindDestination(destination, &rndv_get) : error;
  }
  if (rndv_get.kind == Incoming::Kind::kArriving) {
    rndv_get.wants = Want::kArrival;
    if (Incoming* const arriving = rank.delivery.FindArriving(rndv_get.arriving);
        arriving != nullptr) {
      arriving->rndv_get = static_cast<uint64_t>(id) + 1;
    }
  }
  Begin(id, rndv_get, error, now_ns);
  return std::nullopt;
}

void RndvGets::Begin(TransferId id, RndvGet& rndv_get, ErrorCode error, uint64_t now_ns) {
  if (error != ErrorCode::kOk) {
    Fail(id, rndv_get, error, now_ns);
  } else if (rndv_get.size_bytes == 0) {
    EndIfDone(id, rndv_get, now_ns);
  } else {
    Step(id, rndv_get, now_ns);
  }
}

void RndvGets::StartOneSided(ServedRank& rank, uint32_t source, Incoming::Kind kind,
                             const WireRts& rts, const shm::Location& destination,
                             uint64_t size_bytes, const OneSidedEnd& end, uint64_t now_ns) {
  const TransferId id = Insert(rank, now_ns);
  ++rank.one_sided.rndv_gets;
  RndvGet& rndv_get = *transfers_.Find(id);
  rndv_get.one_sided = end;
  if (!end.is_get) {
    rndv_get.use = CountedUse(&rank.job->UseOf(source).puts_fetched, 1);
  }
  rndv_get.peer = source;
  rndv_get.request = rndv_get.send_request = rts.send_request;
  rndv_get.generation = rndv_get.send_generation = rts.send_generation;
  rndv_get.kind = kind;
  rndv_get.key = rts.key;
  rndv_get.remote_address = rts.address;
  rndv_get.size_bytes = size_bytes;
  Begin(id, rndv_get, FindDestination(destination, &rndv_get), now_ns);
}

bool RndvGets::FetchesPutInto(const Job* job, uint32_t peer, MemoryRange memory) {
  bool any = false;
  transfers_.ForEach([&](TransferId, const RndvGet& rndv_get) {
    const bool is_put = rndv_get.one_sided && !rndv_get.one_sided->is_get;
    const auto begin =
        rndv_get.mapped != nullptr ? reinterpret_cast<uint64_t>(rndv_get.mapped) : rndv_get.address;
    any |= is_put && rndv_get.job == job && rndv_get.peer == peer && begin < memory.end &&
           memory.begin < begin + rndv_get.size_bytes;
  });
  return any;
}

// Uses the daemon's own note of the RTS: of the rank's words only its number counts.
ErrorCode RndvGets::FindSource(const shm::TransferLayout& transfer, RndvGet* rndv_get) {
  Job& job = *rndv_get->job;
  Delivery& delivery = rndv_get->rank->delivery;
  const IncomingId id{transfer.remote_key};
  const Incoming* incoming = delivery.Find(id);
  const bool known = incoming != nullptr && incoming->source == rndv_get->peer &&
                     rndv_get->size_bytes <= incoming->size_bytes;
  if (known && incoming->kind == Incoming::Kind::kParked) {
    rndv_get->kind = incoming->kind;
    rndv_get->parked = delivery.TakeParked(id);  // as below
    return ErrorCode::kOk;
  }
  if (Incoming* const arriving = known ? delivery.FindArriving(id) : nullptr; arriving != nullptr) {
    if (arriving->rndv_get != 0) {
      return ErrorCode::kInvalidRequest;  // as below
    }
    rndv_get->kind = arriving->kind;
    rndv_get->arriving = id;
    return ErrorCode::kOk;
  }
  const ErrorCode state = rndv_get->rank->StateOf(rndv_get->peer);
  const ErrorCode ended = state == ErrorCode::kNotFound ? ErrorCode::kPeerDied : state;
  if (!known && ended == ErrorCode::kOk) {
    return job.RouteTo(rndv_get->peer).was_cut ? ErrorCode::kLinkDown : ErrorCode::kInvalidRequest;
  }
  if (!known) {
    return ended;
  }
  rndv_get->kind = incoming->kind;
  rndv_get->send_request = incoming->send_request;
  rndv_get->send_generation = incoming->send_generation;
  rndv_get->remote_address = incoming->address;
  rndv_get->key = incoming->key;
  delivery.Forget(id);  // one rendezvous get for each RTS
  if (ended != ErrorCode::kOk) {
    return ended;
  }
  const Link* link = job.RouteTo(rndv_get->peer).link;
  return link == nullptr ? ErrorCode::kNodeUnreachable : link->failure;
}

ErrorCode RndvGets::FindDestination(shm::Location where, RndvGet* rndv_get) const {
  if (const ErrorCode code =
          private_memory_.Locate(*rndv_get->rank, rndv_get->size_bytes, NamedBy::kRank, &where);
      code != ErrorCode::kOk) {
    return code;
  }
  if (where.region == 0) {
    rndv_get->mapped = private_memory_.Reach(*rndv_get->rank, where.address, rndv_get->size_bytes,
                                             transport::Access::kLocal, &rndv_get->reached);
    if (rndv_get->mapped == nullptr && private_memory_.MayKeep(rndv_get->size_bytes)) {
      rndv_get->mapped = reinterpret_cast<std::byte*>(where.address);
      rndv_get->is_kept = true;  // once it is claimed
    }
    return rndv_get->mapped != nullptr ? ErrorCode::kOk : LieInPrivate(where.address, rndv_get);
  }
  ServedRegion* const region = rndv_get->rank->FindRegion(where, rndv_get->size_bytes);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  if (!region->memory.by_stream) {
    return LieIn(region, where.address, rndv_get);
  }
  const bool may_be_read =
      rndv_get->kind == Incoming::Kind::kHeap || rndv_get->kind == Incoming::Kind::kPrivate;
  if (!region->memory.is_staged || !may_be_read || region->memory.at_nic == nullptr) {
    return LieStaged(region, where.address, rndv_get);
  }
  rndv_get->mapped = region->memory.at_nic + where.address;  // once it is claimed
  rndv_get->is_direct = true;
  UseRegion(region, rndv_get);
  return ErrorCode::kOk;
}

ErrorCode RndvGets::LieStaged(ServedRegion* region, uint64_t offset, RndvGet* rndv_get) const {
  rndv_get->plan = rules_.Plan(rndv_get->size_bytes, rules_.blocks_to_device);
  return LieIn(region, offset, rndv_get);
}

// ---- Pushed messages ---------------------------------------------------------------------------

bool RndvGets::TakePlace(ServedRank& rank, IncomingId id, uint64_t now_ns, Place* place) {
  const Incoming* const incoming = rank.delivery.FindArriving(id);
  if (incoming == nullptr || incoming->rndv_get == 0) {
    return false;
  }
  const TransferId transfer{incoming->rndv_get - 1};
  RndvGet* const rndv_get = transfers_.Find(transfer);
  if (rndv_get == nullptr || rndv_get->stopped || rndv_get->mapped == nullptr ||
      rndv_get->is_direct) {
    return false;
  }
  rank.delivery.Forget(id);
  RndvGetFragment& fragment = InsertFragment(transfer, *rndv_get, now_ns);
  fragment.size_bytes = rndv_get->size_bytes;
  rndv_get->wants = Want::kNothing;
  rndv_get->begun_bytes = rndv_get->size_bytes;
  ++rndv_get->under_way;
  *place = {rndv_get->mapped, rndv_get->size_bytes, fragment.self};
  return true;
}

void RndvGets::OnPlaced(FragmentId id, ErrorCode code, uint64_t now_ns) {
  RndvGetFragment& fragment = *fragments_.Find(id);
  TracePiece(*transfers_.Find(fragment.transfer), fragment, TraceKind::kRead, code);
  EndFragment(fragment, code, now_ns);
}

void RndvGets::OnArrived(ServedRank& rank, IncomingId id, ErrorCode code, uint64_t now_ns) {
  const Incoming* const incoming = rank.delivery.FindArriving(id);
  if (incoming == nullptr) {
    return;
  }
  const uint64_t asked = incoming->rndv_get;
  if (code == ErrorCode::kOk && asked == 0) {
    return rank.delivery.Park(id);
  }
  RndvGet* const rndv_get = asked == 0 ? nullptr : transfers_.Find(TransferId{asked - 1});
  if (rndv_get == nullptr || rndv_get->stopped || code != ErrorCode::kOk) {
    rank.delivery.Forget(id);
    if (rndv_get != nullptr && !rndv_get->stopped) {
      Fail(TransferId{asked - 1}, *rndv_get, code, now_ns);
    }
    return;
  }
  rndv_get->kind = Incoming::Kind::kParked;
  rndv_get->parked = rank.delivery.TakeParked(id);
  rndv_get->wants = Want::kNothing;
  Step(TransferId{asked - 1}, *rndv_get, now_ns);
}

// Device memory that the NIC does not take goes by a stage.
ErrorCode RndvGets::HoldRegion(RndvGet& rndv_get, uint64_t now_ns) {
  ClaimableRegion& memory = rndv_get.region->memory;
  const auto offset = static_cast<uint64_t>(rndv_get.mapped - memory.begin());
  if (!rndv_get.is_direct) {
    return registrations_.Hold(memory, offset, rndv_get.size_bytes, UseFor::kTransfer, now_ns,
                               &rndv_get.claim);
  }
  const ErrorCode code = registrations_.HoldDevice(memory, offset, rndv_get.size_bytes,
                                                   UseFor::kTransfer, now_ns, &rndv_get.claim);
  if (code == ErrorCode::kOk || code == ErrorCode::kWouldBlock) {
    return code;
  }
  ServedRegion* const region = std::exchange(rndv_get.region, nullptr);
  --region->users;
  rndv_get.mapped = nullptr;
  rndv_get.is_direct = false;
  return LieStaged(region, offset, &rndv_get);
}

// Prepares the first fragment. It claims the memory first, since pinning may take longer than a
// peer keeps a staged block.
ErrorCode RndvGets::Ask(TransferId id, RndvGet& rndv_get, uint64_t now_ns) {
  if (rndv_get.region != nullptr && rndv_get.mapped != nullptr &&
      rndv_get.kind != Incoming::Kind::kParked) {
    const ErrorCode code = HoldRegion(rndv_get, now_ns);
    if (code != ErrorCode::kOk) {
      rndv_get.wants = code == ErrorCode::kWouldBlock ? Want::kMemory : Want::kNothing;
      return code;
    }
  }
  if (rndv_get.is_kept && rndv_get.kind != Incoming::Kind::kParked) {
    const auto address = reinterpret_cast<uint64_t>(rndv_get.mapped);
    ErrorCode code = private_memory_.Keep(*rndv_get.rank, address, rndv_get.size_bytes,
                                          UseFor::kTransfer, now_ns, &rndv_get.claim);
    if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
      rndv_get.mapped = nullptr;
      rndv_get.is_kept = false;
      code = LieInPrivate(address, &rndv_get);
    }
    if (code != ErrorCode::kOk) {
      rndv_get.wants = code == ErrorCode::kWouldBlock ? Want::kMemory : Want::kNothing;
      return code;
    }
  }
  rndv_get.asked = true;
  if (rndv_get.region != nullptr && rndv_get.region->memory.by_stream) {
    depot_.CountDevice(rndv_get.is_direct);
  }
  if (rndv_get.kind == Incoming::Kind::kPrivate) {
    const WireRndvGet wire{
        static_cast<uint64_t>(id), rndv_get.send_request,
        rndv_get.send_generation,  rndv_get.size_bytes,
        LongestBlock(rndv_get),    rndv_get.device_region != 0 ? rules_.blocks_to_device : 0};
    outbound_.Post(*rndv_get.job, PacketKind::kRndvGet, rndv_get.here, rndv_get.peer, wire, now_ns);
  }
  return ErrorCode::kOk;
}

// The longest block that the sender's daemon may stage: the block is read in one fragment.
uint32_t RndvGets::LongestBlock(const RndvGet& rndv_get) {
  const uint64_t longest = rndv_get.stage == nullptr ? UINT32_MAX : rndv_get.stage->block_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(longest, UINT32_MAX));
}

void RndvGets::OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block,
                            uint64_t now_ns) {
  const TransferId id{block.rndv_get};
  RndvGet* rndv_get = transfers_.Find(id);
  if (rndv_get == nullptr || rndv_get->rank != &rank || rndv_get->peer != source ||
      rndv_get->kind != Incoming::Kind::kPrivate || rndv_get->stopped) {
    return;  // the rendezvous get has failed meanwhile
  }
  rndv_get->heard_ns = now_ns;
  if (block.error != 0) {
    Fail(id, *rndv_get, static_cast<ErrorCode>(block.error), now_ns);
    return;
  }
  if (block.size_bytes == 0 || block.size_bytes > LongestBlock(*rndv_get) ||
      block.offset > rndv_get->size_bytes ||
      block.size_bytes > rndv_get->size_bytes - block.offset ||
      rndv_get->announced.size() >= kMaxAnnounced) {
    Fail(id, *rndv_get, ErrorCode::kCorrupt, now_ns);
    return;
  }
  rndv_get->announced.push_back(block);
  rndv_get->announcing = std::max(
      rndv_get->announcing, rndv_get->reading + static_cast<uint32_t>(rndv_get->announced.size()));
  Step(id, *rndv_get, now_ns);
}

// ---- Fragments ----------------------------------------------------------------------------------

bool RndvGets::HasNextFragment(const RndvGet& rndv_get) {
  return rndv_get.kind == Incoming::Kind::kPrivate ? !rndv_get.announced.empty()
                                                   : rndv_get.begun_bytes < rndv_get.size_bytes;
}

// A sender's daemon that announces more than usual has given this message a larger share there.
bool RndvGets::MayBegin(const RndvGet& rndv_get) {
  return (!rndv_get.asked || HasNextFragment(rndv_get)) &&
         rndv_get.under_way < Window(rndv_get, std::max(kFragmentsUnderWay, rndv_get.announcing));
}

SlotFlow& RndvGets::FlowOf(const RndvGet& rndv_get) {
  NodeUse& node = rndv_get.job->UseOf(rndv_get.peer);
  return rndv_get.kind == Incoming::Kind::kParked ? node.parked : node.reads;
}

void RndvGets::Drop(Job& job) {
  for (NodeUse& node : job.uses) {
    slots_.Forget(node.reads);
    slots_.Forget(node.parked);
  }
}

void RndvGets::PlanFragment(const RndvGet& rndv_get, RndvGetFragment* fragment) {
  if (rndv_get.kind == Incoming::Kind::kPrivate) {
    const WireBlock& block = rndv_get.announced.front();
    fragment->offset = block.offset;
    fragment->size_bytes = block.size_bytes;
    fragment->remote_address = block.address;
    fragment->key = block.key;
    fragment->remote_block = block.block;
    fragment->owes_block = true;
    return;
  }
  const engine::Block next =
      NextRange(rndv_get, rndv_get.stage == nullptr ? kReadBytes : rndv_get.stage->block_bytes);
  fragment->offset = next.offset_bytes;
  fragment->size_bytes = next.size_bytes;
  fragment->remote_address = rndv_get.remote_address + fragment->offset;
  fragment->key = rndv_get.key;
}

ErrorCode RndvGets::BeginFragment(TransferId id, RndvGet& rndv_get, uint64_t now_ns) {
  if (!rndv_get.asked) {
    return Ask(id, rndv_get, now_ns);
  }
  if (rndv_get.kind == Incoming::Kind::kParked) {
    return BeginParked(id, rndv_get, now_ns);
  }
  if (!slots_.MayTake(FlowOf(rndv_get))) {
    return ErrorCode::kWouldBlock;
  }
  StagingBlock* block = nullptr;
  if (rndv_get.stage != nullptr) {
    if (const ErrorCode code = TakeBlock(depot_, rndv_get, &block); code != ErrorCode::kOk) {
      return code;
    }
  }
  RndvGetFragment& fragment = InsertFragment(id, rndv_get, now_ns);
  PlanFragment(rndv_get, &fragment);
  fragment.block = block;
  transport::RmaRequest read = RmaOf(rndv_get, fragment);
  read.remote_address = fragment.remote_address;
  read.key = fragment.key;
  read.context = reinterpret_cast<uint64_t>(&fragment) | kReadContext;
  const ErrorCode code = transport_.Read(read, now_ns);
  if (code != ErrorCode::kOk) {
    fragments_.Erase(fragment.self);
    if (block != nullptr) {
      rndv_get.stage->pool->Give(block);
    }
    return code;
  }
  slots_.Take(FlowOf(rndv_get));
  ++rndv_get.reading;
  ++rndv_get.under_way;
  rndv_get.begun_bytes += fragment.size_bytes;
  if (block != nullptr) {
    rndv_get.stage->pool->Charge(*block, fragment.size_bytes);
  }
  if (rndv_get.kind == Incoming::Kind::kPrivate) {
    rndv_get.announced.erase(rndv_get.announced.begin());
  }
  return ErrorCode::kOk;
}

ErrorCode RndvGets::BeginParked(TransferId id, RndvGet& rndv_get, uint64_t now_ns) {
  if (rndv_get.mapped != nullptr) {
    shm::CopyWords(rndv_get.mapped, rndv_get.parked.data(), rndv_get.size_bytes);
    rndv_get.begun_bytes = rndv_get.done_bytes = rndv_get.size_bytes;
    return ErrorCode::kOk;
  }
  if (const ErrorCode code = depot_.Provide(*rndv_get.stage); code != ErrorCode::kOk) {
    return code;
  }
  std::byte* cell = rndv_get.stage->pool->TakeCell();
  if (cell == nullptr) {
    return ErrorCode::kWouldBlock;
  }
  RndvGetFragment& fragment = InsertFragment(id, rndv_get, now_ns);
  fragment.offset = rndv_get.begun_bytes;
  fragment.size_bytes =
      std::min(rndv_get.size_bytes - rndv_get.begun_bytes, uint64_t{shm::kCellBytes});
  std::memcpy(cell, rndv_get.parked.data() + fragment.offset, fragment.size_bytes);
  ++rndv_get.under_way;
  rndv_get.begun_bytes += fragment.size_bytes;
  SubmitCopy(CopyTask::Direction::kToProcess, rndv_get, &fragment, cell);
  return ErrorCode::kOk;
}

void RndvGets::OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  RndvGetFragment& fragment = *reinterpret_cast<RndvGetFragment*>(context & ~kReadContext);
  RndvGet& rndv_get = *transfers_.Find(fragment.transfer);
  slots_.Give(FlowOf(rndv_get));
  --rndv_get.reading;
  rndv_get.heard_ns = now_ns;
  TracePiece(rndv_get, fragment, TraceKind::kRead, code);
  if (fragment.block == nullptr) {
    EndFragment(fragment, code, now_ns);
  } else if (code != ErrorCode::kOk) {
    rndv_get.stage->pool->GiveTainted(fragment.block);
    EndFragment(fragment, code, now_ns);
  } else if (rndv_get.stopped) {
    rndv_get.stage->pool->Give(fragment.block);
    EndFragment(fragment, rndv_get.error, now_ns);
  } else {
    SubmitCopy(CopyTask::Direction::kToProcess, rndv_get, &fragment, fragment.block->base);
    GiveBack(rndv_get, &fragment, now_ns);  // it may be used again while ours is copied
  }
}

void RndvGets::OnCopied(const CopyTask& task, uint64_t now_ns) {
  auto& fragment = static_cast<RndvGetFragment&>(*static_cast<Fragment*>(task.context));
  const RndvGet& rndv_get = *transfers_.Find(fragment.transfer);
  TraceCopy(rndv_get, fragment, TraceKind::kCopyOut, task);
  if (!task.abandoned) {
    rndv_get.stage->pool->Return(task.local);
  }
  EndFragment(fragment, task.result, now_ns);
}

// The sender's block.
void RndvGets::GiveBack(const RndvGet& rndv_get, RndvGetFragment* fragment, uint64_t now_ns) {
  if (std::exchange(fragment->owes_block, false)) {
    outbound_.Post(*rndv_get.job, PacketKind::kBlockDone, rndv_get.here, rndv_get.peer,
                   WireBlockDone{fragment->remote_block}, now_ns);
  }
}

void RndvGets::EndFragment(RndvGetFragment& fragment, ErrorCode error, uint64_t now_ns) {
  if (const RndvGet& rndv_get = *transfers_.Find(fragment.transfer);
      error == ErrorCode::kOk && !rndv_get.stopped) {
    GiveBack(rndv_get, &fragment, now_ns);
  }
  Transfers::EndFragment(fragment, error, now_ns);
}

// ---- Going on ----------------------------------------------------------------------------------

void RndvGets::Advance(uint64_t now_ns) {
  if (seen_changes_ != registrations_.changes()) {
    seen_changes_ = registrations_.changes();
    ResumeAll(wants_memory_, now_ns);  // none of them waits for memory that another one gets
  }
  ResumeForSlots(now_ns);
  for (const auto& pool : depot_.pools()) {
    Resume(*pool, now_ns);
  }
}

void RndvGets::CheckDeadlines(uint64_t now_ns) {
  ResumeAll(wants_memory_, now_ns);
  transfers_.ForEach([&](TransferId id, RndvGet& rndv_get) {
    // A rendezvous get that waits for the network or for us ends by itself.
    if (rndv_get.under_way == 0 && rndv_get.wants == Want::kNothing &&
        now_ns - rndv_get.heard_ns > timeout_ns_) {
      Fail(id, rndv_get, ErrorCode::kTimeout, now_ns);
    }
  });
}

void RndvGets::FailWith(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [job, source](const RndvGet& rndv_get) {
    return rndv_get.job == job && rndv_get.peer == source &&
           rndv_get.kind != Incoming::Kind::kParked &&
           rndv_get.kind != Incoming::Kind::kArriving;  // Landings ends these, with the link
  });
}

void RndvGets::FailBetween(const ServedRank* rank, uint32_t source, ErrorCode error,
                           uint64_t now_ns) {
  FailIf(error, now_ns, [rank, source](const RndvGet& rndv_get) {
    return rndv_get.rank == rank && rndv_get.peer == source &&
           rndv_get.kind != Incoming::Kind::kParked &&
           rndv_get.kind != Incoming::Kind::kArriving;  // as above
  });
}

void RndvGets::OnEnd(const RndvGet& rndv_get, ServedRank* rank, uint64_t now_ns) {
  const ErrorCode error = rndv_get.one_sided ? on_one_sided_end(rndv_get, *rank) : rndv_get.error;
  if (rndv_get.send_request != 0) {
    const WireResult result{rndv_get.send_request, rndv_get.send_generation,
                            static_cast<int32_t>(error), 0};
    outbound_.Post(*rndv_get.job, PacketKind::kSendDone, rndv_get.here, rndv_get.peer, result,
                   now_ns);
  }
  if (rndv_get.one_sided) {
    --rank->one_sided.rndv_gets;
    return;
  }
  const bool is_staged = rndv_get.stage != nullptr || rndv_get.kind == Incoming::Kind::kPrivate;
  rank->Answer(shm::DescriptorKind::kRndvGetDone, rndv_get.peer, rndv_get.request,
               rndv_get.generation, error, is_staged ? engine::kRndvGetStaged : 0);
}

const char* RndvGets::NameOfWant(const RndvGet& rndv_get) {
  if (rndv_get.stopped) {
    return "the end of what it has begun (it has failed)";
  }
  return rndv_get.claim.waiting() ? rndv_get.claim.wants() : progress::NameOfWant(rndv_get.wants);
}

}  // namespace ferry::progress
