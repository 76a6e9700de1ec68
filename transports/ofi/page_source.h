// Finds the descriptor of this process from which a page of a NIC was mapped, and the place in its
// file: for another process that is to map the page, too. libfabric tells the address only.
//
// /proc/self/maps names the file behind the address, /proc/self/fd the descriptors of that file. A
// second mapping shows whether the driver lets the page be mapped again. Slingshot's does not: it
// forgets where the page of a counter is as soon as that has been mapped (ucxi_mmap of
// shs-cxi-driver), so its pages stay with the process that has opened the counter.
//
// Calling thread: any. Blocks for /proc only.
#pragma once

#include <cstdint>
#include <optional>

#include "common/unique_fd.h"

namespace ferry::transport {

// Returns where [page, page + bytes), whole pages, lies in the file of `descriptor`, which becomes
// a duplicate of the one found (the same open file); once it is valid, no other is looked for.
// Nothing: the page was not mapped to be shared, its descriptor is closed, it is of another file,
// or it cannot be mapped again. Does not touch the page itself.
std::optional<uint64_t> FindPageSource(const void* page, uint64_t bytes, UniqueFd* descriptor);

}  // namespace ferry::transport
