// From how many bytes on a put or get of a kernel, inside a node, is asked of ferryd in place of
// stores and loads by all threads of the crew (option shmem_cutovers; after "Intel SHMEM", section
// III-B and figures 4 and 5).
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "ferry/device/shmem/table.h"

namespace ferry::shmem {

// By FERRY_SHMEM_PUT or _GET, and by the crew's threads as a power of two, rounded down.
using Cutovers = std::array<std::array<uint64_t, FERRY_SHMEM_CUTOVER_SIZES>, 2>;

// Always stores and loads.
Cutovers NoCutovers();

// Items "OPERATION=BYTES" or "OPERATION/THREADS=BYTES", by commas, such as
// "put=32k,put/128=1m,get=never". The operation is put or get; BYTES is a size or "never"; an item
// holds from so many threads on, until one for more of them. kConfiguration, which `where` begins,
// for anything else.
StatusOr<Cutovers> ParseCutovers(std::string_view text, std::string_view where);

// As ParseCutovers reads it, with as few items as will do. Empty: NoCutovers.
std::string FormatCutovers(const Cutovers& cutovers);

}  // namespace ferry::shmem
