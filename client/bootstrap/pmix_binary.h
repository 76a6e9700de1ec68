// The part of the binary interface of libpmix.so.2 that Ferry uses: as a client (pmix_library.h),
// and as a server (tools/ferryrun/pmix_server.h). The library is opened when it is needed, so Ferry
// needs it neither to build nor to run. Structures keep their layout within a soname. Source: PMIx
// standard, versions 3 to 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "common/status.h"

namespace ferry::client {

inline constexpr char kPmixFile[] = "libpmix.so.2";

inline constexpr int kPmixSuccess = 0;
inline constexpr uint32_t kPmixWildcard = UINT32_MAX - 1;  // for all ranks of a job, or its values

enum class PmixType : uint16_t {
  kBool = 1,
  kString = 3,
  kUint16 = 13,
  kUint32 = 14,
  kInfo = 24,
  kDataArray = 39,
  kProcRank = 40,
};

struct PmixProc {
  char name_space[256];
  uint32_t rank;
};
struct PmixDataArray {
  PmixType type;
  size_t size;
  void* items;
};
struct PmixValue {
  PmixType type;
  union {
    bool flag;
    const char* string;
    uint16_t small_number;
    uint32_t number;
    PmixDataArray* array;
    void* room[3];
  } data;
};
struct PmixInfo {
  char key[512];
  uint32_t flags;
  PmixValue value;
};
static_assert(sizeof(PmixProc) == 260 && offsetof(PmixProc, rank) == 256);
static_assert(sizeof(PmixDataArray) == 24 && offsetof(PmixDataArray, items) == 16);
static_assert(sizeof(PmixValue) == 32 && offsetof(PmixValue, data) == 8);
static_assert(sizeof(PmixInfo) == 552 && offsetof(PmixInfo, value) == 520);

// Keys of the values that one side tells and the other asks for.
inline constexpr char kPmixJobSize[] = "pmix.job.size";
inline constexpr char kPmixUniverseSize[] = "pmix.univ.size";
inline constexpr char kPmixAppNumber[] = "pmix.appnum";
inline constexpr char kPmixLocalPeers[] = "pmix.lpeers";

// Opens the library, which is never closed: it has threads of its own. A program that uses it too
// shares it. Null: dlerror() says why not.
void* OpenPmixFile();
// Stores where a function of the library is. kUnsupported: it has no such function.
Status FindInPmixFile(void* library, const char* name, void** function);
template <typename Function>
Status FindInPmixFile(void* library, const char* name, Function** function) {
  static_assert(std::is_function_v<Function>);
  void* found = nullptr;
  const Status status = FindInPmixFile(library, name, &found);
  *function = reinterpret_cast<Function*>(found);
  return status;
}

}  // namespace ferry::client
