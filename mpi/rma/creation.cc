#include "mpi/rma/creation.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/number_text.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/creation.h"
#include "mpi/comm/line_to_members.h"
#include "mpi/rma/attached.h"
#include "mpi/rma/private_memory.h"

namespace ferry::mpi {

namespace {

// The words by which each member of the window tells the others about its memory.
struct Offer {
  int32_t error_class = MPI_SUCCESS;
  shm::Location control{};
  shm::Location data{};
  uint64_t size_bytes = 0;
  int64_t disp_unit = 1;
  uint64_t is_contiguous = 0;  // MPI_WIN_FLAVOR_SHARED
};

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMostAlignment = uint64_t{1} << 30;
constexpr char kAlignmentKey[] = "mpi_minimum_memory_alignment";
constexpr char kNoncontiguousKey[] = "alloc_shared_noncontig";

Failure FindAlignment(const Info* info, uint64_t* alignment) {
  const std::optional<std::string> text =
      info == nullptr ? std::nullopt : info->Find(kAlignmentKey);
  *alignment = kAlignment;
  if (!text) {
    return {};
  }
  const uint64_t wanted = NumberIn<uint64_t>(*text).value_or(0);
  if (!std::has_single_bit(wanted) || wanted > kMostAlignment) {
    return {MPI_ERR_INFO_VALUE, std::string(kAlignmentKey) + " is \"" + *text +
                                    "\"; it must be a power of two of up to 1 GiB, in bytes"};
  }
  *alignment = std::max(kAlignment, wanted);
  return {};
}

}  // namespace

class WindowMaker {
 public:
  WindowMaker(const Comm& parent, Ref<Comm> comm, const WindowWish& wish)
      : wish_(wish),
        line_(comm->context(Traffic::kAgreement), comm->group()),
        team_{&line_, parent.rank(), parent.size()},
        win_(MakeRef<Win>(std::move(comm), wish.flavor)),
        offers_(static_cast<size_t>(parent.size())) {}

  Result<Ref<Win>> Make(void** base) {
    Failure own = wish_.refused;
    if (wish_.flavor == MPI_WIN_FLAVOR_SHARED) {
      FERRY_RETURN_FAILURE(AgreeOnShares(own.ok() ? CheckNode() : own));
    }
    own = own.ok() ? OfferOwn() : own;
    FERRY_RETURN_FAILURE(Agree(own));
    own = Open();
    // No process uses the window before every other has mapped it, or if one could not.
    FERRY_RETURN_FAILURE(Agree(own));
    if (wish_.info != nullptr) {
      win_->TakeHints(wish_.info->entries());
    }
    *base = win_->base_;
    return std::move(win_);
  }

 private:
  // Tells the others this process's offer and failure. Returns the same failure on all processes.
  Failure Agree(const Failure& own) {
    own_.error_class = own.error_class;
    FERRY_RETURN_FAILURE(GatherToAll(team_, &own_, sizeof(own_), offers_.data()));
    std::vector<int32_t> classes;
    for (const Offer& offer : offers_) {
      classes.push_back(offer.error_class);
    }
    return FirstFailure(classes, win_->rank(), own);
  }

  // ---- Shared windows ----
  //
  // Unless all members say that it need not be, their memory is one piece, in their order, which
  // rank 0 allocates.
  Failure CheckNode() const {
    for (int rank = 0; rank < win_->size(); ++rank) {
      if (front_end->NodeOf(static_cast<uint32_t>(win_->comm().WorldRank(rank))) !=
          front_end->NodeOf(front_end->rank())) {
        return {MPI_ERR_RMA_SHARED, "rank " + std::to_string(rank) +
                                        " of the communicator is of another node: make one of the "
                                        "ranks of a node, by MPI_Comm_split_type"};
      }
    }
    return {};
  }

  Failure AgreeOnShares(const Failure& own) {
    const auto hint = wish_.info == nullptr ? std::nullopt : wish_.info->Find(kNoncontiguousKey);
    own_.size_bytes = static_cast<uint64_t>(wish_.size_bytes);
    own_.is_contiguous = hint == "true" ? 0 : 1;
    FERRY_RETURN_FAILURE(Agree(own));
    for (const Offer& offer : offers_) {
      is_contiguous_ = is_contiguous_ || offer.is_contiguous != 0;
      shares_.push_back(total_bytes_);
      if (__builtin_add_overflow(total_bytes_, offer.size_bytes, &total_bytes_)) {
        return {MPI_ERR_SIZE, "the sizes of all ranks are more than 64 bits hold"};
      }
    }
    return {};
  }

  // ---- The memory that this process exposes ----

  Failure OfferOwn() {
    const uint64_t bytes = win_->control().size_bytes();
    FERRY_RETURN_FAILURE(win_->control_memory_.Allocate(bytes, kAlignment));
    std::memset(win_->control_memory_.base(), 0, bytes);
    elements_ = new (win_->control_memory_.base() + ControlLayout::elements()) shm::ElementLock;
    own_.control = front_end->one_sided->Locate(win_->control_memory_.base(), bytes);
    own_.size_bytes = static_cast<uint64_t>(wish_.size_bytes);
    own_.disp_unit = wish_.disp_unit;
    win_->size_attribute_ = wish_.size_bytes;
    win_->disp_unit_attribute_ = static_cast<int>(std::min<int64_t>(wish_.disp_unit, INT_MAX));
    win_->base_ = static_cast<std::byte*>(wish_.base);
    if (wish_.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
      win_->attached_ = std::make_unique<AttachedMemory>(
          reinterpret_cast<AttachedHead*>(win_->control_memory_.base() + ControlLayout::attached()),
          *elements_);
    } else if (is_contiguous_ && win_->rank() == 0) {
      FERRY_RETURN_FAILURE(AllocateOwn(total_bytes_));
      own_.data = front_end->one_sided->Locate(win_->base_, std::max<uint64_t>(total_bytes_, 1));
    } else if (!is_contiguous_ && wish_.flavor != MPI_WIN_FLAVOR_CREATE) {
      FERRY_RETURN_FAILURE(AllocateOwn(own_.size_bytes));
    }
    if (!is_contiguous_) {
      Locate();
    }
    return {};
  }

