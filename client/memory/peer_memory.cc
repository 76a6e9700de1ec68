#include "client/memory/peer_memory.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "shm/word_copy.h"

namespace ferry::client {
namespace {

constexpr size_t kMaxMapped = 256;   // regions of peers
constexpr ptrdiff_t kMostInUse = 2;  // of them at a time, the two that were used last
constexpr size_t kLooksAtMapped = 4;
constexpr engine::Reach kNoSuchMemory{.error = ErrorCode::kInvalidBuffer};

// Interprets the daemon's refusal to hand out a region. If the daemon is silent or too busy, others
// may still know the region, or the watcher will tell what happened.
engine::Reach WithoutRegion(ErrorCode refusal) {
  switch (refusal) {
    case ErrorCode::kInvalidBuffer:  // no such region
    case ErrorCode::kNotFound:       // its rank has left
    case ErrorCode::kPeerDied:
      return {.error = refusal};
    default:
      return {};
  }
}

}  // namespace

PeerMemory::PeerMemory(uint32_t own_rank, ZeroedArray<PeerProcess> peers, const Memory* memory,
                       AttachConnection* attach)
    : own_rank_(own_rank), peers_(std::move(peers)), memory_(memory), attach_(attach) {}

// The claimed chunks that are to be read from the private memory of one process.
class PeerMemory::PrivateReads {
 public:
  static bool Is(const engine::ClaimedChunk& claimed) {
    return claimed.size_bytes != 0 && claimed.source.mapped == nullptr &&
           claimed.destination.mapped != nullptr && !claimed.destination.by_stream &&
           !claimed.destination.read_only;
  }
  ~PrivateReads() { Do(); }

  void Add(Chunk* chunk, const engine::ClaimedChunk& claimed) {
    if (count_ == kMostProcessCopies || (count_ != 0 && pid_ != claimed.source.pid)) {
      Do();
    }
    pid_ = claimed.source.pid;
    chunks_[count_] = {chunk, claimed.chunks};
    reads_[count_] = {claimed.source.address, claimed.destination.mapped, claimed.size_bytes};
    ++count_;
  }

 private:
  // A read that fails ends its own transfer only.
  void Do() {
    for (size_t begun = 0; begun < count_;) {
      size_t done = 0;
      const ErrorCode error =
          ReadProcessMemory(pid_, std::span(reads_.data() + begun, count_ - begun), &done);
      for (const size_t end = begun + done; begun < end; ++begun) {
        End(begun, ErrorCode::kOk);
      }
      if (error != ErrorCode::kOk) {
        End(begun++, error);
      }
    }
    count_ = 0;
  }
  void End(size_t i, ErrorCode error) {
    Chunk& chunk = *chunks_[i].chunk;
    chunk.result = engine::EndChunk(*chunk.slot, chunk.generation, chunks_[i].chunks, error);
  }

