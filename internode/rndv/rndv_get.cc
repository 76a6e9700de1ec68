#include "internode/rndv/rndv_get.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/rndv_get_end.h"
#include "shm/atomic.h"
#include "shm/word_copy.h"

namespace ferry::progress {
namespace {

constexpr uint32_t kPiecesUnderWay = 4;   // of one pull, unless StagingPool::Window says otherwise
constexpr size_t kMaxAnnounced = 64;      // far more than a correct sender's window
constexpr uint32_t kReadsUnderWay = 64;   // of all: the transport's other slots are for messages
constexpr uint64_t kReadBytes = 1 << 20;  // longest read straight into a heap

// Copies what a pull needs of a transfer slot; the words that claimants contend for stay out of it.
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

Pulls::Pulls(transport::Transport& transport, Outbound& outbound, StagingDepot& depot,
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

std::optional<std::string> Pulls::Start(ServedRank& rank, const shm::PullCommand& command,
                                        uint64_t now_ns) {
  const ServedSegments& session = *rank.session;
  if (command.transfer == 0 || command.transfer >= session.request_limit) {
    return "a pull names transfer " + std::to_string(command.transfer) + " of " +
           std::to_string(session.request_limit);
  }
  if (rank.operations - rank.one_sided.pulls >= session.request_limit) {
    return "more pulls than requests";
  }
  const auto* transfers = reinterpret_cast<const shm::TransferLayout*>(
      session.inbox_map.base() + shm::InboxTransferOffset(session.local_size));
  // Pairs with RankEngine::DescribePull. Copied once, then checked: others can write to it.
  const uint32_t state = shm::LoadAcquire(transfers[command.transfer].state);
  const shm::TransferLayout transfer = CopyDescription(transfers[command.transfer]);
  if (state != static_cast<uint32_t>(shm::TransferState::kMatched) ||
      transfer.generation != command.generation) {
    return std::nullopt;  // the rank has given it up meanwhile: its source died
  }
  if (!rank.job->IsRank(transfer.source_rank) || rank.job->IsLocal(transfer.source_rank)) {
    return "a pull's source, rank " + std::to_string(transfer.source_rank) +
           ", is not on another node";
  }
  const TransferId id = Insert(rank, now_ns);
  Pull& pull = *transfers_.Find(id);
  pull.request = command.transfer;
  pull.generation = command.generation;
  pull.peer = transfer.source_rank;
  pull.size_bytes = transfer.size_bytes;
  ErrorCode error = FindSource(transfer, &pull);
  if (error == ErrorCode::kOk) {
    error = FindDestination(transfer.destination, &pull);
  }
  if (pull.kind == Incoming::Kind::kArriving) {
    pull.wants = Want::kArrival;
    if (Incoming* const arriving = rank.delivery.FindArriving(pull.arriving); arriving != nullptr) {
      arriving->pull = static_cast<uint64_t>(id) + 1;
    }
  }
  Begin(id, pull, error, now_ns);
  return std::nullopt;
}

void Pulls::Begin(TransferId id, Pull& pull, ErrorCode error, uint64_t now_ns) {
  if (error != ErrorCode::kOk) {
    Fail(id, pull, error, now_ns);
  } else if (pull.size_bytes == 0) {
    EndIfDone(id, pull, now_ns);
  } else {
    Step(id, pull, now_ns);
  }
}

void Pulls::StartOneSided(ServedRank& rank, uint32_t source, Incoming::Kind kind,
                          const WireRts& offer, const shm::Location& destination,
                          uint64_t size_bytes, const OneSidedEnd& end, uint64_t now_ns) {
  const TransferId id = Insert(rank, now_ns);
  ++rank.one_sided.pulls;
  Pull& pull = *transfers_.Find(id);
  pull.one_sided = end;
  if (!end.is_get) {
    pull.use = CountedUse(&rank.job->UseOf(source).puts_fetched, 1);
  }
  pull.peer = source;
  pull.request = pull.send_request = offer.send_request;
  pull.generation = pull.send_generation = offer.send_generation;
  pull.kind = kind;
  pull.key = offer.key;
  pull.remote_address = offer.address;
  pull.size_bytes = size_bytes;
  Begin(id, pull, FindDestination(destination, &pull), now_ns);
}

// Uses the daemon's own note of the offer: of the rank's words only its number counts.
ErrorCode Pulls::FindSource(const shm::TransferLayout& transfer, Pull* pull) {
  Job& job = *pull->job;
  Delivery& delivery = pull->rank->delivery;
  const IncomingId id{transfer.remote_key};
  const Incoming* incoming = delivery.Find(id);
  const bool known = incoming != nullptr && incoming->source == pull->peer &&
                     pull->size_bytes <= incoming->size_bytes;
  if (known && incoming->kind == Incoming::Kind::kParked) {
    pull->kind = incoming->kind;
    pull->parked = delivery.TakeParked(id);  // as below
    return ErrorCode::kOk;
  }
  if (Incoming* const arriving = known ? delivery.FindArriving(id) : nullptr; arriving != nullptr) {
    if (arriving->pull != 0) {
      return ErrorCode::kInvalidRequest;  // as below
    }
    pull->kind = arriving->kind;
    pull->arriving = id;
    return ErrorCode::kOk;
  }
  const ErrorCode state = pull->rank->StateOf(pull->peer);
  const ErrorCode ended = state == ErrorCode::kNotFound ? ErrorCode::kPeerDied : state;
  if (!known && ended == ErrorCode::kOk) {
    return job.RouteTo(pull->peer).was_cut ? ErrorCode::kLinkDown : ErrorCode::kInvalidRequest;
  }
  if (!known) {
    return ended;
  }
  pull->kind = incoming->kind;
  pull->send_request = incoming->send_request;
  pull->send_generation = incoming->send_generation;
  pull->remote_address = incoming->address;
  pull->key = incoming->key;
  delivery.Forget(id);  // one pull for each offer
  if (ended != ErrorCode::kOk) {
    return ended;
  }
  const Link* link = job.RouteTo(pull->peer).link;
  return link == nullptr ? ErrorCode::kNodeUnreachable : link->failure;
}

ErrorCode Pulls::FindDestination(shm::Location where, Pull* pull) const {
  if (const ErrorCode code =
          private_memory_.Locate(*pull->rank, pull->size_bytes, NamedBy::kRank, &where);
      code != ErrorCode::kOk) {
    return code;
  }
  if (where.region == 0) {
    pull->mapped = private_memory_.Reach(*pull->rank, where.address, pull->size_bytes,
                                         transport::Access::kLocal, &pull->reached);
    if (pull->mapped == nullptr && private_memory_.MayKeep(pull->size_bytes)) {
      pull->mapped = reinterpret_cast<std::byte*>(where.address);
      pull->is_kept = true;  // once it is claimed
    }
    return pull->mapped != nullptr ? ErrorCode::kOk : LieInPrivate(where.address, pull);
  }
  ServedRegion* const region = pull->rank->FindRegion(where, pull->size_bytes);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  if (!region->memory.by_stream) {
    return LieIn(region, where.address, pull);
  }
  const bool may_be_read =
      pull->kind == Incoming::Kind::kHeap || pull->kind == Incoming::Kind::kPrivate;
  if (!region->memory.is_staged || !may_be_read || region->memory.at_nic == nullptr) {
    return LieStaged(region, where.address, pull);
  }
  pull->mapped = region->memory.at_nic + where.address;  // once it is claimed
  pull->is_direct = true;
  UseRegion(region, pull);
  return ErrorCode::kOk;
}

ErrorCode Pulls::LieStaged(ServedRegion* region, uint64_t offset, Pull* pull) const {
  pull->plan = rules_.Plan(pull->size_bytes, rules_.blocks_to_device);
  return LieIn(region, offset, pull);
}

// ---- Pushed messages ---------------------------------------------------------------------------

bool Pulls::TakePlace(ServedRank& rank, IncomingId id, uint64_t now_ns, Place* place) {
  const Incoming* const incoming = rank.delivery.FindArriving(id);
  if (incoming == nullptr || incoming->pull == 0) {
    return false;
  }
  const TransferId transfer{incoming->pull - 1};
  Pull* const pull = transfers_.Find(transfer);
  if (pull == nullptr || pull->stopped || pull->mapped == nullptr || pull->is_direct) {
    return false;
  }
  rank.delivery.Forget(id);
  PullPiece& piece = InsertPiece(transfer, *pull, now_ns);
  piece.size_bytes = pull->size_bytes;
  pull->wants = Want::kNothing;
  pull->begun_bytes = pull->size_bytes;
  ++pull->under_way;
  *place = {pull->mapped, pull->size_bytes, piece.self};
  return true;
}

void Pulls::OnPlaced(PieceId id, ErrorCode code, uint64_t now_ns) {
  PullPiece& piece = *pieces_.Find(id);
  TracePiece(*transfers_.Find(piece.transfer), piece, TraceKind::kRead, code);
  EndPiece(piece, code, now_ns);
}

void Pulls::OnArrived(ServedRank& rank, IncomingId id, ErrorCode code, uint64_t now_ns) {
  const Incoming* const incoming = rank.delivery.FindArriving(id);
  if (incoming == nullptr) {
    return;
  }
  const uint64_t asked = incoming->pull;
  if (code == ErrorCode::kOk && asked == 0) {
    return rank.delivery.Park(id);
  }
  Pull* const pull = asked == 0 ? nullptr : transfers_.Find(TransferId{asked - 1});
  if (pull == nullptr || pull->stopped || code != ErrorCode::kOk) {
    rank.delivery.Forget(id);
    if (pull != nullptr && !pull->stopped) {
      Fail(TransferId{asked - 1}, *pull, code, now_ns);
    }
    return;
  }
  pull->kind = Incoming::Kind::kParked;
  pull->parked = rank.delivery.TakeParked(id);
  pull->wants = Want::kNothing;
  Step(TransferId{asked - 1}, *pull, now_ns);
}

// Device memory that the NIC does not take goes by a stage.
ErrorCode Pulls::HoldRegion(Pull& pull, uint64_t now_ns) {
  ClaimableRegion& memory = pull.region->memory;
  const auto offset = static_cast<uint64_t>(pull.mapped - memory.begin());
  if (!pull.is_direct) {
    return registrations_.Hold(memory, offset, pull.size_bytes, UseFor::kTransfer, now_ns,
                               &pull.claim);
  }
  const ErrorCode code = registrations_.HoldDevice(memory, offset, pull.size_bytes,
                                                   UseFor::kTransfer, now_ns, &pull.claim);
  if (code == ErrorCode::kOk || code == ErrorCode::kWouldBlock) {
    return code;
  }
  ServedRegion* const region = std::exchange(pull.region, nullptr);
  --region->users;
  pull.mapped = nullptr;
  pull.is_direct = false;
  return LieStaged(region, offset, &pull);
}

// Does what comes before the first piece. It claims the memory first: a peer does not keep what it
// has staged for us for as long as pinning may take.
ErrorCode Pulls::Ask(TransferId id, Pull& pull, uint64_t now_ns) {
  if (pull.region != nullptr && pull.mapped != nullptr && pull.kind != Incoming::Kind::kParked) {
    const ErrorCode code = HoldRegion(pull, now_ns);
    if (code != ErrorCode::kOk) {
      pull.wants = code == ErrorCode::kWouldBlock ? Want::kMemory : Want::kNothing;
      return code;
    }
  }
  if (pull.is_kept && pull.kind != Incoming::Kind::kParked) {
    const auto address = reinterpret_cast<uint64_t>(pull.mapped);
    ErrorCode code = private_memory_.Keep(*pull.rank, address, pull.size_bytes, UseFor::kTransfer,
                                          now_ns, &pull.claim);
    if (code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
      pull.mapped = nullptr;
      pull.is_kept = false;
      code = LieInPrivate(address, &pull);
    }
    if (code != ErrorCode::kOk) {
      pull.wants = code == ErrorCode::kWouldBlock ? Want::kMemory : Want::kNothing;
      return code;
    }
  }
  pull.asked = true;
  if (pull.region != nullptr && pull.region->memory.by_stream) {
    depot_.CountDevice(pull.is_direct);
  }
  if (pull.kind == Incoming::Kind::kPrivate) {
    const WirePull wire{
        static_cast<uint64_t>(id), pull.send_request,
        pull.send_generation,      pull.size_bytes,
        LongestBlock(pull),        pull.device_region != 0 ? rules_.blocks_to_device : 0};
    outbound_.Post(*pull.job, PacketKind::kPull, pull.here, pull.peer, wire, now_ns);
  }
  return ErrorCode::kOk;
}

// That the sender's daemon may stage: it is read in one piece.
uint32_t Pulls::LongestBlock(const Pull& pull) {
  const uint64_t longest = pull.stage == nullptr ? UINT32_MAX : pull.stage->block_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(longest, UINT32_MAX));
}

void Pulls::OnBlockReady(ServedRank& rank, uint32_t source, const WireBlock& block,
                         uint64_t now_ns) {
  const TransferId id{block.pull};
  Pull* pull = transfers_.Find(id);
  if (pull == nullptr || pull->rank != &rank || pull->peer != source ||
      pull->kind != Incoming::Kind::kPrivate || pull->stopped) {
    return;  // the pull has failed meanwhile
  }
  pull->heard_ns = now_ns;
  if (block.error != 0) {
    Fail(id, *pull, static_cast<ErrorCode>(block.error), now_ns);
    return;
  }
  if (block.size_bytes == 0 || block.size_bytes > LongestBlock(*pull) ||
      block.offset > pull->size_bytes || block.size_bytes > pull->size_bytes - block.offset ||
      pull->announced.size() >= kMaxAnnounced) {
    Fail(id, *pull, ErrorCode::kCorrupt, now_ns);
    return;
  }
  pull->announced.push_back(block);
  pull->announcing =
      std::max(pull->announcing, pull->reading + static_cast<uint32_t>(pull->announced.size()));
  Step(id, *pull, now_ns);
}

// ---- Pieces ------------------------------------------------------------------------------------

bool Pulls::HasNextPiece(const Pull& pull) {
  return pull.kind == Incoming::Kind::kPrivate ? !pull.announced.empty()
                                               : pull.begun_bytes < pull.size_bytes;
}

// A sender's daemon that announces more than usual has given this message a larger share there.
bool Pulls::MayBegin(const Pull& pull) {
  return (!pull.asked || HasNextPiece(pull)) &&
         pull.under_way < Window(pull, std::max(kPiecesUnderWay, pull.announcing));
}

SlotFlow& Pulls::FlowOf(const Pull& pull) {
  NodeUse& node = pull.job->UseOf(pull.peer);
  return pull.kind == Incoming::Kind::kParked ? node.parked : node.reads;
}

void Pulls::Drop(Job& job) {
  for (NodeUse& node : job.nodes) {
    slots_.Forget(node.reads);
    slots_.Forget(node.parked);
  }
}

void Pulls::PlanPiece(const Pull& pull, PullPiece* piece) {
  if (pull.kind == Incoming::Kind::kPrivate) {
    const WireBlock& block = pull.announced.front();
    piece->offset = block.offset;
    piece->size_bytes = block.size_bytes;
    piece->remote_address = block.address;
    piece->key = block.key;
    piece->remote_block = block.block;
    piece->owes_block = true;
    return;
  }
  const engine::Block next =
      NextRange(pull, pull.stage == nullptr ? kReadBytes : pull.stage->block_bytes);
  piece->offset = next.offset_bytes;
  piece->size_bytes = next.size_bytes;
  piece->remote_address = pull.remote_address + piece->offset;
  piece->key = pull.key;
}

ErrorCode Pulls::BeginPiece(TransferId id, Pull& pull, uint64_t now_ns) {
  if (!pull.asked) {
    return Ask(id, pull, now_ns);
  }
  if (pull.kind == Incoming::Kind::kParked) {
    return BeginParked(id, pull, now_ns);
  }
  if (!slots_.MayTake(FlowOf(pull))) {
    return ErrorCode::kWouldBlock;
  }
  StagingBlock* block = nullptr;
  if (pull.stage != nullptr) {
    if (const ErrorCode code = TakeBlock(depot_, pull, &block); code != ErrorCode::kOk) {
      return code;
    }
  }
  PullPiece& piece = InsertPiece(id, pull, now_ns);
  PlanPiece(pull, &piece);
  piece.block = block;
  transport::RmaRequest read = RmaOf(pull, piece);
  read.remote_address = piece.remote_address;
  read.key = piece.key;
  read.context = reinterpret_cast<uint64_t>(&piece) | kReadContext;
  const ErrorCode code = transport_.Read(read, now_ns);
  if (code != ErrorCode::kOk) {
    pieces_.Erase(piece.self);
    if (block != nullptr) {
      pull.stage->pool->Give(block);
    }
    return code;
  }
  slots_.Take(FlowOf(pull));
  ++pull.reading;
  ++pull.under_way;
  pull.begun_bytes += piece.size_bytes;
  if (block != nullptr) {
    pull.stage->pool->Charge(*block, piece.size_bytes);
  }
  if (pull.kind == Incoming::Kind::kPrivate) {
    pull.announced.erase(pull.announced.begin());
  }
  return ErrorCode::kOk;
}

ErrorCode Pulls::BeginParked(TransferId id, Pull& pull, uint64_t now_ns) {
  if (pull.mapped != nullptr) {
    shm::CopyWords(pull.mapped, pull.parked.data(), pull.size_bytes);
    pull.begun_bytes = pull.done_bytes = pull.size_bytes;
    return ErrorCode::kOk;
  }
  if (const ErrorCode code = depot_.Provide(*pull.stage); code != ErrorCode::kOk) {
    return code;
  }
  std::byte* cell = pull.stage->pool->TakeCell();
  if (cell == nullptr) {
    return ErrorCode::kWouldBlock;
  }
  PullPiece& piece = InsertPiece(id, pull, now_ns);
  piece.offset = pull.begun_bytes;
  piece.size_bytes = std::min(pull.size_bytes - pull.begun_bytes, uint64_t{shm::kCellBytes});
  std::memcpy(cell, pull.parked.data() + piece.offset, piece.size_bytes);
  ++pull.under_way;
  pull.begun_bytes += piece.size_bytes;
  SubmitCopy(CopyTask::Direction::kToProcess, pull, &piece, cell);
  return ErrorCode::kOk;
}

void Pulls::OnReadComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  PullPiece& piece = *reinterpret_cast<PullPiece*>(context & ~kReadContext);
  Pull& pull = *transfers_.Find(piece.transfer);
  slots_.Give(FlowOf(pull));
  --pull.reading;
  pull.heard_ns = now_ns;
  TracePiece(pull, piece, TraceKind::kRead, code);
  if (piece.block == nullptr) {
    EndPiece(piece, code, now_ns);
  } else if (code != ErrorCode::kOk) {
    pull.stage->pool->GiveTainted(piece.block);
    EndPiece(piece, code, now_ns);
  } else if (pull.stopped) {
    pull.stage->pool->Give(piece.block);
    EndPiece(piece, pull.error, now_ns);
  } else {
    SubmitCopy(CopyTask::Direction::kToProcess, pull, &piece, piece.block->base);
    GiveBack(pull, &piece, now_ns);  // it may be used again while ours is copied
  }
}

void Pulls::OnCopied(const CopyTask& task, uint64_t now_ns) {
  auto& piece = static_cast<PullPiece&>(*static_cast<Piece*>(task.context));
  const Pull& pull = *transfers_.Find(piece.transfer);
  TraceCopy(pull, piece, TraceKind::kCopyOut, task);
  if (!task.abandoned) {
    pull.stage->pool->Return(task.local);
  }
  EndPiece(piece, task.result, now_ns);
}

// The sender's block.
void Pulls::GiveBack(const Pull& pull, PullPiece* piece, uint64_t now_ns) {
  if (std::exchange(piece->owes_block, false)) {
    outbound_.Post(*pull.job, PacketKind::kBlockDone, pull.here, pull.peer,
                   WireBlockDone{piece->remote_block}, now_ns);
  }
}

void Pulls::EndPiece(PullPiece& piece, ErrorCode error, uint64_t now_ns) {
  if (const Pull& pull = *transfers_.Find(piece.transfer);
      error == ErrorCode::kOk && !pull.stopped) {
    GiveBack(pull, &piece, now_ns);
  }
  Transfers::EndPiece(piece, error, now_ns);
}

// ---- Going on ----------------------------------------------------------------------------------

void Pulls::Advance(uint64_t now_ns) {
  if (seen_changes_ != registrations_.changes()) {
    seen_changes_ = registrations_.changes();
    ResumeAll(wants_memory_, now_ns);  // none of them waits for what another one gets
  }
  ResumeForSlots(now_ns);
  for (const auto& pool : depot_.pools()) {
    Resume(*pool, now_ns);
  }
}

void Pulls::CheckDeadlines(uint64_t now_ns) {
  ResumeAll(wants_memory_, now_ns);
  transfers_.ForEach([&](TransferId id, Pull& pull) {
    // A pull that waits for the network or for us ends by itself.
    if (pull.under_way == 0 && pull.wants == Want::kNothing &&
        now_ns - pull.heard_ns > timeout_ns_) {
      Fail(id, pull, ErrorCode::kTimeout, now_ns);
    }
  });
}

void Pulls::FailWith(const Job* job, uint32_t source, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [job, source](const Pull& pull) {
    return pull.job == job && pull.peer == source && pull.kind != Incoming::Kind::kParked &&
           pull.kind != Incoming::Kind::kArriving;  // Landings ends these, with the link
  });
}