  Failure AllocateOwn(uint64_t size_bytes) {
    uint64_t alignment = 0;
    FERRY_RETURN_FAILURE(FindAlignment(wish_.info, &alignment));
    FERRY_RETURN_FAILURE(win_->data_memory_.Allocate(size_bytes, alignment));
    win_->base_ = win_->data_memory_.base();
    return {};
  }

  void Locate() {
    if (own_.size_bytes == 0) {
      return;
    }
    own_.data = front_end->one_sided->Locate(win_->base_, own_.size_bytes);
    if (own_.data.region == 0 && (own_.data.flags & shm::kLocationByStream) == 0) {
      win_->exposure_ = Exposure(win_->base_, own_.size_bytes, *elements_);
      own_.data.region = win_->exposure_.segment();
    }
  }

  // ---- The memory that the members expose ----

  Failure Open() {
    for (int rank = 0; rank < win_->size(); ++rank) {
      FERRY_RETURN_FAILURE(OpenTarget(rank));
    }
    if (is_contiguous_) {
      FERRY_RETURN_FAILURE(OpenShares());
    }
    const Reach reach = win_->own().memory.reach;
    const bool may_be_asked =
        reach == Reach::kPrivate || reach == Reach::kByStream || win_->is_dynamic();
    if (may_be_asked && win_->size() > 1) {
      win_->service_ = std::make_unique<PrivateService>(*win_);
    }
    return {};
  }

  Failure OpenTarget(int rank) {
    const Offer& offer = offers_[static_cast<size_t>(rank)];
    WindowTarget& target = win_->target(rank);
    target.rank = static_cast<uint32_t>(win_->comm().WorldRank(rank));
    target.is_local = front_end->NodeOf(target.rank) == front_end->NodeOf(front_end->rank());
    target.disp_unit = offer.disp_unit;
    if (!target.is_local) {
      win_->waits_from_ = client::WordWait::From::kNetwork;
    }
    const bool is_own = rank == win_->rank();
    FERRY_RETURN_FAILURE(target.control.Open(win_->words(), target.rank, target.is_local,
                                             is_own ? win_->control_memory_.base() : nullptr,
                                             offer.control, win_->control().size_bytes()));
    Exposed& memory = target.memory;
    if (offer.size_bytes != 0 && !is_contiguous_) {
      memory = ExposedAt(target.rank, offer.data, offer.size_bytes);
    }
    memory.size_bytes = offer.size_bytes;
    if (is_own && !memory.is_by_stream() && offer.size_bytes != 0) {
      memory.mapped = win_->base_;
    } else if (target.is_local && memory.reach == Reach::kShared) {
      return Map(target.rank, offer.data, offer.size_bytes, &memory.mapping, &memory.mapped);
    }
    return {};
  }

  static Failure Map(uint32_t rank, const shm::Location& where, uint64_t size_bytes,
                     std::shared_ptr<std::byte>* mapping, std::byte** mapped) {
    StatusOr<std::shared_ptr<std::byte>> made = front_end->peers->MapPeer(rank, where, size_bytes);
    if (!made.ok()) {
      return FailureOf(made.status());
    }
    *mapping = *std::move(made);
    *mapped = mapping->get();
    return {};
  }

  Failure OpenShares() {
    const shm::Location whole = offers_.front().data;
    std::shared_ptr<std::byte> mapping;
    std::byte* base = win_->base_;
    if (win_->rank() != 0) {
      FERRY_RETURN_FAILURE(
          Map(win_->target(0).rank, whole, std::max<uint64_t>(total_bytes_, 1), &mapping, &base));
    }
    for (int rank = 0; rank < win_->size(); ++rank) {
      Exposed& memory = win_->target(rank).memory;
      const uint64_t begin = shares_[static_cast<size_t>(rank)];
      memory.reach = memory.size_bytes == 0 ? Reach::kNone : Reach::kShared;
      memory.place = {win_->target(0).rank, client::SegmentOf(whole), whole.address + begin};
      memory.mapping = mapping;
      memory.mapped = base + begin;
    }
    win_->base_ = win_->own().memory.mapped;
    return {};
  }

  const WindowWish& wish_;
  LineToMembers line_;
  const Team team_;
  Ref<Win> win_;
  std::vector<Offer> offers_;  // by rank
  Offer own_;
  shm::ElementLock* elements_ = nullptr;  // in the own control block
  bool is_contiguous_ = false;            // a shared window's memory is one piece
  std::vector<uint64_t> shares_;          // by rank: where its part begins there
  uint64_t total_bytes_ = 0;
};

Result<Ref<Win>> MakeWindow(const Comm& comm, const WindowWish& wish, void** base) {
  Result<Ref<Comm>> own = Duplicate(comm);
  if (!own.ok()) {
    return own.failure();
  }
  own.value()->SetErrorHandler(Ref<ErrorHandler>::Share(error_handlers.Find(MPI_ERRORS_ARE_FATAL)));
  return WindowMaker(comm, std::move(own).value(), wish).Make(base);
}

Failure EndWindow(Win& win) {
  FERRY_RETURN_FAILURE(win.epochs().CheckFree());
  return win.End();
}

}  // namespace ferry::mpi
