#include "mpi/partitioned/prequest_builder.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "include/ferry/ferry.h"
#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

static_assert(MPIX_DEVICE_ERR_ARGUMENT == FERRY_ERR_ARGUMENT);
static_assert(MPIX_DEVICE_ERR_VERSION == FERRY_ERR_VERSION);
static_assert(MPIX_DEVICE_ERR_PEER_DIED == FERRY_ERR_PEER_DIED);
static_assert(MPIX_DEVICE_ERR_DAEMON_DIED == FERRY_ERR_DAEMON_DIED);
static_assert(MPIX_DEVICE_ERR_NOT_FOUND == FERRY_ERR_NOT_FOUND);
static_assert(MPIX_DEVICE_ERR_REQUEST == FERRY_ERR_REQUEST);
// All languages of kernels use these layouts.
static_assert(sizeof(MPIX_Prequest_object) == 384 && offsetof(MPIX_Prequest_object, round) == 256);
static_assert(sizeof(ferry_partitioned_state) == 256 && sizeof(ferry_partitioned_unit) == 64);
static_assert(sizeof(ferry_partitioned_words) == sizeof(UnitWords) &&
              offsetof(ferry_partitioned_words, taken) == offsetof(UnitWords, taken));

// The most bytes of a message that kernels on CPUs copy: of a longer one the hosts of both sides
// copy parts at the same time, beside the kernel.
constexpr uint64_t kMaxOnCpus = 512 << 10;

Failure Unsupported(std::string text) { return {MPI_ERR_UNSUPPORTED_OPERATION, std::move(text)}; }

// The abilities of a device's kernels. They are looked up once, since the driver takes long to tell
// them.
struct Powers {
  bool host_words;
  bool host_atomics;
  bool on_cpus;
  std::string name;
};

struct KnownDevices {
  std::mutex mutex;
  std::map<int, Powers> powers;
};
KnownDevices& known = *new KnownDevices();

Result<Powers> PowersOf(int device) {
  std::lock_guard lock(known.mutex);
  if (const auto found = known.powers.find(device); found != known.powers.end()) {
    return found->second;
  }
  const StatusOr<gpu::DeviceInfo> info = front_end->memory->DescribeDevice(device);
  if (!info.ok()) {
    return FailureOf(info.status());
  }
  return known.powers[device] = {info->host_words, info->host_atomics, info->on_cpus, info->name};
}

Result<Powers> CheckDevice(int device) {
  const int count = front_end->memory->DeviceCount();
  if (count == 0) {
    return Unsupported(
        "no GPU backend is in use: see the option gpu_backend (FERRY_GPU_BACKEND); \"host\" "
        "emulates devices");
  }
  if (device < 0 || device >= count) {
    return Unsupported("the device " + std::to_string(device) + " is not between 0 and " +
                       std::to_string(count - 1));
  }
  Result<Powers> powers = PowersOf(device);
  if (powers.ok() && !powers.value().host_words) {
    return Unsupported("kernels of the device " + std::to_string(device) + " (" +
                       powers.value().name + ") do not see what CPUs store while they run");
  }
  return powers;
}

// Returns true if CPUs do not reach one of the two.
bool IsByStream(const shm::Location& from, const shm::Location& to) {
  return ((from.flags | to.flags) & shm::kLocationByStream) != 0;
}

// Lets kernels of the device access the memory at `mapped`, which is `where` in a region of `peer`.
Failure LetReach(int device, uint32_t peer, const shm::Location& where, const std::byte* mapped,
                 bool is_by_stream) {
  // Only the backend knows which of this rank's memory kernels can access.
  const Status status = is_by_stream || peer == front_end->rank()
                            ? front_end->memory->LetKernelsReach(device, mapped)
                            : front_end->memory->LetDevicesReach(mapped - where.address);
  return status.ok() ? Failure()
                     : Unsupported("kernels of the device " + std::to_string(device) +
                                   " do not reach memory of rank " + std::to_string(peer) + " (" +
                                   status.ToString() + ")");
}

}  // namespace

std::vector<uint64_t> CountersAt(const PrequestPlan& plan, uint64_t round) {
  std::vector<uint64_t> counters(plan.is_send ? plan.units.count() : 0);
  for (uint32_t unit = 0; unit < counters.size(); ++unit) {
    counters[unit] = BaseOf(round, plan.units.FullOf(unit));
  }
  return counters;
}