void Pulls::FailBetween(const ServedRank* rank, uint32_t source, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [rank, source](const Pull& pull) {
    return pull.rank == rank && pull.peer == source && pull.kind != Incoming::Kind::kParked &&
           pull.kind != Incoming::Kind::kArriving;  // as above
  });
}

void Pulls::OnEnd(const Pull& pull, ServedRank* rank, uint64_t now_ns) {
  const ErrorCode error = pull.one_sided ? on_one_sided_end(pull, *rank) : pull.error;
  if (pull.send_request != 0) {
    const WireResult result{pull.send_request, pull.send_generation, static_cast<int32_t>(error),
                            0};
    outbound_.Post(*pull.job, PacketKind::kSendDone, pull.here, pull.peer, result, now_ns);
  }
  if (pull.one_sided) {
    --rank->one_sided.pulls;
    return;
  }
  const bool is_staged = pull.stage != nullptr || pull.kind == Incoming::Kind::kPrivate;
  rank->Answer(shm::DescriptorKind::kPullDone, pull.peer, pull.request, pull.generation, error,
               is_staged ? engine::kPullStaged : 0);
}

const char* Pulls::NameOfWant(const Pull& pull) {
  if (pull.stopped) {
    return "the end of what it has begun (it has failed)";
  }
  return pull.claim.waiting() ? pull.claim.wants() : progress::NameOfWant(pull.wants);
}

}  // namespace ferry::progress
