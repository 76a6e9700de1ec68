#include "client/mpi/channel/node_board.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "client/mpi/comm/agree.h"
#include "client/mpi/comm/line_to_members.h"
#include "client/mpi/runtime/process.h"
#include "shm/atomic.h"
#include "shm/fence.h"

namespace ferry::mpi {
namespace {

// A place for each takes 20 KiB, and each looks at the others', one by one.
constexpr int kMostMembers = 64;

// What goes through cells at most, where ranks cannot reach each other's memory: messages beat it
// beyond. Where they can, from which size on they do.
constexpr size_t kCellsMaxBytes = size_t{64} * 1024;
constexpr size_t kDirectMinBytes = size_t{48} * 1024;

std::vector<uint32_t> WorldRanks(const Comm& comm) {
  std::vector<uint32_t> ranks;
  for (int i = 0; i < comm.size(); ++i) {
    ranks.push_back(static_cast<uint32_t>(comm.WorldRank(i)));
  }
  return ranks;
}

struct Offer {
  shm::Location where;
  int is_there = 0;
};

struct Report {
  int is_mapped = 0;
  int reaches_all = 0;  // their private memory
};

// Boards that others still use, of which this rank has the memory. It is asked for one at a time;
// threads that make communicators at the same time only find some of them later.
class Retired {
 public:
  void Add(BoardLayout* layout, int members) { boards_.push_back({layout, members}); }
  void Sweep() {
    std::erase_if(boards_, [](const Entry& entry) {
      // Pairs with Board::Leave.
      const bool is_over =
          shm::LoadAcquire(entry.layout->left) == static_cast<uint32_t>(entry.members);
      if (is_over) {
        (void)front_end->FreeMemory(entry.layout);
      }
      return is_over;
    });
  }

 private:
  struct Entry {
    BoardLayout* layout;
    int members;
  };
  std::vector<Entry> boards_;
};

std::mutex retired_mutex;
// Not destroyed at exit: a program may leave without MPI_Finalize.
Retired& retired = *new Retired();

}  // namespace

bool NodeBoard::IsFor(const Comm& comm, const std::vector<int>& node_of) {
  return !comm.is_inter() && comm.size() > 1 && comm.size() <= kMostMembers &&
         std::all_of(node_of.begin(), node_of.end(),
                     [&](int node) { return node == node_of.front(); });
}

std::unique_ptr<NodeBoard> NodeBoard::SetUp(const Comm& comm) {
  shm::EnableLightFence();  // libferry has done so for the process, but this library asks its own
  LineToMembers line(comm.context(Traffic::kAgreement), comm.group());
  const Team team{&line, comm.rank(), comm.size()};
  std::vector<uint32_t> ranks = WorldRanks(comm);
  const size_t size_bytes = BoardBytes(comm.size());
  std::byte* own = nullptr;
  std::shared_ptr<std::byte> memory;
  Offer offer;
  if (comm.rank() == 0) {
    {
      std::lock_guard lock(retired_mutex);
      retired.Sweep();
    }
    if (StatusOr<void*> made = front_end->AllocateMemory(size_bytes, client::MemoryKind::kHost, 0);
        made.ok()) {
      own = static_cast<std::byte*>(*made);
      offer = {front_end->Locate(own, size_bytes), 1};
    }
  }
  bool agreed = Broadcast(team, &offer, sizeof(offer)).ok();
  Report report;
  if (agreed && offer.is_there != 0) {
    if (own == nullptr) {
      StatusOr<std::shared_ptr<std::byte>> mapped =
          front_end->MapPeer(ranks.front(), offer.where, size_bytes);
      if (mapped.ok()) {
        memory = std::move(*mapped);
      }
    }
    report.is_mapped = own != nullptr || memory != nullptr ? 1 : 0;
    report.reaches_all = std::all_of(ranks.begin(), ranks.end(), [](uint32_t rank) {
      return rank == front_end->rank() || front_end->IsPrivateMemoryReachable(rank);
    });
  }
  std::vector<Report> reports(ranks.size());
  agreed = agreed && GatherToAll(team, &report, sizeof(report), reports.data()).ok();
  BoardLimits limits{.direct_min_bytes = kDirectMinBytes, .cells_max_bytes = kCellsMaxBytes};
  for (const Report& each : reports) {
    agreed = agreed && each.is_mapped != 0;
    limits.direct_min_bytes = each.reaches_all != 0 ? limits.direct_min_bytes : 0;
  }
  if (!agreed) {
    if (own != nullptr) {
      (void)front_end->FreeMemory(own);  // nobody uses it: who has mapped it has let go of it, too
    }
    return nullptr;
  }
  return std::unique_ptr<NodeBoard>(
      new NodeBoard(comm, std::move(ranks), std::move(memory), own, limits));
}

NodeBoard::NodeBoard(const Comm& comm, std::vector<uint32_t> world_ranks,
                     std::shared_ptr<std::byte> memory, std::byte* own, const BoardLimits& limits)
    : memory_(std::move(memory)),
      own_(own),
      link_(std::move(world_ranks)),
      board_(reinterpret_cast<BoardLayout*>(own != nullptr ? own : memory_.get()), &link_,
             comm.rank(), comm.size(), front_end->IsCrowded()),
      limits_(limits) {}

NodeBoard::~NodeBoard() {
  const bool was_last = board_.Leave();
  if (own_ == nullptr || front_end == nullptr) {  // otherwise the heap is gone
    return;
  }
  if (was_last) {
    (void)front_end->FreeMemory(own_);
    return;
  }
  std::lock_guard lock(retired_mutex);
  retired.Add(reinterpret_cast<BoardLayout*>(own_), board_.members());
}

}  // namespace ferry::mpi