  struct Claimed {
    Chunk* chunk;
    uint32_t chunks;
  };
  std::array<Claimed, kMostProcessCopies> chunks_;
  std::array<ProcessCopy, kMostProcessCopies> reads_;
  size_t count_ = 0;
  pid_t pid_ = 0;
};

void PeerMemory::CopyChunks(std::span<Chunk> chunks,
                            const std::function<void(const Chunk&, Status)>& found) {
  // One copying thread per process: the job's other ranks are the ones to share the work with.
  std::lock_guard lock(mutex_);
  PrivateReads reads;
  for (Chunk& chunk : chunks) {
    engine::ClaimedChunk claimed;
    chunk.result = engine::ClaimChunk(*chunk.slot, chunk.generation, *this, &chunk.own, &claimed);
    if (chunk.result == engine::ChunkResult::kCopied) {
      if (PrivateReads::Is(claimed)) {
        reads.Add(&chunk, claimed);
      } else {
        if (claimed.size_bytes != 0) {
          claimed.error = Copy(claimed.destination, claimed.source, claimed.size_bytes);
        }
        chunk.result =
            engine::EndChunk(*chunk.slot, chunk.generation, claimed.chunks, claimed.error);
      }
    }
    if (!found_.ok()) [[unlikely]] {
      found(chunk, TakeFound());
    }
  }
}

Status PeerMemory::CopyWithPeer(uint32_t rank, const shm::Location& where, const engine::Reach& own,
                                uint64_t size_bytes, Direction direction) {
  std::lock_guard lock(mutex_);
  const engine::Reach peer = Resolve(rank, where, size_bytes);
  ErrorCode error = peer.error;
  if (error == ErrorCode::kOk && !peer.ok()) {
    error = ErrorCode::kUnsupported;
  } else if (error == ErrorCode::kOk) {
    error = direction == Direction::kFromPeer ? Copy(own, peer, size_bytes)
                                              : Copy(peer, own, size_bytes);
  }
  Status found = TakeFound();
  return found.code() == error ? found : Status(error, "");
}

ErrorCode PeerMemory::CopyPrivate(uint32_t rank, std::span<const ProcessCopy> copies,
                                  Direction direction) const {
  const PeerProcess& peer = peers_[rank];
  size_t done = 0;
  if (!peer.memory_reachable) {
    return ErrorCode::kUnsupported;
  }
  return direction == Direction::kFromPeer ? ReadProcessMemory(peer.pid, copies, &done)
                                           : WriteProcessMemory(peer.pid, copies, &done);
}

bool PeerMemory::IsAtHand(uint32_t rank, const shm::Location& where) {
  if (where.region == 0) {
    return IsPrivateMemoryReachable(rank);
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const auto known = lock.owns_lock() ? index_.find({rank, where.region}) : index_.end();
  return known != index_.end() && known->second->device == nullptr;
}

StatusOr<PeerMemory::ForGood> PeerMemory::MapForGood(uint32_t rank, const shm::Location& where,
                                                     uint64_t size_bytes) {
  const std::string name =
      "region " + std::to_string(where.region) + " of rank " + std::to_string(rank);
  if (rank == own_rank_) {
    const engine::Reach own = ResolveRegion(rank, where, size_bytes);
    if (own.error != ErrorCode::kOk) {
      return Status(own.error, name + " is not there");
    }
    return ForGood{std::shared_ptr<std::byte>(std::shared_ptr<void>(), own.mapped),
                   memory_->regions().ById(where.region).size_bytes, own.by_stream};
  }
  std::lock_guard lock(mutex_);
  std::weak_ptr<Mapped>& known = for_good_[{rank, where.region}];
  std::shared_ptr<Mapped> mapped = known.lock();
  if (mapped == nullptr) {
    StatusOr<AttachAnswer> answer = attach_->PeerRegion(rank, where.region);
    FERRY_RETURN_IF_ERROR(answer.status());
    StatusOr<Mapped> made = MakeMapped({rank, where.region}, *answer);
    FERRY_RETURN_IF_ERROR(made.status());
    if (made->read_only) {
      return Status(ErrorCode::kInvalidBuffer, name + " is lent, to be read only");
    }
    mapped = std::make_shared<Mapped>(std::move(*made));
    known = mapped;
    std::erase_if(for_good_, [](const auto& other) { return other.second.expired(); });
  }
  if (where.address > mapped->size_bytes || size_bytes > mapped->size_bytes - where.address) {
    return Status(ErrorCode::kInvalidBuffer, "the range runs past the end of " + name);
  }
  return ForGood{std::shared_ptr<std::byte>(mapped, mapped->base + where.address),
                 mapped->size_bytes, mapped->device != nullptr};
}

Status PeerMemory::LetDevicesReach(Mapped* mapped) const {
  gpu::GpuBackend* const backend = memory_->backend();
  if (backend == nullptr) {
    return {ErrorCode::kUnsupported, "no GPU backend is in use"};
  }
  if (mapped->device == nullptr && mapped->registration == nullptr) {
    FERRY_RETURN_IF_ERROR(backend->RegisterHostMemory(mapped->base, mapped->size_bytes));
    mapped->registration = std::shared_ptr<void>(
        mapped->base, [backend](void* base) { (void)backend->UnregisterHostMemory(base); });
  }
  return {};
}

void PeerMemory::LetDevicesReach(uint32_t rank, const shm::Location& where) {
  std::lock_guard lock(mutex_);
  const auto known = for_good_.find({rank, where.region});
  if (known != for_good_.end()) {
    if (const std::shared_ptr<Mapped> mapped = known->second.lock(); mapped != nullptr) {
      (void)LetDevicesReach(mapped.get());
    }
  }
}

Status PeerMemory::LetDevicesReach(const std::byte* base) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, known] : for_good_) {
    const std::shared_ptr<Mapped> mapped = known.lock();
    if (mapped != nullptr && mapped->base == base) {
      return LetDevicesReach(mapped.get());
    }
  }
  return {ErrorCode::kInvalidBuffer, "no memory of a peer is mapped at this address"};
}

