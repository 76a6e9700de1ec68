#include "client/bootstrap/pmi2_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/bootstrap/launched_task.h"
#include "client/bootstrap/pmi_wire.h"
#include "common/number_text.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr const char* kFileNames[] = {"libpmi2.so.0", "libpmi2.so"};
constexpr int kSuccess = 0;
constexpr int kAnyRank = -1;              // PMI2_ID_NULL
constexpr size_t kMostValueBytes = 1024;  // PMI2_MAX_VALLEN and PMI2_MAX_ATTRVALUE
constexpr size_t kMostJobBytes = 256;

// Never closed: it may have threads of its own, and an application that uses it too shares it.
void* OpenLibrary() {
  for (const char* name : kFileNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      return library;
    }
  }
  return nullptr;
}

std::optional<uint32_t> Number(const char* const* environment, std::string_view name) {
  const auto text = config::FindVariable(environment, name);
  return text ? NumberIn<uint32_t>(*text) : std::nullopt;
}

Status Explain(int status, const std::string& what) {
  return status == kSuccess ? Status()
                            : Status(ErrorCode::kSystem, "libpmi2 cannot " + what + ": error " +
                                                             std::to_string(status));
}

}  // namespace

struct Pmi2Library::Calls {
  int (*init)(int* spawned, int* size, int* rank, int* app) = nullptr;
  int (*finalize)() = nullptr;
  int (*job_id)(char* job, int size) = nullptr;
  int (*put)(const char* key, const char* value) = nullptr;
  int (*fence)() = nullptr;
  int (*get)(const char* job, int rank, const char* key, char* value, int size,
             int* length) = nullptr;
  int (*attribute)(const char* name, char* value, int size, int* found) = nullptr;
};

bool Pmi2Library::IsAround(const char* const* environment) {
  const bool is_rank = (Number(environment, "PMI_RANK") && Number(environment, "PMI_SIZE")) ||
                       Number(environment, "PALS_RANKID");
  return is_rank && !IsInFluxInstance(environment) && OpenLibrary() != nullptr;
}

Pmi2Library::Pmi2Library() : calls_(std::make_unique<Calls>()) {}

Pmi2Library::~Pmi2Library() {
  if (entered_) {
    calls_->finalize();
  }
}

StatusOr<std::unique_ptr<Pmi2Library>> Pmi2Library::Open(const char* const* environment) {
  std::unique_ptr<Pmi2Library> library(new Pmi2Library());
  FERRY_RETURN_IF_ERROR(library->Load());
  FERRY_RETURN_IF_ERROR(library->Enter(environment));
  return library;
}

Status Pmi2Library::Load() {
  void* const library = OpenLibrary();
  if (library == nullptr) {
    return {ErrorCode::kNotFound, std::string(kFileNames[0]) + " cannot be opened: " + dlerror()};
  }
  Status status;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr && status.ok()) {
      status = {ErrorCode::kUnsupported, std::string("libpmi2 has no ") + name};
    }
  };
  find("PMI2_Init", &calls_->init);
  find("PMI2_Finalize", &calls_->finalize);
  find("PMI2_Job_GetId", &calls_->job_id);
  find("PMI2_KVS_Put", &calls_->put);
  find("PMI2_KVS_Fence", &calls_->fence);
  find("PMI2_KVS_Get", &calls_->get);
  find("PMI2_Info_GetJobAttr", &calls_->attribute);
  return status;
}

Status Pmi2Library::Enter(const char* const* environment) {
  int spawned = 0;
  int size = 0;
  int rank = 0;
  int app = 0;
  FERRY_RETURN_IF_ERROR(
      Explain(calls_->init(&spawned, &size, &rank, &app), "reach this process's launcher"));
  entered_ = true;
  rank_ = static_cast<uint32_t>(rank);
  size_ = static_cast<uint32_t>(size);
  const uint32_t told_rank =
      Number(environment, "PMI_RANK").value_or(Number(environment, "PALS_RANKID").value_or(rank_));
  const uint32_t told_size =
      Number(environment, "PMI_SIZE")
          .value_or(std::max(Number(environment, "PALS_LOCAL_SIZE").value_or(1), size_));
  if (rank < 0 || rank >= size || rank_ != told_rank || size_ != told_size) {
    return {ErrorCode::kCorrupt,
            "libpmi2 says that this process is rank " + std::to_string(rank) + " of " +
                std::to_string(size) + ", and the launcher's variables say rank " +
                std::to_string(told_rank) +
                (told_size == size_ ? "" : " of " + std::to_string(told_size)) +
                ": is it the library of this launcher? Else start the job with ferryrun"};
  }
  if (app >= 0) {
    app_ = static_cast<uint32_t>(app);
  }
  std::array<char, kMostJobBytes> job{};
  FERRY_RETURN_IF_ERROR(
      Explain(calls_->job_id(job.data(), static_cast<int>(job.size())), "name the job"));
  job.back() = '\0';
  job_ = job.data();
  if (const auto room = FindAttribute("universeSize"); room) {
    universe_size_ = NumberIn<uint32_t>(*room);
  }
  local_ranks_ = {rank_};  // until Meet
  return {};
}

std::optional<std::string> Pmi2Library::FindAttribute(const char* name) const {
  std::array<char, kMostValueBytes + 1> value{};
  int found = 0;
  if (calls_->attribute(name, value.data(), kMostValueBytes, &found) != kSuccess || found == 0) {
    return std::nullopt;
  }
  return std::string(value.data());
}

Status Pmi2Library::Meet() {
  StatusOr<std::vector<uint32_t>> ranks = FindNode(FindAttribute(kPmiMapping), this);
  FERRY_RETURN_IF_ERROR(ranks.status());
  local_ranks_ = std::move(*ranks);
  return {};
}

Status Pmi2Library::Put(const std::string& name, const std::string& words) {
  const std::string text = ToPmiText(words);
  if (text.size() >= kMostValueBytes) {
    return {ErrorCode::kLimitExceeded, name + " has " + std::to_string(text.size()) +
                                           " bytes; PMI-2 takes fewer than " +
                                           std::to_string(kMostValueBytes)};
  }
  return Explain(calls_->put(PmiKeyOf(rank_, name).c_str(), text.c_str()), "take " + name);
}

Status Pmi2Library::Fence() { return Explain(calls_->fence(), "gather all ranks"); }

StatusOr<std::string> Pmi2Library::Get(uint32_t rank, const std::string& name) {
  std::array<char, kMostValueBytes + 1> value{};
  int length = 0;
  FERRY_RETURN_IF_ERROR(Explain(calls_->get(job_.c_str(), kAnyRank, PmiKeyOf(rank, name).c_str(),
                                            value.data(), kMostValueBytes, &length),
                                "tell " + name + " of rank " + std::to_string(rank)));
  return FromPmiText(value.data());
}

}  // namespace ferry::client
