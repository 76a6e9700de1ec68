#include "client/bootstrap/pmix_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "client/bootstrap/pmix_binary.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr uint8_t kGlobalScope = 3;  // words for ranks of all nodes
constexpr char kCollectData[] = "pmix.collect";
constexpr char kOnlyIfKnown[] = "pmix.optional";  // without asking the server

PmixInfo Flag(const char* key) {
  PmixInfo info{};
  std::strcpy(info.key, key);
  info.value.type = PmixType::kBool;
  info.value.data.flag = true;
  return info;
}

// A value that the library has allocated.
class Found {
 public:
  ~Found() {
    if (value_ != nullptr) {
      if (value_->type == PmixType::kString) {
        std::free(const_cast<char*>(value_->data.string));
      }
      std::free(value_);
    }
  }
  PmixValue** place() { return &value_; }
  const PmixValue* operator->() const { return value_; }

 private:
  PmixValue* value_ = nullptr;
};

}  // namespace

struct PmixLibrary::Calls {
  PmixProc self{};
  int (*init)(PmixProc*, PmixInfo*, size_t) = nullptr;
  int (*finalize)(const PmixInfo*, size_t) = nullptr;
  int (*put)(uint8_t, const char*, PmixValue*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const PmixProc*, size_t, const PmixInfo*, size_t) = nullptr;
  int (*get)(const PmixProc*, const char*, const PmixInfo*, size_t, PmixValue**) = nullptr;
  int (*abort)(int, const char*, PmixProc*, size_t) = nullptr;
  const char* (*error_string)(int) = nullptr;

  PmixProc Of(uint32_t rank) const {
    PmixProc proc = self;
    proc.rank = rank;
    return proc;
  }
};

bool PmixLibrary::IsAround(const char* const* environment) {
  return config::FindVariable(environment, "PMIX_NAMESPACE").has_value() &&
         config::FindVariable(environment, "PMIX_RANK").has_value();
}

PmixLibrary::PmixLibrary() : calls_(std::make_unique<Calls>()) {}

PmixLibrary::~PmixLibrary() {
  if (entered_) {
    calls_->finalize(nullptr, 0);
  }
}

StatusOr<std::unique_ptr<PmixLibrary>> PmixLibrary::Open() {
  std::unique_ptr<PmixLibrary> library(new PmixLibrary());
  FERRY_RETURN_IF_ERROR(library->Load());
  FERRY_RETURN_IF_ERROR(library->Enter());
  return library;
}

Status PmixLibrary::Load() {
  void* library = OpenPmixFile();
  if (library == nullptr) {
    return {ErrorCode::kNotFound,
            std::string("this process was started under PMIx (PMIX_RANK is set), but its library "
                        "cannot be opened: ") +
                dlerror() + "; install libpmix2, or start the job with ferryrun"};
  }
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Init", &calls_->init));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Finalize", &calls_->finalize));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Put", &calls_->put));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Commit", &calls_->commit));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Fence", &calls_->fence));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Get", &calls_->get));
  FERRY_RETURN_IF_ERROR(FindInPmixFile(library, "PMIx_Abort", &calls_->abort));
  return FindInPmixFile(library, "PMIx_Error_string", &calls_->error_string);
}

Status PmixLibrary::Explain(int status, const std::string& what) const {
  if (status == kPmixSuccess) {
    return {};
  }
  const char* text = calls_->error_string(status);
  return {ErrorCode::kSystem, "PMIx cannot " + what + ": " +
                                  (text != nullptr ? text : "error " + std::to_string(status))};
}