engine::Reach PeerMemory::Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) {
  if (rank >= peers_.size()) {
    return kNoSuchMemory;
  }
  if (where.region != 0) {
    return ResolveRegion(rank, where, size_bytes);
  }
  if (rank == own_rank_) {
    auto* const own = reinterpret_cast<std::byte*>(where.address);
    return {.mapped = own, .by_stream = memory_->IsByStream(own)};
  }
  const PeerProcess& peer = peers_[rank];
  return peer.memory_reachable ? engine::Reach{nullptr, peer.pid, where.address} : engine::Reach{};
}

engine::Reach PeerMemory::ResolveRegion(uint32_t rank, const shm::Location& where,
                                        uint64_t size_bytes) {
  engine::Reach reach;
  uint64_t region_bytes = 0;
  if (rank == own_rank_) {
    const OwnRegion own = memory_->regions().ById(where.region);
    if (!own) {
      return kNoSuchMemory;
    }
    reach.mapped = own.base;
    reach.by_stream = own.by_stream;
    reach.read_only = own.lent;
    region_bytes = own.size_bytes;
  } else {
    ErrorCode error = ErrorCode::kOk;
    const Mapped* mapped = Map({rank, where.region}, &error);
    if (mapped == nullptr && error == ErrorCode::kOk) {
      return {.never = true};
    }
    if (mapped == nullptr) {
      return WithoutRegion(error);
    }
    reach.mapped = mapped->base;
    reach.by_stream = mapped->device != nullptr;
    reach.read_only = mapped->read_only;
    region_bytes = mapped->size_bytes;
  }
  if (where.address > region_bytes || size_bytes > region_bytes - where.address) {
    return kNoSuchMemory;
  }
  reach.mapped += where.address;
  return reach;
}

// At most two regions are in use at a time, and both are at the front of the list, so those dropped
// at its end are never in use.
const PeerMemory::Mapped* PeerMemory::Map(const Key& key, ErrorCode* error) {
  if (const auto known = index_.find(key); known != index_.end()) {
    mapped_.splice(mapped_.begin(), mapped_, known->second);
    return &mapped_.front();
  }
  StatusOr<AttachAnswer> answer = attach_->PeerRegion(key.rank, key.region);
  if (!answer.ok()) {
    *error = answer.status().code();
    return nullptr;
  }
  StatusOr<Mapped> made = MakeMapped(key, *answer);
  if (!made.ok()) {
    *error = ErrorCode::kOk;
    found_ = {ErrorCode::kUnsupported,
              "neither end of the message reaches the memory of the other; here, memory of rank " +
                  std::to_string(key.rank) + ": " + made.status().message()};
    return nullptr;
  }
  mapped_.push_front(std::move(*made));
  index_[key] = mapped_.begin();
  if (mapped_.size() > kMaxMapped) {
    index_.erase(mapped_.back().key);
    mapped_.pop_back();
  }
  if (mapped_.front().device != nullptr) {
    DropFreed(key.rank);
  }
  return &mapped_.front();
}

// The driver frees device memory that its rank has freed only once no process maps it any more. A
// rank that goes on to allocate and free makes this one map new memory each time, so this is when
// it looks.
void PeerMemory::DropFreed(uint32_t rank) {
  size_t looks = 0;
  for (auto next = std::prev(mapped_.end());
       std::distance(mapped_.begin(), next) >= kMostInUse && looks < kLooksAtMapped;) {
    const auto looked_at = next--;
    if (looked_at->key.rank != rank || looked_at->device == nullptr) {
      continue;
    }
    ++looks;
    if (IsWithdrawn(rank, looked_at->key.region)) {
      index_.erase(looked_at->key);
      mapped_.erase(looked_at);
    }
  }
}