Failure StoreOnDevice(const DeviceBlock& memory, void* to, const void* from, uint64_t size_bytes) {
  if (memory.is_by_stream) {
    return FailureOf(front_end->memory->Copy(to, from, size_bytes));
  }
  std::memcpy(to, from, size_bytes);
  return {};
}

Failure PrequestBuilder::Build(const PrequestWishes& wishes) {
  const Result<Powers> powers = CheckDevice(device_);
  FERRY_RETURN_FAILURE(powers.failure());
  if (!plan_.is_send && plan_.arrived == nullptr) {
    return Unsupported(
        "the data of this receive come to other memory first, from where MPI_Wait and MPI_Parrived "
        "of the host copy them: its buffer is private memory or its type is not dense. Take memory "
        "from MPI_Alloc_mem");
  }
  parts_.has_atomics = powers.value().host_atomics;
  parts_.on_cpus = powers.value().on_cpus;
  if (plan_.is_null) {
    parts_.way = FERRY_PARTITIONED_NOWHERE;
  } else if (plan_.is_send) {
    FERRY_RETURN_FAILURE(ChooseWay(wishes));
  }
  FERRY_RETURN_FAILURE(Allocate());
  return Fill();
}

// ---- Who moves a unit ---------------------------------------------------------------------------

Failure PrequestBuilder::ChooseWay(const PrequestWishes& wishes) {
  using Copy = PrequestWishes::Copy;
  if (plan_.is_collective) {
    return wishes.copy == Copy::kAuto || wishes.copy == Copy::kHost
               ? Failure()
               : Unsupported("hosts move the partitions of collectives that kernels ready");
  }
  const bool may_copy =
      wishes.copy == Copy::kKernel ||
      (wishes.copy == Copy::kAuto &&
       plan_.units.total_bytes() <=
           wishes.kernel_max_bytes.value_or(parts_.on_cpus ? kMaxOnCpus : UINT64_MAX));
  if (may_copy) {
    Failure by_kernel = FindKernelWay();
    if (by_kernel.ok()) {
      parts_.way = FERRY_PARTITIONED_BY_KERNEL;
      return {};
    }
    if (wishes.copy == Copy::kKernel) {
      return by_kernel;
    }
  }
  // Inside a node both sides' hosts copy at once, which is more than ferryd does.
  if (wishes.copy == Copy::kDaemon || (wishes.copy == Copy::kAuto && !plan_.is_local)) {
    Failure by_daemon = FindDaemonWay();
    if (by_daemon.ok()) {
      parts_.way = FERRY_PARTITIONED_BY_DAEMON;
      // Only ferryd moves device memory past the CPU, beside the network.
      parts_.leaves_to_waiting =
          wishes.copy == Copy::kAuto && !IsByStream(parts_.source, plan_.destination);
      return {};
    }
    if (wishes.copy == Copy::kDaemon) {
      return by_daemon;
    }
  }
  parts_.way = FERRY_PARTITIONED_BY_HOST;
  return {};
}

Failure PrequestBuilder::FindKernelWay() const {
  if (!plan_.is_local) {
    return Unsupported("kernels cannot copy to rank " + std::to_string(plan_.peer) +
                       ", which lives on another node");
  }
  if (plan_.is_packed) {
    return Unsupported("kernels cannot copy elements of a datatype that is not dense");
  }
  if (plan_.units.total_bytes() != 0) {
    if (plan_.destination_mapped == nullptr) {
      return Unsupported(
          "kernels do not reach the receive buffer, which is private memory of rank " +
          std::to_string(plan_.peer) + ": take it from MPI_Alloc_mem");
    }
    FERRY_RETURN_FAILURE(LetReach(device_, plan_.peer, plan_.destination, plan_.destination_mapped,
                                  plan_.is_destination_by_stream));
  }
  return LetReach(device_, plan_.peer, plan_.receiver_block, plan_.receiver_mapped, false);
}

