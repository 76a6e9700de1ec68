// Prequests (ferry/mpi/mpix.h): partitioned requests for kernels. Ferry's own, beside the standard.
#include "mpi/partitioned/prequest.h"

#include <mpix.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "common/number_text.h"
#include "mpi/api/call.h"
#include "mpi/base/connection.h"
#include "mpi/init/fail.h"
#include "mpi/p2p/partitioned.h"

namespace ferry::mpi {
namespace {

constexpr char kCopyKey[] = "ferry_partitioned_copy";
constexpr char kMaxKey[] = "ferry_partitioned_kernel_max";

// Those that the program has not freed.
struct Prequests {
  std::mutex mutex;
  std::map<MPIX_Prequest, std::shared_ptr<Prequest>> all;
};
Prequests& prequests = *new Prequests();

Failure WrongValue(const char* key, const std::string& value, const char* allowed) {
  return {MPI_ERR_INFO_VALUE, std::string(key) + " is \"" + value + "\"; it must be " + allowed};
}

Failure ReadWishes(const Info& info, PrequestWishes* wishes) {
  if (const auto copy = info.Find(kCopyKey); copy.has_value()) {
    using Copy = PrequestWishes::Copy;
    const std::map<std::string, Copy> copies = {{"auto", Copy::kAuto},
                                                {"kernel", Copy::kKernel},
                                                {"host", Copy::kHost},
                                                {"daemon", Copy::kDaemon}};
    const auto found = copies.find(*copy);
    if (found == copies.end()) {
      return WrongValue(kCopyKey, *copy, "auto, kernel, host or daemon");
    }
    wishes->copy = found->second;
  }
  if (const auto text = info.Find(kMaxKey); text.has_value()) {
    wishes->kernel_max_bytes = NumberIn<uint64_t>(*text);
    if (!wishes->kernel_max_bytes) {
      return WrongValue(kMaxKey, *text, "a number of bytes");
    }
  }
  return {};
}

// `is_in_round`: the request is active.
Result<std::shared_ptr<Prequest>> Make(PrequestSource& source, const PrequestWishes& wishes,
                                       int device, bool is_in_round) {
  PrequestPlan plan;
  FERRY_RETURN_FAILURE(source.Describe(&plan));
  const uint64_t round = plan.round;
  plan.round -= is_in_round ? 1 : 0;
  Result<std::shared_ptr<Prequest>> made = Prequest::Make(plan, wishes, device);
  FERRY_RETURN_FAILURE(made.failure());
  if (is_in_round) {
    FERRY_RETURN_FAILURE(made.value()->Begin(round));
    made.value()->NoteReadiedByHost();  // it may have readied some
  }
  source.set_prequest(made.value());
  if (is_in_round) {
    source.LookAfterKernels();
  }
  return made;
}

Result<PrequestSource*> SourceOf(Request& request) {
  Partitioned* const partitioned = request.partitioned();
  PrequestSource* const source = partitioned == nullptr ? nullptr : partitioned->prequest_source();
  if (source == nullptr) {
    return Failure{MPI_ERR_REQUEST, "the request is no partitioned one"};
  }
  if (request.is_enqueued()) {
    return Failure{MPI_ERR_REQUEST, "the request is on a queue: wait for it first"};
  }
  return source;
}

Failure Create(Request& request, const Info* info, int device, MPIX_Prequest* prequest) {
  const Result<PrequestSource*> source = SourceOf(request);
  FERRY_RETURN_FAILURE(source.failure());
  if (request.is_active()) {
    return {MPI_ERR_REQUEST, "the request is active: complete it first"};
  }
  PrequestWishes wishes;
  if (info != nullptr) {
    FERRY_RETURN_FAILURE(ReadWishes(*info, &wishes));
  }
  std::shared_ptr<Prequest> its = source.value()->prequest();
  if (its == nullptr) {
    Result<std::shared_ptr<Prequest>> made = Make(*source.value(), wishes, device, false);
    FERRY_RETURN_FAILURE(made.failure());
    its = std::move(made).value();
  } else if (its->device() != device) {
    return {MPI_ERR_UNSUPPORTED_OPERATION, "the request has a Prequest for the device " +
                                               std::to_string(its->device()) +
                                               " already, and can have none for the device " +
                                               std::to_string(device) + " meanwhile"};
  }
  its->AddUse();
  *prequest = its->address();
  std::lock_guard lock(prequests.mutex);
  prequests.all[*prequest] = its;
  return {};
}

// The request keeps it.
Failure Get(Request& request, MPIX_Prequest* prequest) {
  const Result<PrequestSource*> source = SourceOf(request);
  FERRY_RETURN_FAILURE(source.failure());
  std::shared_ptr<Prequest> its = source.value()->prequest();
  if (its == nullptr) {
    const int device = std::max(front_end->memory->DeviceOf(source.value()->memory()), 0);
    Result<std::shared_ptr<Prequest>> made = Make(*source.value(), {}, device, request.is_active());
    FERRY_RETURN_FAILURE(made.failure());
    its = std::move(made).value();
  }
  its->Keep();
  *prequest = its->address();
  return {};
}

Failure Free(MPIX_Prequest address) {
  std::shared_ptr<Prequest> freed;  // ends without the lock
  std::lock_guard lock(prequests.mutex);
  const auto found = prequests.all.find(address);
  if (found == prequests.all.end()) {
    return {MPI_ERR_ARG,
            "this is no Prequest that MPIX_Prequest_create has made for a device, or it was freed "
            "as often as it was created; one of MPIX_Prequest_create(preq, request) is freed with "
            "its request"};
  }
  if (found->second->is_active()) {
    return {MPI_ERR_REQUEST, "the Prequest's request is active: complete it first"};
  }
  if (found->second->DropUse()) {
    freed = std::move(found->second);
    prequests.all.erase(found);
  }
  return {};
}

}  // namespace

#define FERRY_MPIX __attribute__((visibility("default")))

extern "C" {

FERRY_MPIX int(MPIX_Prequest_create)(MPI_Request handle, int device, MPI_Info info,
                                     MPIX_Prequest* prequest) {
  Call call(__func__);
  call.NeedRunning();
  Request* const request = call.Find(handle);
  const Info* const hints = call.ok() ? call.FindOrNull(info) : nullptr;
  call.NeedPlace(prequest, "the address for the Prequest is null");
  FERRY_RETURN_ERROR(call.result());
  *prequest = MPIX_PREQUEST_NULL;
  return Conclude(__func__, *request, Create(*request, hints, device, prequest));
}

FERRY_MPIX int MPIX_Prequest_get(MPI_Request handle, MPIX_Prequest* prequest) {
  Call call(__func__);
  call.NeedRunning();
  Request* const request = call.Find(handle);
  call.NeedPlace(prequest, "the address for the Prequest is null");
  FERRY_RETURN_ERROR(call.result());
  *prequest = MPIX_PREQUEST_NULL;
  return Conclude(__func__, *request, Get(*request, prequest));
}

FERRY_MPIX int MPIX_Prequest_free(MPIX_Prequest* prequest) {
  Call call(__func__);
  call.NeedRunning();
  call.NeedPlace(prequest, "the address of the Prequest is null");
  (void)call.Then([&] { return Free(*prequest); });
  return call.Then([&] { *prequest = MPIX_PREQUEST_NULL; });
}

}  // extern "C"
}  // namespace ferry::mpi