bool PeerMemory::IsWithdrawn(uint32_t rank, uint32_t region) const {
  return WithoutRegion(attach_->PeerRegion(rank, region).status().code()).error != ErrorCode::kOk;
}

void PeerMemory::Forget(uint32_t rank) {
  std::lock_guard lock(mutex_);
  for (auto next = mapped_.begin(); next != mapped_.end();) {
    const auto looked_at = next++;
    if (looked_at->key.rank == rank) {
      index_.erase(looked_at->key);
      mapped_.erase(looked_at);
    }
  }
}

StatusOr<PeerMemory::Mapped> PeerMemory::MakeMapped(const Key& key, AttachAnswer& answer) const {
  Mapped made;
  made.key = key;
  const bool is_by_stream = (answer.reply.flags & attach::kRegionByStream) != 0;
  if (answer.descriptors.empty() && !is_by_stream) {
    return Status(ErrorCode::kCorrupt, "ferryd's answer has no descriptor of the region");
  }
  if (!is_by_stream) {
    made.read_only = (answer.reply.flags & attach::kRegionLent) != 0;
    StatusOr<shm::Mapping> mapping =
        shm::MapPart(answer.descriptors[0].get(), answer.size_bytes,
                     made.read_only ? shm::Access::kRead : shm::Access::kReadWrite);
    FERRY_RETURN_IF_ERROR(mapping.status());
    made.mapping = std::move(*mapping);
    made.base = made.mapping.base();
    made.size_bytes = made.mapping.size_bytes();
    return made;
  }
  if (memory_->backend() == nullptr) {
    return Status(ErrorCode::kUnsupported, "a peer's device memory, and no GPU backend here");
  }
  gpu::IpcHandle handle;
  if (!answer.descriptors.empty()) {
    handle.fd = std::move(answer.descriptors[0]);
  }
  std::memcpy(handle.opaque.data(), answer.reply.handle, handle.opaque.size());
  handle.size_bytes = answer.size_bytes;
  handle.allocation_id = answer.reply.allocation_id;
  handle.device = static_cast<int32_t>(answer.reply.device);
  auto imported = gpu::ImportedMemory::Import(*memory_->backend(), handle);
  FERRY_RETURN_IF_ERROR(imported.status());
  made.device = std::move(*imported);
  made.base = made.device->base();
  made.size_bytes = made.device->size_bytes();
  return made;
}

ErrorCode PeerMemory::Copy(const engine::Reach& destination, const engine::Reach& source,
                           uint64_t size_bytes) {
  if (destination.read_only) [[unlikely]] {
    return ErrorCode::kInvalidBuffer;  // no receive names lent memory
  }
  if (destination.by_stream || source.by_stream) {
    gpu::CopyStreams& streams = *memory_->streams();
    const gpu::DeviceEnds ends =
        memory_->EndsOf(destination.mapped, destination.by_stream, source.mapped, source.by_stream);
    const Status status = destination.mapped == nullptr
                              ? streams.Write(destination.pid, destination.address, source.mapped,
                                              size_bytes, ends.source_device)
                          : source.mapped == nullptr
                              ? streams.Read(destination.mapped, source.pid, source.address,
                                             size_bytes, ends.destination_device)
                              : streams.Copy(destination.mapped, source.mapped, size_bytes, ends);
    if (!status.ok()) {
      found_ = status;
    }
    return status.code();
  }
  if (destination.mapped != nullptr && source.mapped != nullptr) {
    shm::CopyWords(destination.mapped, source.mapped, size_bytes);
    return ErrorCode::kOk;
  }
  if (destination.mapped != nullptr) {
    return ReadProcessMemory(source.pid, source.address, destination.mapped, size_bytes);
  }
  if (source.mapped != nullptr) {
    return WriteProcessMemory(destination.pid, destination.address, source.mapped, size_bytes);
  }
  return ErrorCode::kUnsupported;  // a rank is always one of the two sides
}

}  // namespace ferry::client