// Meets the server, and asks it what every rank must know.
Status PmixLibrary::Enter() {
  FERRY_RETURN_IF_ERROR(
      Explain(calls_->init(&calls_->self, nullptr, 0), "reach the server of this process"));
  entered_ = true;
  rank_ = calls_->self.rank;
  const StatusOr<uint32_t> size = GetNumber(kPmixJobSize);
  FERRY_RETURN_IF_ERROR(size.status());
  size_ = *size;
  universe_size_ = FindNumber(kPmixUniverseSize, kPmixWildcard);
  app_ = FindNumber(kPmixAppNumber, rank_);
  const PmixProc job = calls_->Of(kPmixWildcard);
  Found peers;
  FERRY_RETURN_IF_ERROR(Explain(calls_->get(&job, kPmixLocalPeers, nullptr, 0, peers.place()),
                                "tell the ranks of this node"));
  StatusOr<std::vector<uint32_t>> ranks =
      ParseRankList(peers->type == PmixType::kString ? peers->data.string : "");
  FERRY_RETURN_IF_ERROR(ranks.status());
  local_ranks_ = std::move(*ranks);
  if (rank_ >= size_ ||
      std::find(local_ranks_.begin(), local_ranks_.end(), rank_) == local_ranks_.end()) {
    return {ErrorCode::kCorrupt, "PMIx names rank " + std::to_string(rank_) + " of " +
                                     std::to_string(size_) + ", which is not among its node's"};
  }
  return {};
}

StatusOr<uint32_t> PmixLibrary::GetNumber(const char* key) {
  const PmixProc job = calls_->Of(kPmixWildcard);
  Found value;
  FERRY_RETURN_IF_ERROR(
      Explain(calls_->get(&job, key, nullptr, 0, value.place()), std::string("tell ") + key));
  if (value->type != PmixType::kUint32 && value->type != PmixType::kProcRank) {
    return Status(ErrorCode::kCorrupt, std::string("PMIx says ") + key + " as no number");
  }
  return value->data.number;
}

// Looks only in what the server has sent beforehand, so it does not block.
std::optional<uint32_t> PmixLibrary::FindNumber(const char* key, uint32_t of_rank) {
  const PmixProc proc = calls_->Of(of_rank);
  const PmixInfo only_if_known = Flag(kOnlyIfKnown);
  Found value;
  if (calls_->get(&proc, key, &only_if_known, 1, value.place()) != kPmixSuccess ||
      value->type != PmixType::kUint32) {
    return std::nullopt;
  }
  return value->data.number;
}

Status PmixLibrary::Put(const std::string& name, const std::string& words) {
  PmixValue value{};
  value.type = PmixType::kString;
  value.data.string = words.c_str();
  FERRY_RETURN_IF_ERROR(
      Explain(calls_->put(kGlobalScope, name.c_str(), &value), "take words for the others"));
  return Explain(calls_->commit(), "pass words on");
}

Status PmixLibrary::Fence() {
  const PmixInfo collect = Flag(kCollectData);
  return Explain(calls_->fence(nullptr, 0, &collect, 1), "gather all ranks");
}

StatusOr<std::string> PmixLibrary::Get(uint32_t rank, const std::string& name) {
  const PmixProc proc = calls_->Of(rank);
  Found value;
  FERRY_RETURN_IF_ERROR(Explain(calls_->get(&proc, name.c_str(), nullptr, 0, value.place()),
                                "tell " + name + " of rank " + std::to_string(rank)));
  if (value->type != PmixType::kString || value->data.string == nullptr) {
    return Status(ErrorCode::kCorrupt, "PMIx tells " + name + " as no text");
  }
  return std::string(value->data.string);
}

void PmixLibrary::Abort(int exit_code, const std::string& text) {
  calls_->abort(exit_code, text.c_str(), nullptr, 0);
}

StatusOr<std::vector<uint32_t>> ParseRankList(const std::string& text) {
  std::vector<uint32_t> ranks;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at <= end; ++at) {
    uint32_t rank = 0;
    const auto [stop, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || (stop != end && *stop != ',')) {
      return Status(ErrorCode::kCorrupt,
                    "PMIx tells the ranks of this node as \"" + text + "\", which is no list");
    }
    ranks.push_back(rank);
    at = stop;
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace ferry::client
