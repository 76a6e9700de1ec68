#include "client/triggered/counter_pages.h"

#include <sys/mman.h>

#include <utility>

#include "shm/atomic.h"

namespace ferry::client {

CounterPages::~CounterPages() {
  for (const auto& [end, page] : pages_) {
    Unmap(page);
  }
}

int CounterPages::DescriptorOf(uint32_t nic) {
  const auto found = descriptors_.find(nic);
  if (found != descriptors_.end()) {
    return found->second.get();
  }
  StatusOr<UniqueFd> given = parts_.ask(nic);
  return descriptors_.emplace(nic, given.ok() ? std::move(*given) : UniqueFd()).first->second.get();
}

// Children of this process do not have it: theirs is not the right to ring.
bool CounterPages::Map(int descriptor, uint64_t offset, Page* page) {
  void* const base = mmap(nullptr, page->size_bytes, PROT_WRITE, MAP_SHARED, descriptor,
                          static_cast<off_t>(offset));
  if (base == MAP_FAILED) {
    return false;
  }
  page->base = base;
  (void)madvise(base, page->size_bytes, MADV_DONTFORK);
  gpu::GpuBackend* const backend = parts_.backend();
  if (backend == nullptr) {
    return true;
  }
  page->is_registered = backend->RegisterIoMemory(base, page->size_bytes).ok();
  if (!page->is_registered) {
    Unmap(*page);
  }
  return page->is_registered;
}

void CounterPages::Unmap(const Page& page) {
  if (page.is_registered) {
    (void)parts_.backend()->UnregisterHostMemory(page.base);
  }
  (void)munmap(page.base, page.size_bytes);
}

uint64_t* CounterPages::Take(shm::PairLayout* end, uint64_t start) {
  shm::CounterPageWords& words = end->page;
  const uint64_t id = shm::LoadAcquire(words.id);  // Pairs with daemon::CounterPage::Offer.
  Page page;
  page.size_bytes = shm::LoadRelaxed(words.size_bytes);
  const uint32_t add = shm::LoadRelaxed(words.add);
  if (id == 0 || add % sizeof(uint64_t) != 0 || page.size_bytes < sizeof(uint64_t) ||
      add > page.size_bytes - sizeof(uint64_t)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  const int descriptor = DescriptorOf(shm::LoadRelaxed(words.nic));
  if (descriptor < 0 || !Map(descriptor, shm::LoadRelaxed(words.offset), &page)) {
    return nullptr;
  }
  shm::StoreRelaxed(words.first, start);
  // Either ferryd sees that we have the page, or we see that it has taken it back.
  (void)shm::Exchange(words.used, id, std::memory_order_seq_cst);
  if (shm::Load(words.id, std::memory_order_seq_cst) != id) {
    Unmap(page);
    shm::StoreRelease(words.used, 0);
    return nullptr;
  }
  pages_.emplace(end, page);
  return reinterpret_cast<uint64_t*>(static_cast<std::byte*>(page.base) + add);
}

void CounterPages::Drop(shm::PairLayout* end) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(end);
  if (found != pages_.end()) {
    Unmap(found->second);
    pages_.erase(found);
    shm::StoreRelease(end->page.used, 0);  // Pairs with daemon::ParkedCounters::Look.
  }
}

}  // namespace ferry::client