Failure PrequestBuilder::FindDaemonWay() {
  const uint64_t bytes = plan_.units.total_bytes();
  if (plan_.is_packed) {
    return Unsupported("ferryd cannot copy elements of a datatype that is not dense for kernels");
  }
  if (bytes != 0) {
    parts_.source = front_end->one_sided->Locate(plan_.source, bytes);
    if (parts_.source.region == 0 || plan_.destination.region == 0) {
      return Unsupported(std::string("ferryd does not reach the ") +
                         (parts_.source.region == 0 ? "send" : "receive") +
                         " buffer, which is private memory: take it from MPI_Alloc_mem");
    }
    if (plan_.is_local && IsByStream(parts_.source, plan_.destination)) {
      return Unsupported(
          "inside a node ferryd leaves memory that only streams and kernels reach to these");
    }
  }
  StatusOr<std::shared_ptr<DeviceRing>> ring = DeviceRing::Find(device_);
  if (!ring.ok()) {
    return Unsupported("kernels would have no ring by which to ask ferryd (" +
                       ring.status().ToString() + ")");
  }
  parts_.ring = *std::move(ring);
  return {};
}

// ---- Its parts ----------------------------------------------------------------------------------

uint64_t PrequestBuilder::BytesToFill() const {
  return sizeof(MPIX_Prequest_object) +
         (plan_.is_send ? plan_.units.count() * sizeof(uint64_t) : 0);
}

Failure PrequestBuilder::Allocate() {
  const uint32_t units = plan_.is_send ? plan_.units.count() : 0;
  Result<Block> state = TakeBlock(
      sizeof(ferry_partitioned_state) + units * sizeof(ferry_partitioned_unit), Contents::kWords);
  FERRY_RETURN_FAILURE(state.failure());
  parts_.state = state.value();
  Result<DeviceBlock> memory = TakeDeviceBlock(BytesToFill(), device_);
  FERRY_RETURN_FAILURE(memory.failure());
  parts_.memory = memory.value();
  return {};
}

void PrequestBuilder::Describe(MPIX_Prequest_object* object) const {
  const auto address = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); };
  object->version = FERRY_PARTITIONED_VERSION;
  object->kind = (plan_.is_send ? FERRY_PARTITIONED_SEND : 0) |
                 (plan_.arrived != nullptr ? FERRY_PARTITIONED_RECEIVE : 0);
  object->partitions = plan_.partitions;
  object->sender_partitions = plan_.units.partitions;
  object->per_unit = plan_.units.per_unit;
  object->pieces = plan_.units.pieces;
  object->partition_bytes = plan_.units.partition_bytes;
  object->way = parts_.way;
  object->has_atomics = parts_.has_atomics ? 1 : 0;
  object->state = address(parts_.state.data);
  object->arrived = address(plan_.arrived);
  if (!plan_.is_send) {
    return;
  }
  object->source = address(plan_.source);
  object->words = address(&plan_.words.of(0));
  object->word_stride = UnitStride(plan_.units.count());
  object->cleared = address(&plan_.words.block().cleared);
  if (parts_.way == FERRY_PARTITIONED_BY_KERNEL) {
    object->destination = address(plan_.destination_mapped);
    object->arrived = address(plan_.receiver_mapped + ArrivedOffset(0));
  }
  if (parts_.way != FERRY_PARTITIONED_BY_DAEMON) {
    return;
  }
  object->ring = address(parts_.ring->address());
  std::memcpy(object->ring_words, parts_.ring->words(), sizeof(object->ring_words));
  object->ring_producers = parts_.ring->producers();
  object->peer = plan_.peer;
  object->source_region = parts_.source.region;
  object->source_offset = parts_.source.address;
  object->destination_segment = client::SegmentOf(plan_.destination);
  object->destination_offset = plan_.destination.address;
  object->arrived_segment = client::SegmentOf(plan_.receiver_block);
  object->arrived_offset = plan_.receiver_block.address + ArrivedOffset(0);
  object->leaves_to_waiting = parts_.leaves_to_waiting ? 1 : 0;
  object->state_region = parts_.state.where.region;
  object->state_offset = parts_.state.where.address;
}

// Fills the Prequest's memory by one copy.
Failure PrequestBuilder::Fill() {
  std::vector<uint64_t> image(sizeof(MPIX_Prequest_object) / sizeof(uint64_t));
  Describe(static_cast<MPIX_Prequest_object*>(static_cast<void*>(image.data())));
  const std::vector<uint64_t> first = CountersAt(plan_, plan_.round + 1);
  image.insert(image.end(), first.begin(), first.end());
  return StoreOnDevice(parts_.memory, parts_.memory.data, image.data(),
                       image.size() * sizeof(uint64_t));
}

}  // namespace ferry::mpi
